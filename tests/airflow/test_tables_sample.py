"""The sample of rows in which two snapshots differ: which rows it has, and when there is none."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

from airflow_provider_merge.ui.routes import Service
from tests.airflow.support import PASSWORD
from tests.airflow.tables_ui_client import Caller
from tests.support.hostile_texts import hostile_texts
from tests.support.iceberg_tables import IcebergTable
from tests.support.paimon_rows import TableRows, without

DAY = "2026-01-31"
OTHER_DAY = "2026-01-30"


@pytest.fixture
def admin(users: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Caller:
    monkeypatch.setenv("AIRFLOW__MERGE__UI_SAMPLES", "paimon_default, iceberg_default")
    return users["ADMIN"]


@pytest.fixture
def table(warehouse: Path) -> TableRows:
    return TableRows(warehouse, more_columns={"city": "STRING", "tags": "ARRAY<STRING>"})


def changed(
    table: TableRows, before: dict[str, Any], after: dict[str, Any], day: str = DAY
) -> None:
    """Two snapshots, of which the second has a file in the place of another."""
    old, new = table.file(day, before), table.file(day, after)
    table.commit([old])
    table.commit([without(old), new], kind="OVERWRITE")


def sample_of(
    caller: Caller, before: object = 1, after: object = 2, **query: str
) -> dict[str, Any]:
    return caller.told("sample", before=before, after=after, **query)


def test_rows_that_a_rewritten_file_carries_do_not_differ(table: TableRows, admin: Caller) -> None:
    table.create()
    rows = {"tags": [["x"]] * 3}
    before = {"id": [1, 2, 3], "city": ["Oslo", None, "Rome"], **rows}
    changed(table, before, {"id": [1, 2, 4], "city": ["Oslo", "Bern", "Rome"], **rows})
    told = sample_of(admin)
    assert (told["columns"], told["left_out"]) == (["id", "day", "city"], ["tags"])
    (part,) = told["partitions"]
    assert (part["name"], part["problem"]) == (f"day={DAY}", "")
    assert part["removed"] == [["2", DAY, None], ["3", DAY, "Rome"]]
    assert part["added"] == [["2", DAY, "Bern"], ["4", DAY, "Rome"]]


def test_of_many_new_rows_the_first_are_there(table: TableRows, admin: Caller) -> None:
    table.create()
    columns = {"id": range(1000), "city": ["Oslo"] * 1000, "tags": [None] * 1000}
    table.commit([table.file(OTHER_DAY, columns)])
    table.commit([table.file(DAY, columns), table.file(DAY, columns)])
    (part,) = sample_of(admin)["partitions"]
    assert (part["added_count"], part["removed_count"], part["removed"]) == (2000, 0, [])
    assert part["added"] == [[str(number), DAY, "Oslo"] for number in range(20)]


def test_hostile_values_are_cut_off_and_nothing_else(table: TableRows, admin: Caller) -> None:
    table.create()
    texts = hostile_texts(500)
    columns = {"id": range(500), "city": texts, "tags": [None] * 500}
    changed(table, {"id": [999], "city": ["Oslo"], "tags": [None]}, columns)
    (part,) = sample_of(admin)["partitions"]
    shown = [row[2] for row in part["added"]]
    assert shown == [each if len(each) <= 200 else f"{each[:200]}…" for each in texts[:20]]
    assert part["added_count"] == 500


def test_what_is_no_text_is_shown(table: TableRows, admin: Caller) -> None:
    table.create()
    texts = pa.array([b"\xff\xfe", b"fine"], pa.binary()).view(pa.string())
    table.commit([table.file(OTHER_DAY, {"id": [0]})])
    table.commit([table.file(DAY, {"id": [1, 2], "city": texts, "tags": [None, None]})])
    (part,) = sample_of(admin)["partitions"]
    assert [row[2] for row in part["added"]] == ["\ufffd\ufffd", "fine"]


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda path: path.write_bytes(b"PAR1 nothing PAR1"), "A file cannot be read (Arrow"),
        (lambda path: path.unlink(), "A file cannot be read (FileNotFoundError)."),
    ],
)
def test_a_broken_file_breaks_only_its_partition(
    damage: Callable[[Any], Any], problem: str, table: TableRows, admin: Caller
) -> None:
    table.create()
    table.commit([table.file(OTHER_DAY, {"id": [0]})])
    columns: dict[str, Sequence[Any]] = {"id": [1], "city": ["Oslo"], "tags": [None]}
    table.commit([table.file(DAY, columns, "data-1.parquet"), table.file(OTHER_DAY, columns)])
    damage(next(table.folder.rglob("data-1.parquet")))
    good, bad = sorted(sample_of(admin)["partitions"], key=lambda each: each["problem"])
    assert good["added"] == [["1", OTHER_DAY, "Oslo"]]
    assert bad["problem"].startswith(problem)


@pytest.mark.parametrize(
    ("name", "entry", "problem"),
    [
        ("data-1.orc", {}, "Files of the format orc are not read here."),
        ("data-1.parquet", {"_SCHEMA_ID": 1}, "A file was written with other columns"),
        ("data-1.parquet", {"_ROW_COUNT": 5}, "A file does not have the rows"),
    ],
)
def test_files_that_do_not_tell_their_rows(
    name: str, entry: dict[str, int], problem: str, table: TableRows, admin: Caller
) -> None:
    table.create()
    schema = json.loads((table.folder / "schema" / "schema-0").read_text()) | {"id": 1}
    schema["fields"] = schema["fields"][:2]
    (table.folder / "schema" / "schema-1").write_text(json.dumps(schema))
    table.commit([table.file(OTHER_DAY, {"id": [0]})])
    added = table.file(DAY, {"id": [1], "city": ["Oslo"], "tags": [None]}, name)
    added["_FILE"] |= entry
    table.commit([added])
    (part,) = sample_of(admin)["partitions"]
    assert part["problem"].startswith(problem)
    assert part["added"] == []


def test_rows_that_are_merged_from_files_are_not_told(table: TableRows, admin: Caller) -> None:
    table.create()
    path = table.folder / "schema" / "schema-0"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"primaryKeys": ["id", "day"]}))
    changed(table, {"id": [1]}, {"id": [2]})
    status, told = admin.get("sample", before=1, after=2)
    assert (status, told["code"]) == (422, "NOT_SUPPORTED")
    assert "primary key" in told["message"]


def test_an_iceberg_table(iceberg_catalog: Any, admin: Caller) -> None:
    from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC

    table = IcebergTable.create(iceberg_catalog, spec=UNPARTITIONED_PARTITION_SPEC)
    schema = table.table.schema().as_arrow()
    at = datetime(2026, 1, 31, 12)  # noqa: DTZ001 - the column's type has no time zone

    def rows(*ids: int) -> pa.Table:
        return pa.table({"id": ids, "ts": [at] * len(ids), "city": ["Oslo"] * len(ids)}, schema)

    table.table.append(rows(1, 2))
    first = table.head
    table.table.overwrite(rows(2, 3))
    asked = {"connection": "iceberg_default"}
    (part,) = sample_of(admin, first, table.head, **asked)["partitions"]
    assert part["removed"] == [["1", "2026-01-31 12:00:00.000000", "Oslo"]]
    assert part["added"] == [["3", "2026-01-31 12:00:00.000000", "Oslo"]]
    # A column is known by its id, whatever it is called by now.
    with table.table.update_schema() as change:
        change.rename_column("city", "town")
    table.table.append(rows(4).rename_columns(["id", "ts", "town"]))
    admin.app.state.service = Service()
    told = sample_of(admin, first, table.head, **asked)
    assert told["columns"] == ["id", "ts", "town"]
    assert sorted(row[0] for row in told["partitions"][0]["added"]) == ["3", "4"]
    second, (path,) = table.head, table.paths()[-1:]
    table.mark(rows=1, of=path)
    admin.app.state.service = Service()
    (part,) = sample_of(admin, second, table.head, **asked)["partitions"]
    assert "Files of deletes" in part["problem"]


def test_a_file_elsewhere_is_not_opened(
    iceberg_catalog: Any, admin: Caller, tmp_path: Path
) -> None:
    import pyarrow.parquet as pq
    from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC

    table = IcebergTable.create(iceberg_catalog, spec=UNPARTITIONED_PARTITION_SPEC)
    first = table.append(rows=1)
    fields = [
        pa.field(each.name, each.type, each.nullable) for each in table.table.schema().as_arrow()
    ]
    secret = tmp_path / "secret.parquet"
    rows = pa.table({"id": [1], "ts": [None], "city": [PASSWORD]}, pa.schema(fields))
    pq.write_table(rows, secret)
    table.table.add_files([str(secret)])
    asked = {"connection": "iceberg_default"}
    (part,) = sample_of(admin, first, table.head, **asked)["partitions"]
    assert part["problem"] == "A file lies outside of the table's folder."


def test_rows_are_for_those_who_may_change_the_connection(
    table: TableRows, users: dict[str, Any], admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.create()
    changed(table, {"id": [1]}, {"id": [2]})
    asked = {"before": 1, "after": 2}
    assert users["ADMIN"].told("compare", **asked)["sample"] is True
    monkeypatch.setenv("AIRFLOW__MERGE__UI_CONNECTIONS", "paimon_default")
    assert users["VIEWER"].told("compare", **asked)["sample"] is False
    assert users["VIEWER"].get("sample", **asked)[0] == 403
    monkeypatch.setattr(
        SimpleAuthManager, "is_authorized_connection", lambda _, method, **__: method == "GET"
    )
    assert users["ADMIN"].get("sample", **asked)[0] == 403


def test_without_the_setting_nobody_sees_rows(table: TableRows, users: dict[str, Any]) -> None:
    table.create()
    changed(table, {"id": [1]}, {"id": [2]})
    asked = {"before": 1, "after": 2}
    assert users["ADMIN"].told("compare", **asked)["sample"] is False
    assert users["ADMIN"].get("sample", **asked)[0] == 403
