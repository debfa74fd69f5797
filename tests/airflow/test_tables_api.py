"""What the API about tables tells, and to whom."""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.ui.routes import Service
from spark_jobs.contract.properties import (
    BASE_SNAPSHOT_ID,
    DAG_ID,
    MAP_INDEX,
    METRICS,
    OPERATION_ID,
    RUN_ID,
    STATEMENT,
    TASK_ID,
    TRY_NUMBER,
)
from spark_jobs.contract.request import TableName
from tests.airflow.tables_ui_client import Caller
from tests.support.iceberg_tables import IcebergTable
from tests.support.paimon_metadata import TableFiles

OLD_AT_ONCE: dict[str, Any] = {"history.expire.max-snapshot-age-ms": "1"}

BEGIN = 1_700_000_000_000
DAY = (date(2026, 1, 31) - date(1970, 1, 1)).days
MADE = {
    OPERATION_ID: "0a1b",
    STATEMENT: "merge",
    BASE_SNAPSHOT_ID: "1",
    DAG_ID: "night shift",
    RUN_ID: "manual__2026-01-31T00:00:00+00:00",
    TASK_ID: "merge",
    MAP_INDEX: "-1",
    TRY_NUMBER: "2",
    METRICS: json.dumps(
        {
            "inserted": 3,
            "updated": 2,
            "files_added": 1,
            "bytes_added": 100,
            "seconds": {"read": 1.5},
            "guards": [{"name": "max_deleted_rows", "limit": "5", "seen": "0", "held": True}],
        }
    ),
}


@pytest.fixture
def admin(users: dict[str, Any]) -> Caller:
    return users["ADMIN"]


@pytest.fixture
def orders(warehouse: Path) -> TableFiles:
    table = TableFiles(warehouse).create()
    table.add({"2026-01-30": 5}, time_millis=BEGIN)
    table.add({"2026-01-30": 1, "2026-01-31": 2}, time_millis=BEGIN + 100_000, properties=MADE)
    table.add({"2026-01-31": 4}, time_millis=BEGIN + 200_000)
    table.tag("first", 1)
    return table


def test_a_table(orders: TableFiles, admin: Caller) -> None:
    told = admin.told("table")
    assert (told["snapshots"], told["partition_keys"]) == (3, ["day"])
    assert (told["latest"]["snapshot_id"], told["latest"]["writer"]) == ("3", "user")


def test_snapshots_tell_who_made_them(orders: TableFiles, admin: Caller) -> None:
    newest, made, first = admin.told("snapshots")["snapshots"]
    assert newest["run"] is None
    assert made["run"] == {
        "dag_id": "night shift",
        "run_id": "manual__2026-01-31T00:00:00+00:00",
        "task_id": "merge",
        "map_index": -1,
        "try_number": 2,
        "page": "dags/night%20shift/runs/manual__2026-01-31T00%3A00%3A00%2B00%3A00/tasks/merge"
        "?try_number=2",
    }
    assert (made["operation"], made["seconds"]) == ("merge", {"read": 1.5})
    assert (made["change"]["inserted"], made["change"]["updated"]) == (3, 2)
    assert made["checked"] == ["max_deleted_rows (allowed 5): 0"]
    assert first["refs"] == ["tag first"]


def test_snapshots_come_in_pages(orders: TableFiles, admin: Caller) -> None:
    first = admin.told("snapshots", limit=2)
    assert [each["snapshot_id"] for each in first["snapshots"]] == ["3", "2"]
    second = admin.told("snapshots", limit=2, at=first["next"])
    assert ([each["snapshot_id"] for each in second["snapshots"]], second["next"]) == (["1"], None)
    before = admin.told("snapshots", until=BEGIN + 200_000)
    assert before["snapshots"][0]["snapshot_id"] == "2"
    assert admin.get("snapshots", at=7)[0] == 404


def test_sizes_are_counted_back(orders: TableFiles, admin: Caller) -> None:
    found = admin.told("sizes")["sizes"]
    assert [(each["files"], each["size"]) for each in found] == [(4, 400), (3, 300), (1, 100)]


def test_partitions_by_what_they_hold(orders: TableFiles, admin: Caller) -> None:
    told = admin.told("partitions", sort="rows", descending=True, limit=1)
    assert (told["total"], told["rows"], told["files"], told["small_files"]) == (2, 12, 4, 4)
    (most,) = told["partitions"]
    assert (most["name"], most["rows"], most["files"]) == ("day=2026-01-30", 6, 2)
    assert [each["name"] for each in admin.told("partitions", search="01-31")["partitions"]] == [
        "day=2026-01-31"
    ]


def test_partitions_are_in_the_order_of_their_type(warehouse: Path, admin: Caller) -> None:
    table = TableFiles(warehouse, day_type="INT").create()
    table.add({"10": 1, "9": 1, "-2": 1, None: 1})
    told = admin.told("partitions")["partitions"]
    assert [each["name"] for each in told] == [
        "day=-2", "day=9", "day=10", "day=NULL",
    ]  # fmt: skip


def test_days_are_found_in_partitions(orders: TableFiles, admin: Caller) -> None:
    told = admin.told("days")
    assert told["column"] == "day"
    assert [(each["day"], each["rows"]) for each in told["days"]] == [
        ("2026-01-30", 6),
        ("2026-01-31", 6),
    ]


def test_two_snapshots(orders: TableFiles, admin: Caller) -> None:
    told = admin.told("compare", before=1, after=3)
    assert (told["total"], told["files_added"]) == (2, 3)
    assert (told["after"]["snapshot_id"], told["sample"]) == ("3", False)
    assert [each["rows_after"] for each in told["partitions"]] == [6, 6]
    assert admin.get("compare", before=1, after=9)[1]["code"] == "SNAPSHOT_NOT_FOUND"


def test_schemas_tell_what_changed(orders: TableFiles, admin: Caller) -> None:
    path = orders.folder / "schema" / "schema-0"
    schema = json.loads(path.read_text()) | {"id": 1}
    schema["fields"] = [
        {"id": 0, "name": "id", "type": "DOUBLE"},
        schema["fields"][1],
        {"id": 3, "name": "city", "type": "STRING"},
    ]
    path.with_name("schema-1").write_text(json.dumps(schema))
    newest, first = admin.told("schemas")["schemas"]
    assert [(each["name"], each["change"]) for each in newest["columns"]] == [
        ("id", "retyped"),
        ("day", "same"),
        ("city", "added"),
    ]
    assert first["dropped"] == []


def test_table_care(warehouse: Path, users: dict[str, Any], admin: Caller) -> None:
    table = TableFiles(warehouse).create(**{"snapshot.num-retained.min": "2"})
    for number in range(5):
        table.add(time_millis=BEGIN + number)
        stored = BEGIN / 1000 + number
        os.utime(table.folder / "snapshot" / f"snapshot-{number + 1}", (stored, stored))
    told = admin.told("care")
    assert (told["expiry"]["snapshots"], told["expiry"]["first_retained"]) == (3, "4")
    assert told["compaction"]["small_files"] == 5
    assert told["problems"] == {}
    guard = table.folder / "consumer" / "consumer-merge-0a1b"
    guard.parent.mkdir()
    guard.write_text('{"nextSnapshot": 2}')
    users[""].client.app.state.service = Service()
    told = admin.told("care")
    assert told["holds"] == [{"name": "0a1b", "kind": "operation", "snapshot_id": "2"}]
    assert told["expiry"]["first_retained"] == "2"
    # A job ignores the guard of one that was killed a week ago.
    os.utime(guard, (0, 0))
    users[""].client.app.state.service = Service()
    told = admin.told("care")
    assert (told["holds"], told["expiry"]["first_retained"]) == ([], "4")


def test_many_snapshots_that_would_expire(
    warehouse: Path, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_provider_merge.metadata.paimon.page_facts._MOST_EXPIRING", 4)
    table = TableFiles(warehouse).create(**{"snapshot.num-retained.min": "2"})
    for _ in range(9):
        number = table.add(time_millis=BEGIN)
        os.utime(table.folder / "snapshot" / f"snapshot-{number}", (1, 1))
    told = admin.told("care")["expiry"]
    assert (told["snapshots"], told["snapshots_complete"], told["first_retained"]) == (
        4,
        False,
        "5",
    )
    assert not told["size_complete"]


def test_a_list_of_tables(orders: TableFiles, warehouse: Path, admin: Caller) -> None:
    (warehouse / "shop.db" / "broken" / "schema").mkdir(parents=True)
    (warehouse / "shop.db" / "broken" / "schema" / "schema-0").write_text("{}")
    (warehouse / "shop.db" / "broken" / "snapshot").mkdir()
    (warehouse / "shop.db" / "broken" / "snapshot" / "LATEST").write_text("1")
    (warehouse / "shop.db" / "broken" / "snapshot" / "snapshot-1").write_text("no JSON")
    broken, good = admin.told("tables", search="SHOP.")["tables"]
    assert broken["problem"]["code"] == "METADATA_UNREADABLE"
    assert good["latest"]["snapshot_id"] == "3"
    assert admin.told("tables", search="nothing")["tables"] == []


def test_tables_by_age_and_writer(warehouse: Path, admin: Caller) -> None:
    for number in range(60):
        TableFiles(warehouse, f"new_{number:02}").create().add()
    TableFiles(warehouse, "old").create().add(time_millis=BEGIN, properties=MADE)
    TableFiles(warehouse, "never").create()
    told = admin.told("tables", older_than=86_400)
    assert [each["table"] for each in told["tables"]] == ["old"]
    assert (told["total"], told["looked_at"], told["next"]) == (62, 62, None)
    told = admin.told("tables", writer="NIGHT")
    assert [each["table"] for each in told["tables"]] == ["old"]
    first = admin.told("tables", writer="user", limit=2)
    assert [each["table"] for each in first["tables"]] == ["new_00", "new_01"]
    # The table without a snapshot is looked at, and passes no filter.
    assert (first["looked_at"], first["next"]) == (3, 3)
    second = admin.told("tables", writer="user", limit=2, offset=first["next"])
    assert [each["table"] for each in second["tables"]] == ["new_02", "new_03"]


def test_what_was_read_is_not_kept_for_long(
    orders: TableFiles, warehouse: Path, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    TableFiles(warehouse, "other").create().add()
    admin.told("table")
    opened = admin.app.state.service.tables
    kept = opened.table("paimon_default", TableName("shop", "orders"))
    assert {"view", "facts"} < vars(kept).keys()
    monkeypatch.setattr("airflow_provider_merge.ui.opened._FRESH", 0.0)
    admin.told("table", table="other")
    assert not {"view", "facts"} & vars(kept).keys()
    assert admin.told("table")["snapshots"] == 3


def test_errors_have_a_code(warehouse: Path, admin: Caller) -> None:
    assert admin.get("table")[1]["code"] == "TABLE_NOT_FOUND"
    assert admin.get("table", database="a/b")[0] == 400
    assert admin.get("snapshots", limit=100_000)[1]["message"].startswith("limit: ")
    status, told = admin.get("table", connection="nowhere")
    assert (status, told["code"]) == (400, "REQUEST_INVALID")


def test_an_iceberg_table(iceberg_catalog: Any, admin: Caller) -> None:
    table = IcebergTable.create(iceberg_catalog, **OLD_AT_ONCE)
    engine = {"engine-name": "spark", "engine-version": "4.1"}
    table.properties = {**engine, "total-data-files": "1", "total-files-size": "50"}
    first = table.append(DAY, "Oslo", rows=5)
    table.properties = {
        **engine,
        "added-records": "3",
        "total-data-files": "2",
        "total-files-size": "70",
    }
    second = table.append(DAY + 1, "Rome", rows=3)
    asked = {"connection": "iceberg_default"}
    newest, oldest = admin.told("snapshots", **asked)["snapshots"]
    # Browsers would round a number of that many digits.
    assert [newest["snapshot_id"], oldest["snapshot_id"]] == [str(second), str(first)]
    assert (newest["writer"], newest["change"]["inserted"]) == ("spark 4.1", 3)
    assert admin.told("days", **asked)["column"] == "ts_day"
    assert admin.told("tables", **asked)["tables"][0]["files"] == 2
    sizes = admin.told("sizes", **asked)["sizes"]
    assert [each["size"] for each in sizes] == [70, 50]
    compared = admin.told("compare", before=first, after=second, **asked)
    assert [each["rows_after"] for each in compared["partitions"]] == [3]
    assert admin.told("care", **asked)["expiry"]["snapshots"] == 1


def test_what_keeps_snapshots_of_an_iceberg_table(
    iceberg_catalog: Any, tmp_path: Path, admin: Caller
) -> None:
    table = IcebergTable.create(iceberg_catalog, **OLD_AT_ONCE)
    _, second, third, _ = (table.append(DAY, "Oslo") for _ in range(4))
    asked = {"connection": "iceberg_default"}
    assert admin.told("care", **asked)["expiry"]["snapshots"] == 3
    workspace = tmp_path / "warehouse" / "_operations"
    workspace.mkdir()

    def note(name: str, **fields: Any) -> Path:
        base = {"table": str(table.table.metadata.table_uuid), "sequence_number": 2}
        path = workspace / f"{name}.base"
        path.write_text(json.dumps({**base, "snapshot_id": second, **fields}))
        return path

    def care() -> Any:
        admin.app.state.service = Service()
        return admin.told("care", **asked)

    own = note("merge-1")
    note("of-another-table", table="0a1b")
    (workspace / "merge-1.running").write_text("")
    told = care()
    assert told["holds"] == [{"name": "merge-1", "kind": "operation", "snapshot_id": str(second)}]
    assert (told["expiry"]["snapshots"], told["expiry"]["first_retained"]) == (1, str(second))
    # A job ignores the note of one that was killed a week ago.
    os.utime(own, (0, 0))
    note("merge-2", snapshot_id=third)
    told = care()
    assert [each["name"] for each in told["holds"]] == ["merge-2"]
    assert told["expiry"]["snapshots"] == 2
    # One that began when there was nothing keeps everything.
    note("merge-2", snapshot_id=None, sequence_number=0)
    assert care()["expiry"]["snapshots"] == 0
    (workspace / "merge-3.base").write_text("{")
    problems = care()["problems"]
    assert {name: each["code"] for name, each in problems.items()} == {
        "holds": "METADATA_UNREADABLE",
        "expiry": "METADATA_UNREADABLE",
    }


def test_partitions_of_an_older_spec(iceberg_catalog: Any, admin: Caller) -> None:
    table = IcebergTable.create(iceberg_catalog)
    for city in ("Oslo", "Oslo", "Rome"):
        table.append(DAY, city, rows=2)
    with table.table.update_spec() as update:
        update.remove_field("city")
    for _ in range(2):
        table.append(DAY, rows=2)
    asked = {"connection": "iceberg_default"}
    told = admin.told("care", **asked)["compaction"]
    assert (told["partitions"], told["small_files"], told["files"]) == (2, 5, 5)
    found = admin.told("partitions", **asked)
    assert found["small_files"] == 5
    assert [(each["name"], each["small_files"]) for each in found["partitions"]] == [
        ("ts_day=2026-01-31", 2),
        ("ts_day=2026-01-31/city=Oslo", 2),
        ("ts_day=2026-01-31/city=Rome", 1),
    ]


def test_what_a_compaction_of_an_iceberg_table_would_find(
    iceberg_catalog: Any, admin: Caller
) -> None:
    target: dict[str, Any] = {"write.target-file-size-bytes": "1200"}
    table = IcebergTable.create(iceberg_catalog, **target)
    for _ in range(5):
        table.append(DAY, "Oslo", rows=10)
    table.append(DAY, "Rome", rows=4)
    table.mark(DAY, "Rome", rows=1, of=table.paths()[-1])
    asked = {"connection": "iceberg_default"}
    # Files have 1,000 bytes: not small for a target of 1,200.
    assert admin.told("care", **asked)["compaction"]["small_files"] == 0
    with table.table.transaction() as change:
        change.set_properties({"write.target-file-size-bytes": "2000"})
    admin.app.state.service = Service()
    care = admin.told("care", **asked)
    assert care["problems"] == {}
    assert care["compaction"] == {
        "partitions": 1,
        "small_files": 6,
        "small_size": 6000,
        "files": 6,
        "marked_rows": 1,
        "delete_files": 1,
    }
    oslo, rome = admin.told("partitions", **asked)["partitions"]
    assert (oslo["small_files"], oslo["delete_files"], oslo["marked_share"]) == (5, 0, 0.0)
    assert (rome["small_files"], rome["delete_files"], rome["marked_share"]) == (1, 1, 0.25)
