"""What hooks tell of Iceberg tables that pyiceberg has made, from their metadata alone."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from airflow_provider_merge.hooks.iceberg import IcebergHook
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError, RequestError
from tests.airflow.support import connection
from tests.support.iceberg_tables import IcebergTable

TABLE = "shop.orders"
DAY = (date(2026, 1, 31) - date(1970, 1, 1)).days


@pytest.fixture
def orders(iceberg_catalog: Catalog) -> IcebergTable:
    """Eight rows of two cities on one day, seven on the next, in this order."""
    table = IcebergTable.create(iceberg_catalog)
    table.append(DAY, "Oslo", rows=5)
    table.append(DAY, None, rows=3)
    table.append(DAY + 1, "Oslo", rows=7)
    return table


@pytest.fixture
def hook() -> IcebergHook:
    return IcebergHook()


def rows(hook: IcebergHook, wanted: dict[str, Any] | None = None) -> dict[str, int | None]:
    return {each.name: each.rows for each in hook.partitions(TABLE, wanted)}


def test_snapshots_come_in_the_order_of_their_history(
    orders: IcebergTable, hook: IcebergHook
) -> None:
    made = [each.snapshot_id for each in hook.snapshots(TABLE)]
    assert made == [each.snapshot_id for each in orders.table.metadata.snapshots]
    assert hook.snapshots(TABLE, since=made[0]) == [hook.snapshot(TABLE, each) for each in made[1:]]
    assert hook.snapshots(TABLE, since=datetime(2100, 1, 1, tzinfo=UTC)) == []
    assert hook.snapshot(TABLE, 7) is None


def test_a_snapshot_tells_who_made_it(orders: IcebergTable, hook: IcebergHook) -> None:
    orders.properties = {OPERATION_ID: "op", "total-records": "15"}
    snapshot_id = orders.append(DAY, "Rome")
    latest = hook.latest_snapshot(TABLE)
    assert latest is not None
    assert (latest.snapshot_id, latest.commit_kind) == (snapshot_id, "append")
    assert latest.total_record_count == 15
    assert not latest.keeps_rows
    orders.properties = {}
    orders.append(DAY, "Rome")
    target = TableName("shop", "orders")
    found = hook.recorded_result(target, "op")
    assert found is not None
    assert found.new_snapshot_id == snapshot_id
    assert hook.recorded_result(target, "of another") is None
    assert hook.recorded_result(TableName("shop", "none"), "op") is None


def test_partitions_are_named_by_the_fields_of_the_spec(
    orders: IcebergTable, hook: IcebergHook
) -> None:
    assert rows(hook) == {
        "ts_day=2026-01-31/city=NULL": 3,
        "ts_day=2026-01-31/city=Oslo": 5,
        "ts_day=2026-02-01/city=Oslo": 7,
    }
    assert set(rows(hook, {"ts_day": "2026-01-31"}).values()) == {3, 5}
    assert rows(hook, {"TS_DAY": date(2026, 2, 1), "city": "Oslo"}) == {
        "ts_day=2026-02-01/city=Oslo": 7
    }
    assert set(rows(hook, {"city": None}).values()) == {3}
    assert rows(hook, {"city": "Rome"}) == {}
    assert hook.row_count(TABLE) == 15


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        ({"ts": "2026-01-31"}, "'ts' is not a partition field of the table"),
        ({"ts_day": "soon"}, "ts_day: 'soon' is not a valid date"),
    ],
)
def test_values_that_no_partition_has(
    orders: IcebergTable, hook: IcebergHook, wanted: dict[str, str], problem: str
) -> None:
    with pytest.raises(RequestError, match=problem):
        hook.partitions(TABLE, wanted)


def test_rows_that_are_marked_as_deleted_do_not_count(
    orders: IcebergTable, hook: IcebergHook
) -> None:
    first = orders.paths()[0]
    before = orders.head
    orders.mark(DAY, "Oslo", rows=2, of=first)
    assert rows(hook, {"ts_day": "2026-01-31"}) == {
        "ts_day=2026-01-31/city=NULL": 3,
        "ts_day=2026-01-31/city=Oslo": 3,
    }
    assert hook.row_count(TABLE) == 13
    (change,) = hook.diff(TABLE, before, orders.head)
    assert (change.files_added, change.rows_before, change.rows_after) == (0, 5, 3)


@pytest.mark.parametrize("by_value", [False, True])
def test_rows_are_not_told_where_deletes_may_mark_any(
    orders: IcebergTable, hook: IcebergHook, by_value: bool
) -> None:
    orders.mark(DAY, "Oslo", rows=2, by_value=by_value)
    assert rows(hook)["ts_day=2026-01-31/city=Oslo"] is None
    assert rows(hook)["ts_day=2026-01-31/city=NULL"] == 3
    with pytest.raises(NotSupportedError, match="does not tell its number of rows"):
        hook.row_count(TABLE)


def test_two_files_of_deletes_may_mark_the_same_row(
    orders: IcebergTable, hook: IcebergHook
) -> None:
    for _ in range(2):
        orders.mark(DAY, "Oslo", rows=2, of=orders.paths()[0])
    assert rows(hook, {"city": "Oslo"})["ts_day=2026-01-31/city=Oslo"] is None


def test_a_difference_is_told_by_partition(orders: IcebergTable, hook: IcebergHook) -> None:
    before = orders.head
    orders.replace(orders.paths()[2], rows=6)
    orders.compact()
    (change,) = hook.diff(TABLE, before, orders.head)
    assert change.values == {"ts_day": "2026-02-01", "city": "Oslo"}
    assert (change.files_added, change.files_removed) == (1, 1)
    assert (change.rows_before, change.rows_after) == (7, 6)


def test_tags_and_branches(orders: IcebergTable, hook: IcebergHook) -> None:
    tagged = orders.head
    orders.table.manage_snapshots().create_tag(tagged, "v1").create_branch(tagged, "audit").commit()
    orders.append(DAY, "Rome")
    audit = IcebergTable(orders.catalog, orders.identifier, "audit")
    audit.append(DAY, "Bonn", rows=10)
    assert [(tag.name, tag.snapshot.snapshot_id) for tag in hook.tags(TABLE)] == [("v1", tagged)]
    assert hook.branches(TABLE) == ["audit"]
    assert hook.row_count(TABLE) == 16
    assert hook.row_count("shop.`orders$branch_audit`") == 25
    assert hook.snapshot(TABLE, audit.head) is None
    with pytest.raises(CatalogError, match="it has no branch none"):
        hook.table("shop.`orders$branch_none`")
    # A tag is no branch.
    with pytest.raises(CatalogError, match="it has no branch v1"):
        hook.table("shop.`orders$branch_v1`")


def test_a_namespace_of_several_levels(iceberg_catalog: Catalog, hook: IcebergHook) -> None:
    table = IcebergTable.create(iceberg_catalog, ("a", "b", "t"))
    table.append(DAY, "Oslo")
    assert hook.row_count("`a.b`.t") == 1
    with pytest.raises(CatalogError) as error:
        hook.table("a.t")
    assert error.value.code is ErrorCode.TABLE_NOT_FOUND


def test_a_table_in_another_case(orders: IcebergTable, hook: IcebergHook) -> None:
    assert hook.row_count("shop.ORDERS") == 15
    IcebergTable.create(orders.catalog, ("shop", "Orders"))
    with pytest.raises(CatalogError) as error:
        hook.table("shop.ORDERS")
    assert error.value.code is ErrorCode.TABLE_NOT_FOUND


def test_a_schema_has_the_names_of_sql(iceberg_catalog: Catalog, hook: IcebergHook) -> None:
    inner = StructType(NestedField(20, "x", DoubleType(), required=True))
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "price", DecimalType(10, 2)),
        NestedField(3, "at", TimestamptzType()),
        NestedField(4, "ok", BooleanType()),
        NestedField(5, "tags", ListType(21, StringType(), element_required=False)),
        NestedField(6, "more", MapType(22, StringType(), 23, BinaryType(), value_required=True)),
        NestedField(7, "deep", inner),
        identifier_field_ids=[1],
    )
    spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "id_bucket"))
    IcebergTable.create(iceberg_catalog, ("shop", "orders"), spec, schema, note="x")
    definition = hook.definition(TableName("shop", "orders"))
    assert definition.columns == {
        "id": "BIGINT NOT NULL",
        "price": "DECIMAL(10, 2)",
        "at": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
        "ok": "BOOLEAN",
        "tags": "ARRAY<STRING>",
        "more": "MAP<STRING, BYTES NOT NULL>",
        "deep": "ROW<`x` DOUBLE NOT NULL>",
    }
    assert definition.partition_columns == ("id_bucket",)
    assert definition.key_columns == ("id", "id")
    assert hook.schema(TABLE).options["note"] == "x"
    assert hook.latest_snapshot(TABLE) is None
    assert hook.partitions(TABLE) == []
    assert hook.row_count(TABLE) == 0


HOUR = DAY * 24 + 7
FIELDS = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "ts", TimestampType()),
    NestedField(3, "name", StringType()),
    NestedField(4, "price", DecimalType(10, 2)),
    NestedField(5, "day", DateType()),
    NestedField(6, "ok", BooleanType()),
)


@pytest.mark.parametrize(
    ("source", "transform", "stored", "text", "given"),
    [
        (2, YearTransform(), 56, "2026", 2026),
        (2, MonthTransform(), 672, "2026-01", "2026-01"),
        (2, MonthTransform(), -1, "1969-12", "1969-12"),
        (2, HourTransform(), HOUR, "2026-01-31-07", "2026-01-31-07"),
        (1, BucketTransform(4), 3, "3", "3"),
        (3, TruncateTransform(2), "Ös", "Ös", "Ös"),
        (1, IdentityTransform(), -5, "-5", -5),
        (5, IdentityTransform(), DAY, "2026-01-31", date(2026, 1, 31)),
        (2, IdentityTransform(), 10**6, "1970-01-01 00:00:01", datetime(1970, 1, 1, 0, 0, 1)),  # noqa: DTZ001
        (6, IdentityTransform(), True, "true", "TRUE"),
    ],
)
def test_values_of_each_transform(
    iceberg_catalog: Catalog,
    hook: IcebergHook,
    source: int,
    transform: Any,
    stored: Any,
    text: str,
    given: Any,
) -> None:
    field = PartitionField(source, 1000, transform, "f")
    spec = PartitionSpec(field, PartitionField(4, 1001, VoidTransform(), "gone"))
    table = IcebergTable.create(iceberg_catalog, ("shop", "orders"), spec, FIELDS)
    table.append(stored, None, rows=2)
    table.append(None, None, rows=1)
    assert rows(hook) == {f"f={text}": 2, "f=NULL": 1}
    assert rows(hook, {"f": given}) == rows(hook, {"f": text}) == {f"f={text}": 2}
    assert rows(hook, {"f": None}) == {"f=NULL": 1}


def test_files_of_an_older_spec_are_in_their_own_partitions(
    orders: IcebergTable, hook: IcebergHook
) -> None:
    with orders.table.update_spec() as update:
        update.remove_field("city")
        update.add_field("id", BucketTransform(4), "id_bucket")
    orders.append(DAY, 3, rows=9)
    assert rows(hook, {"ts_day": "2026-01-31"}) == {
        "ts_day=2026-01-31/city=NULL": 3,
        "ts_day=2026-01-31/city=Oslo": 5,
        "ts_day=2026-01-31/id_bucket=3": 9,
    }
    assert rows(hook, {"id_bucket": 3}) == {"ts_day=2026-01-31/id_bucket=3": 9}
    assert hook.row_count(TABLE) == 24


def test_what_a_compaction_would_find(orders: IcebergTable, hook: IcebergHook) -> None:
    facts = hook.compaction_facts(TABLE, {"ts_day": "2026-01-31"})
    assert [(each.name, each.files, each.joinable_files) for each in facts] == [
        ("ts_day=2026-01-31/city=NULL", 1, 1),
        ("ts_day=2026-01-31/city=Oslo", 1, 1),
    ]
    with orders.table.transaction() as change:
        change.set_properties({"write.target-file-size-bytes": "many"})
    with pytest.raises(NotSupportedError, match=r"write\.target-file-size-bytes = 'many'"):
        hook.compaction_facts(TABLE)


def test_files_of_older_specs_are_compacted_together(
    orders: IcebergTable, hook: IcebergHook
) -> None:
    with orders.table.update_spec() as update:
        update.remove_field("city")
    for _ in range(2):
        orders.append(DAY, rows=9)

    older, current = hook.compaction_facts(TABLE)

    assert (older.values, older.files, older.joinable_files, older.due.files) == ({}, 3, 3, 0)
    assert [(each.name, each.files) for each in older.stored] == [
        ("ts_day=2026-01-31/city=NULL", 1),
        ("ts_day=2026-01-31/city=Oslo", 1),
        ("ts_day=2026-02-01/city=Oslo", 1),
    ]
    assert (current.name, current.files) == ("ts_day=2026-01-31", 2)
    # A compaction of some partitions leaves them alone.
    assert hook.compaction_facts(TABLE, {"ts_day": "2026-01-31"}) == [current]
    with orders.table.update_spec() as update:
        update.remove_field("ts_day")
    (everything,) = hook.compaction_facts(TABLE)
    assert (everything.files, everything.due.files) == (5, 5)


@pytest.mark.parametrize("workspace", ["gs://bucket/work", "relative"])
def test_pages_need_no_workspace(
    orders: IcebergTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workspace: str
) -> None:
    extra = {"type": "sql", "workspace": workspace}
    host = f"sqlite:///{tmp_path}/catalog.db"
    connection(monkeypatch, "iceberg_default", conn_type="iceberg", host=host, extra=extra)
    hook = IcebergHook("iceberg_default")

    facts = hook.page_facts(hook.table(TABLE))

    assert facts.holds() == []
    assert facts.expiry(int(time.time() * 1000)).expiring == []


def test_the_catalog_is_reached(orders: IcebergTable, hook: IcebergHook) -> None:
    is_reached, text = hook.test_connection()
    assert is_reached
    assert "Its namespaces: shop." in text
