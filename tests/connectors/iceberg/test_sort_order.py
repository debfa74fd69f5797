"""New files are sorted by the table's sort order, and files record which order they have."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.connectors.iceberg.direct import DirectWrite
from tests.connectors.iceberg.plain_tables import PlainCatalog
from tests.connectors.iceberg.tables import done_here
from tests.judge.iceberg_spark import CATALOG, IcebergSpark

# What Iceberg's Spark computes of rows, and the field of the sort order without and with direction.
ORDER = (
    ("f", "f", "DESC NULLS LAST"),
    (f"{CATALOG}.system.bucket(3, k)", "bucket(3, k)", "ASC NULLS LAST"),
    (f"{CATALOG}.system.truncate(1, s)", "truncate(1, s)", "DESC NULLS FIRST"),
    (f"{CATALOG}.system.months(at)", "months(at)", "ASC NULLS FIRST"),
    (f"{CATALOG}.system.truncate(1, b)", "truncate(1, b)", "DESC NULLS FIRST"),
    ("b", "b", "ASC NULLS FIRST"),
    ("d", "d", "ASC NULLS LAST"),
)
# So few values that every field decides; an index that is too high gives NULL.
SOURCE = """
    SELECT k, get(array(DOUBLE('NaN'), -0.0D, 0.0D, -1D), h % 5) AS f,
        get(array('', 'ä', 'äx', '\U0001f600', '\uffee'), int(h DIV 5 % 6)) AS s,
        get(array(TIMESTAMP'1969-12-31 23:00:00', TIMESTAMP'1970-01-01 01:00:00'),
            int(h DIV 30 % 3)) AS at,
        get(array(X'', X'7F', X'80', X'80FF'), int(h DIV 90 % 5)) AS b,
        get(array(-1.10, -1.09, 20.00), int(h DIV 450 % 4)) AS d
    FROM (SELECT IF(id % 9 = 0, NULL, id) AS k, abs(hash(id)) AS h FROM range(2500))
"""


@pytest.mark.slow
def test_fields_of_all_types_sort_as_iceberg_sorts_them(
    spark: SparkSession, iceberg_spark: IcebergSpark
) -> None:
    table = f"{CATALOG}.db.sorted"
    iceberg_spark.sql(
        f"CREATE TABLE {table} (k BIGINT, f DOUBLE, s STRING, at TIMESTAMP, b BINARY, "
        "d DECIMAL(9, 2)) USING iceberg PARTITIONED BY (bucket(2, k))",
        f"ALTER TABLE {table} WRITE ORDERED BY "
        + ", ".join(f"{field} {direction}" for _, field, direction in ORDER),
    )

    done_here(spark, iceberg_spark, "INSERT INTO db.sorted SELECT * FROM s", SOURCE)

    values = ", ".join(f"{value} AS v{n}" for n, (value, _, _) in enumerate(ORDER))
    rows = f"SELECT _file, _pos, {values} FROM {table}"
    by = [f"v{n} {direction}" for n, (_, _, direction) in enumerate(ORDER)]
    # Spark takes 0.0 and -0.0 for equal; Iceberg does not.
    by.insert(1, "string(v0) = '-0.0'")
    kept, sorted_rows = (
        [
            tuple(map(str, list(row.values())[2:]))
            for row in iceberg_spark.sql(f"{rows} ORDER BY _file, {order}")
        ]
        for order in ("_pos", ", ".join(by))
    )
    assert len(kept) == 2500
    assert kept == sorted_rows
    assert len(set(kept)) > 1000
    # The buckets are 0, 1 and NULL.
    assert recorded(iceberg_spark, "sorted") == {1: 3}


def recorded(judge: IcebergSpark, table: str) -> Counter[int]:
    """How many data files record a sort order."""
    rows = judge.sql(f"SELECT sort_order_id AS n FROM {CATALOG}.db.{table}.data_files")
    return Counter(row["n"] for row in rows)


def descents(judge: IcebergSpark, table: str) -> Counter[bool]:
    """How many data files have, or do not have, the column ``k`` in descending order."""
    files = judge.sql(f"SELECT file_path FROM {CATALOG}.db.{table}.data_files")
    found = [
        pq.read_table(each["file_path"].removeprefix("file:")).column("k").to_pylist()
        for each in files
    ]
    return Counter(each == sorted(each, reverse=True) for each in found)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_merged_rows_are_in_order_where_files_say_so(
    spark: SparkSession, iceberg_spark: IcebergSpark, mode: str
) -> None:
    table = f"sorted_{mode.replace('-', '_')}"
    iceberg_spark.sql(
        f"CREATE TABLE {CATALOG}.db.{table} (id BIGINT, k BIGINT, v BIGINT) USING iceberg "
        f"TBLPROPERTIES ('write.merge.mode' = '{mode}')",
        f"ALTER TABLE {CATALOG}.db.{table} WRITE ORDERED BY k DESC",
    )
    source = "SELECT id, pmod(hash(id), 1000) AS k, 0L AS v FROM range({})"
    merge = (
        f"MERGE INTO db.{table} t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET {{}} "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    done_here(spark, iceberg_spark, f"INSERT INTO db.{table} SELECT * FROM s", source.format("300"))
    few = source.format("290, 315")

    # A source that is small beside the target is looked up by the tasks that read it.
    done_here(spark, iceberg_spark, merge.format("v = s.v + 1"), few)
    looked_up = recorded(iceberg_spark, table)
    assert descents(iceberg_spark, table) == {True: looked_up[1]}
    assert looked_up.keys() == {1}
    done_here(spark, iceberg_spark, merge.format("v = s.v + 2"), source.format("250, 350"))
    joined = recorded(iceberg_spark, table)
    assert descents(iceberg_spark, table) == {True: joined[1]}
    assert joined.keys() == {1}
    # Rows that get other keys where they are leave the order.
    some = source.format("270, 280")
    done_here(spark, iceberg_spark, merge.format("k = 1000 + t.id * 37 % 100"), some)
    moved = recorded(iceberg_spark, table)
    assert descents(iceberg_spark, table)[False] <= moved[0]
    assert (moved[0] > 0) == (mode == "copy-on-write")
    rows = iceberg_spark.sql(f"SELECT id, v, k >= 1000 AS moved FROM {CATALOG}.db.{table}")
    assert sorted(tuple(row.values()) for row in rows) == [
        (each, 2 if 250 <= each < 315 else 0, 270 <= each < 280) for each in range(350)
    ]


_SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string()), ("old", pa.int32())])


@pytest.fixture
def ordered(tmp_path: Path) -> PlainCatalog:
    """A file of three rows that is sorted by ``id`` and then ``s``."""
    catalog = PlainCatalog(tmp_path)
    catalog.create(_SCHEMA, {"format-version": "2"}, None)
    sort_by(catalog, "id", "s")
    DirectWrite(catalog.open()).insert(*({"id": n, "s": "x", "old": n} for n in range(3))).publish()
    return catalog


def sort_by(catalog: PlainCatalog, *columns: str) -> None:
    from pyiceberg.transforms import IdentityTransform

    with catalog.library().load_table(("db", "t")).update_sort_order() as update:
        for column in columns:
            update.asc(column, IdentityTransform())


def order_of(catalog: PlainCatalog) -> list[int]:
    files = catalog.library().load_table(("db", "t")).inspect.data_files()
    return files.column("sort_order_id").to_pylist()


def test_a_file_that_loses_rows_stays_in_its_order(ordered: PlainCatalog) -> None:
    assert order_of(ordered) == [1]

    DirectWrite(ordered.open()).delete(0, 1).publish()

    assert order_of(ordered) == [1]


def test_a_file_with_other_values_of_its_order_has_none(ordered: PlainCatalog) -> None:
    DirectWrite(ordered.open()).update(0, 1, "a").publish()

    assert order_of(ordered) == [0]


def test_a_file_keeps_the_order_that_the_table_had(ordered: PlainCatalog) -> None:
    sort_by(ordered, "s")

    DirectWrite(ordered.open()).delete(0, 1).publish()

    assert order_of(ordered) == [1]


def test_a_file_of_an_order_by_a_column_that_is_gone_has_none(ordered: PlainCatalog) -> None:
    sort_by(ordered, "old")
    DirectWrite(ordered.open()).delete(0, 0, 1, 2).insert({"id": 1, "s": "x", "old": 1}).publish()
    assert order_of(ordered) == [2]
    sort_by(ordered, "id")
    with ordered.library().load_table(("db", "t")).update_schema() as update:
        update.delete_column("old")
    DirectWrite(ordered.open()).insert({"id": 2, "s": "x"}, {"id": 3, "s": "x"}).publish()

    write = DirectWrite(ordered.open())
    (older,) = (each.ordinal for each in write.files if each.row_count == 1)
    write.update(older, 0, "new").publish()

    assert sorted(order_of(ordered)) == [0, 3]


@pytest.mark.parametrize(("transform", "column"), [("identity", "n.x")])
def test_orders_that_are_not_supported_are_not_recorded(
    tmp_path: Path, transform: str, column: str
) -> None:
    from pyiceberg.transforms import parse_transform

    catalog = PlainCatalog(tmp_path)
    kinds = {"b": pa.binary(), "n": pa.struct([("x", pa.int32())])}
    table = catalog.create(pa.schema(kinds), {"format-version": "2"}, None)
    with table.update_sort_order() as update:
        update.asc(column, parse_transform(transform))

    DirectWrite(catalog.open()).insert({"b": b"1", "n": {"x": 1}}).publish()

    assert order_of(catalog) == [0]
