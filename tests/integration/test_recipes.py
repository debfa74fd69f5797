"""The recipes of docs/recipes, as they are, on tables of both formats.

For Iceberg the one name that a recipe says to change is changed: that of the connection.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import Lake

pytestmark = [pytest.mark.slow, pytest.mark.by_turns(7)]

RECIPES = Path(__file__).resolve().parents[2] / "dags_examples" / "recipes"

# Runs in the Spark environment: the rows of a table, as its library reads them.
READER = """
import json, sys
catalog, warehouse, name = sys.argv[1:]
if catalog == "paimon_default":
    from pypaimon import CatalogFactory
    builder = CatalogFactory.create({"warehouse": warehouse}).get_table(name).new_read_builder()
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
else:
    from pyiceberg.catalog.sql import SqlCatalog
    with SqlCatalog(catalog, uri=f"sqlite:///{warehouse}/catalog.db") as library:
        rows = library.load_table(name).scan().to_arrow()
print(json.dumps(rows.to_pylist(), default=str))
"""
# Every value of every file below a folder, decoded where it is packed.
SCANNER = """
import gzip, json, sys
from pathlib import Path
import fastavro
import pyarrow.parquet as pq

found = []
for file in Path(sys.argv[1]).rglob("*"):
    if not file.is_file() or file.name == "catalog.db":
        continue
    text = file.read_bytes()
    if text[:4] == b"PAR1":
        text += json.dumps(pq.ParquetFile(file).read().to_pylist(), default=str).encode()
    elif text[:3] == b"Obj":
        with file.open("rb") as opened:
            text += repr(list(fastavro.reader(opened))).encode()
    elif text[:2] == b"\\x1f\\x8b":
        text = gzip.decompress(text)
    if sys.argv[2].encode() in text:
        found.append(str(file.relative_to(sys.argv[1])))
print(json.dumps(sorted(found)))
"""
NEW_CATALOG = """
import sys
from pyiceberg.catalog.sql import SqlCatalog
uri = f"sqlite:///{sys.argv[1]}/catalog.db"
SqlCatalog("iceberg_default", uri=uri, warehouse=sys.argv[1]).close()
"""


@dataclass
class Kitchen:
    """A lake whose catalog is one of the two, and the landing folder of the recipes."""

    lake: Lake
    catalog: str
    folder: Path

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    @property
    def landing(self) -> Path:
        return self.folder / "landing"

    def land(self, name: str, text: str) -> None:
        folder = self.landing / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "part.csv").write_text(text)

    def run(self, dag_id: str, at: str, **conf: str) -> str:
        """Run a recipe's DAG once; what it printed."""
        done = self.run_anyhow(dag_id, at, {}, **conf)
        assert done.returncode == 0, done.stdout[-8000:]
        return done.stdout

    def run_anyhow(
        self, dag_id: str, at: str, variables: Mapping[str, str], **conf: str
    ) -> subprocess.CompletedProcess[str]:
        """The same, whether or not it succeeds."""
        copies = self.lake.folder / "dags"
        shutil.copytree(RECIPES / "sql", copies / "sql", dirs_exist_ok=True)
        for file in RECIPES.glob("*.py"):
            text = file.read_text().replace('"paimon_default"', f'"{self.catalog}"')
            (copies / file.name).write_text(text)
        return self.lake.airflow(
            *("dags", "test", dag_id, at, "--conf"),
            json.dumps({"landing": str(self.landing), **conf}),
            environment={**self.environment(), **variables},
        )

    def environment(self) -> dict[str, str]:
        extra: dict[str, Any] = {"warehouse": str(self.warehouse)}
        connection: dict[str, Any] = {"conn_type": "paimon", "extra": extra}
        if self.catalog == "iceberg_default":
            host = f"sqlite:///{self.warehouse}/catalog.db"
            connection = {"conn_type": "iceberg", "host": host, "extra": {"type": "sql", **extra}}
        name = f"AIRFLOW_CONN_{self.catalog.upper()}"
        return {**self.lake.environment(), name: json.dumps(connection)}

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        text = self.lake.python(READER, self.catalog, str(self.warehouse), table)
        return sorted(tuple(row.values()) for row in json.loads(text))

    def files_with(self, value: str) -> list[str]:
        found: list[str] = json.loads(self.lake.python(SCANNER, str(self.warehouse), value))
        return found


@pytest.fixture(scope="module", params=["paimon_default", "iceberg_default"])
def kitchen(
    request: pytest.FixtureRequest, lake: Lake, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kitchen]:
    kitchen = Kitchen(lake, request.param, tmp_path_factory.mktemp("recipes"))
    kitchen.warehouse.mkdir()
    if request.param == "iceberg_default":
        lake.python(NEW_CATALOG, str(kitchen.warehouse))
    yield kitchen
    for file in (lake.folder / "dags").iterdir():
        shutil.rmtree(file) if file.is_dir() else file.unlink()


HEADER = "order_id,customer,amount,cancelled,changed_at\n"


def test_upsert_then_dbt_models_then_a_person_forgotten_for_good(kitchen: Kitchen) -> None:
    kitchen.land(
        "orders/2026-03-01",
        HEADER + "1,ann,10.00,false,2026-03-01T08:00:00Z\n"
        "1,ann,11.00,false,2026-03-01T09:00:00Z\n2,bob,20.00,false,2026-03-01T08:00:00Z\n"
        "3,cid,30.00,true,2026-03-01T08:00:00Z\n",
    )
    kitchen.land(
        "orders/2026-03-02",
        HEADER + "2,bob,0,true,2026-03-02T07:00:00Z\n1,ann,12.00,false,2026-03-02T08:00:00Z\n"
        "2,bob,21.00,false,2026-03-02T08:00:00Z\n4,zoe,40.00,false,2026-03-02T08:00:00Z\n",
    )
    kitchen.run("upsert_files", "2026-03-01", day="2026-03-01")
    kitchen.run("upsert_files", "2026-03-02", day="2026-03-02")
    # The first day once more: its older rows stay away.
    kitchen.run("upsert_files", "2026-03-03", day="2026-03-01")
    orders = [row[:3] for row in kitchen.rows("shop.orders")]
    assert orders == [(1, "ann", "12.00"), (2, "bob", "21.00"), (4, "zoe", "40.00")]

    kitchen.run("from_dbt", "2026-03-02", day="2026-03-02")
    assert [row[:2] for row in kitchen.rows("marts.customers")] == [
        ("ann", 1),
        ("bob", 1),
        ("zoe", 1),
    ]
    assert kitchen.rows("marts.order_days") == [(3, "73.00", "2026-03-02")]

    kitchen.land("forget", "customer\nzoe\n")
    assert kitchen.files_with("zoe"), "the scan finds what is there"
    kitchen.run("forget_for_good", "2026-03-04", keep="1 s")
    # What was too young to expire in the first run goes in the next one.
    kitchen.run("forget_for_good", "2026-03-05", keep="1 s")
    assert [row[:2] for row in kitchen.rows("shop.orders")] == [(1, "ann"), (2, "bob")]
    left = [file for file in kitchen.files_with("zoe") if "customers" not in file]
    # What is left are bounds of removed files, as the page says: a smallest or largest value.
    assert [file for file in left if Path(file).parent.name not in ("manifest", "metadata")] == []


def test_files_as_they_land_each_once(kitchen: Kitchen) -> None:
    def land(name: str, rows: str) -> None:
        folder = kitchen.landing / "readings"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"meter,reading,read_at\n{rows}")

    land("b.csv", "1,10.5,2026-03-01T08:00:00Z\n1,11.5,2026-03-01T09:00:00Z\n")
    kitchen.run("new_files", "2026-03-01")
    land("a.csv", "2,20,2026-03-01T08:00:00Z\n1,9,2026-03-01T07:00:00Z\n")
    kitchen.run("new_files", "2026-03-02")
    rows = kitchen.rows("grid.meters")
    assert [row[:2] for row in rows] == [(1, "11.500"), (2, "20.000")]

    assert "0 new files" in kitchen.run("new_files", "2026-03-03")
    land("b.csv", "1,99,2026-03-09T08:00:00Z\n")
    done = kitchen.run_anyhow("new_files", "2026-03-04", {})
    assert "SOURCE_REPLACED" in done.stdout
    assert kitchen.rows("grid.meters") == rows


def test_a_chain_of_tables_follows_what_changed(kitchen: Kitchen) -> None:
    def land(name: str, *rows: str) -> None:
        folder = kitchen.landing / "meters"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("\n".join(("meter,kwh,read_at,sent_at", *rows)) + "\n")

    def days() -> dict[str, tuple[int, str]]:
        return {day: (meters, kwh) for day, meters, kwh in kitchen.rows("grid.days")}

    first, second = "2026-03-01T08:00:00Z", "2026-03-02T08:00:00Z"
    land(
        "a.csv", f"1,5,{first},{first}", f"1,6,{first},2026-03-01T08:05:00Z", f"2,7,{first},{first}"
    )
    kitchen.run("chain_of_tables", "2026-03-01")
    assert days() == {"2026-03-01": (2, "13.000")}

    # Of the first day: one meter sends an old reading again, and one is late.
    land("b.csv", f"1,5,{first},{first}", f"3,1,{first},{second}", f"1,9,{second},{second}")
    kitchen.run("chain_of_tables", "2026-03-02")
    assert days() == {"2026-03-01": (3, "14.000"), "2026-03-02": (1, "9.000")}
    assert len(kitchen.rows("grid.arrived")) == 6
    assert len(kitchen.rows("grid.readings")) == 4

    printed = kitchen.run("chain_of_tables", "2026-03-03")
    assert "0 new files" in printed
    assert days() == {"2026-03-01": (3, "14.000"), "2026-03-02": (1, "9.000")}


def test_every_version_of_a_customer(kitchen: Kitchen) -> None:
    def land(name: str, *rows: str) -> None:
        folder = kitchen.landing / "crm"
        folder.mkdir(parents=True, exist_ok=True)
        head = "customer,city,plan,is_deleted,changed_at"
        (folder / name).write_text("\n".join((head, *rows)) + "\n")

    def at(day: int) -> str:
        return f"2026-03-{day:02}T08:00:00Z"

    land("a.csv", f"1,ulm,s,false,{at(1)}", f"2,bonn,m,,{at(1)}", f"1,ulm,l,false,{at(5)}")
    kitchen.run("scd2", "2026-03-06")
    land("b.csv", f"1,kiel,s,false,{at(3)}", f"2,,,true,{at(7)}", f"1,ulm,l,false,{at(5)}")
    kitchen.run("scd2", "2026-03-07")
    rows = kitchen.rows("crm.customer_versions")
    told = [(*row[:3], row[3][8:10], row[4] and row[4][8:10], row[5]) for row in rows]
    assert sorted(told) == [
        (1, "kiel", "s", "03", "05", False),
        (1, "ulm", "l", "05", None, True),
        (1, "ulm", "s", "01", "03", False),
        (2, "bonn", "m", "01", "07", False),
    ]

    assert "0 new files" in kitchen.run("scd2", "2026-03-08")
    land("c.csv", f"1,rome,s,false,{at(9)}", f"1,oslo,s,false,{at(9)}")
    done = kitchen.run_anyhow("scd2", "2026-03-09", {})
    assert "SOURCE_KEY_NOT_UNIQUE" in done.stdout
    assert kitchen.rows("crm.customer_versions") == rows


def test_a_table_of_a_database_is_followed(kitchen: Kitchen) -> None:
    def land(name: str, *events: tuple[str, int, Any, Any]) -> None:
        folder = kitchen.landing / "customers"
        folder.mkdir(parents=True, exist_ok=True)
        lines = [
            json.dumps({"op": op, "before": before, "after": after, "source": {"lsn": lsn}})
            for op, lsn, before, after in events
        ]
        (folder / name).write_text("\n".join(lines) + "\n")

    def row(id_: int, name: str, balance: str, text: str = "long") -> dict[str, Any]:
        at = "2026-03-01T08:00:00.5Z"
        return {"id": id_, "name": name, "balance": balance, "biography": text, "changed_at": at}

    # Decimals in base64: 1.00, 2.56.
    unchanged = "__debezium_unavailable_value"
    first = ("c", 10, None, row(1, "ann", "ZA=="))
    land("b.json", first, ("r", 10, None, row(2, "bob", "AQA=")), first)
    kitchen.run("cdc", "2026-03-01")
    land("a.json", ("u", 30, None, row(1, "anna", "AQA=", unchanged)), first)
    land("c.json", ("d", 40, {"id": 2}, None), ("d", 41, {"id": 3}, None))
    kitchen.run("cdc", "2026-03-02")
    land("late.json", ("c", 20, None, row(3, "gone", "ZA==")))
    kitchen.run("cdc", "2026-03-03")

    rows = [(*each[:4], *each[5:]) for each in kitchen.rows("shop.customers")]
    assert rows == [
        (1, "anna", "2.56", "long", 30, False),
        (2, "bob", "2.56", "long", 40, True),
        (3, None, None, None, 41, True),
    ]
    land("emptied.json", ("t", 50, None, None))
    done = kitchen.run_anyhow("cdc", "2026-03-04", {})
    assert "CHANGE_EVENT_INVALID" in done.stdout
    assert "0 new files" not in done.stdout


def test_a_day_that_is_wrong_is_never_seen(kitchen: Kitchen) -> None:
    head = "item,price,unit\n"
    kitchen.land("prices/2026-03-01", head + "1,10.00,kg\n2,20.00,kg\n3,30.00,piece\n")
    kitchen.land("prices/2026-03-02", head + "1,11.00,kg\n2,9.00,kg\n3,30.00,piece\n")
    kitchen.land("prices/2026-03-03", head + "1,11.00,kg\n")
    kitchen.land("prices/2026-03-04", head + "1,11.00,kg\n2,20.00,kg\n4,40.00,piece\n")
    kitchen.run("checked_load", "2026-03-01", day="2026-03-01")
    first = kitchen.rows("shop.prices")

    for day, told in (("02", "no price falls to less than half"), ("03", "max_deleted_share")):
        done = kitchen.run_anyhow("checked_load", f"2026-03-{day}", {}, day=f"2026-03-{day}")
        assert "GUARD_FAILED" in done.stdout
        assert told in done.stdout
        assert kitchen.rows("shop.prices") == first
    kitchen.run("checked_load", "2026-03-04", day="2026-03-04")

    prices = [row[:2] for row in kitchen.rows("shop.prices")]
    assert prices == [(1, "11.00"), (2, "20.00"), (4, "40.00")]


def test_a_day_is_replaced_as_often_as_it_runs(kitchen: Kitchen) -> None:
    kitchen.land("sales/2026-03-01", "shop,amount\nulm,1.50\nulm,2.50\nbonn,3.00\n")
    kitchen.land("sales/2026-03-02", "shop,amount\nulm,9.00\n")
    kitchen.run("daily_overwrite", "2026-03-01", day="2026-03-01")
    kitchen.run("daily_overwrite", "2026-03-02", day="2026-03-02")
    kitchen.land("sales/2026-03-01", "shop,amount\nulm,5.00\n")
    kitchen.run("daily_overwrite", "2026-03-03", day="2026-03-01")
    assert kitchen.rows("shop.revenue") == [
        ("ulm", "5.00", "2026-03-01"),
        ("ulm", "9.00", "2026-03-02"),
    ]


def test_the_day_of_25_hours(kitchen: Kitchen) -> None:
    # In Berlin 2026-10-25 begins at 22:00 UTC of the day before; the hour from 2 to 3 comes twice.
    hours = {
        "2026-10-24T21": "2026-10-24T21:30:00Z,old\n",
        "2026-10-25T00": "2026-10-25T00:30:00Z,home\n",
        "2026-10-25T01": "2026-10-25T01:30:00Z,home\n",
    }
    for hour, line in hours.items():
        kitchen.land(f"visits/{hour}", f"at,page\n{line}")
        following = f"{hour[:11]}{int(hour[11:]) + 1:02}:00:00+00:00"
        kitchen.run("visits_hourly", following)
    assert [row[2] for row in kitchen.rows("web.visits")] == list(hours)
    # The logical date of the run that begins when this day is over.
    kitchen.run("visits_by_day", "2026-10-25T00:00:00+02:00")
    assert kitchen.rows("web.visits_by_day") == [("home", 2, "2026-10-25")]


def test_a_file_of_several_statements(kitchen: Kitchen) -> None:
    lines = "sale_id,product,amount,day\n"
    kitchen.land(
        "sales-lines",
        lines + "1,tea,2.00,2026-03-01\n2,tea,3.00,2026-03-01\n3,mug,9.00,2026-03-02\n",
    )
    kitchen.run("from_sql_files", "2026-03-01", day="2026-03-01")
    kitchen.run("from_sql_files", "2026-03-02", day="2026-03-02")
    kitchen.run("from_sql_files", "2026-03-03", day="2026-03-01")
    assert kitchen.rows("shop.sales_by_product") == [
        ("mug", "9.00", "2026-03-02"),
        ("tea", "5.00", "2026-03-01"),
    ]
    assert len(kitchen.rows("shop.sales")) == 3


def test_a_chat_is_told_why_a_merge_failed(kitchen: Kitchen) -> None:
    told: list[Any] = []

    class Chat(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    kitchen.land("payments", "payment_id,amount\n1,2.00\n" + "x,1.00\n" * 11)
    with HTTPServer(("127.0.0.1", 0), Chat) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = {"AIRFLOW_VAR_ALERT_WEBHOOK": f"http://127.0.0.1:{server.server_port}"}
        kitchen.run_anyhow("alerting", "2026-03-01", address)
        server.shutdown()
    (facts,) = told
    assert (facts["code"], facts["table"], facts["guard"]) == (
        *("TOO_MANY_BAD_ROWS", "shop.payments"),
        "max_bad_rows",
    )
    assert facts["text"].endswith("More: docs/errors.md#too_many_bad_rows")
    assert kitchen.rows("shop.payments") == []
