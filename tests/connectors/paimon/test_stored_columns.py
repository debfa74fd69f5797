"""A file without a column of its schema, or with one of another type, is an error and never NULLs.

Spark's own reader would read NULLs, or convert the values.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.request import (
    CatalogSpec,
    JobRequest,
    Source,
    SqlSource,
    TableName,
    TableSource,
)
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import (
    Assignment,
    DeleteAction,
    DeleteSpec,
    MergeCase,
    MergeSpec,
    UpdateSpec,
)
from spark_jobs.errors import ErrorCode
from spark_jobs.run import run
from spark_jobs.spark_reads import parquet_rows
from spark_jobs.spi.connector import Connector
from tests.support.paimon_tables import NAME, append, create, read, snapshot_ids

pytestmark = pytest.mark.slow

COPY = TableName("shop", "copy")
COLUMNS = {
    "id": "int",
    "n": "bigint",
    "s": "struct<a:int,b:array<struct<c:int,d:string>>>",
    "note": "string",
}
ROWS = [{"id": i, "n": i, "s": {"a": i, "b": [{"c": i, "d": "d"}]}, "note": "x"} for i in range(20)]
WHERE = "n = 5 AND s.a >= 0 AND note = 'x'"
Change = Callable[[pa.Table], pa.Table]


def without(name: str) -> Change:
    return lambda rows: rows.drop_columns(name)


def replaced(name: str, values: Callable[[int], Any], kind: pa.DataType | None = None) -> Change:
    def change(rows: pa.Table) -> pa.Table:
        array = pa.array([values(i) for i in range(rows.num_rows)], kind)
        return rows.set_column(rows.schema.get_field_index(name), name, array)

    return change


LESS = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.struct([("c", pa.int32())])))])
DAMAGES: dict[str, tuple[Change, str]] = {
    "no column": (without("n"), "has no column n, which its schema has"),
    "no nested field": (
        replaced("s", lambda i: {"a": i, "b": [{"c": i}]}, LESS),
        "has no column s.b.element.d, which its schema has",
    ),
    "decimals for whole numbers": (
        replaced("n", lambda i: Decimal(i) / 4, pa.decimal128(9, 2)),
        "holds decimal128(9, 2) in column n, but its schema says int64",
    ),
    "smaller numbers": (
        replaced("n", lambda i: i, pa.int32()),
        "holds int32 in column n, but its schema says int64",
    ),
    "texts for numbers": (
        replaced("n", str),
        "holds string in column n, but its schema says int64",
    ),
}


@pytest.fixture(autouse=True)
def sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests put other files in place of a table's, whose sizes the metadata does not have."""
    monkeypatch.setattr(parquet_rows, "_require_planned", lambda *_: None)


@pytest.fixture
def table(connector: Connector) -> Connector:
    """A table whose deleted rows are marked, so that no file is rewritten."""
    create(connector, COLUMNS, options={"deletion-vectors.enabled": "true"})
    create(connector, COLUMNS, name=COPY)
    append(connector, ROWS)
    return connector


def damage(warehouse: Path, change: Change) -> str:
    """Replace the data file by one with other columns; its name."""
    (path,) = (warehouse / "shop.db" / "orders").rglob("*.parquet")
    changed = change(pq.read_table(path))
    pq.write_table(changed, path, store_schema=False, store_decimal_as_integer=True)
    return path.name


def ran(
    spark: SparkSession,
    warehouse: Path,
    statement: Any,
    *sources: Source,
    target: TableName | None = NAME,
) -> JobResult:
    catalog = CatalogSpec("paimon", str(warehouse))
    return run(JobRequest(str(uuid.uuid4()), target, catalog, statement, sources), spark)


def require_refused(result: JobResult, name: str, problem: str) -> None:
    assert result.error is not None
    assert result.error.code == ErrorCode.NOT_SUPPORTED.name
    assert name in result.error.message
    assert problem in result.error.message


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_statement_that_spark_reads_for(
    spark: SparkSession, warehouse: Path, table: Connector, kind: str
) -> None:
    change, problem = DAMAGES[kind]
    name = damage(warehouse, change)

    require_refused(ran(spark, warehouse, DeleteSpec("t", WHERE)), name, problem)

    assert len(snapshot_ids(table)) == 1


def test_a_file_of_an_older_schema(spark: SparkSession, warehouse: Path, table: Connector) -> None:
    from pypaimon.schema.schema_change import SchemaChange

    catalog = table.metadata._catalog  # type: ignore[attr-defined]
    catalog.alter_table(str(NAME), [SchemaChange.rename_column("n", "number")], False)
    name = damage(warehouse, without("n"))

    result = ran(spark, warehouse, DeleteSpec("t", "number >= 5"))

    require_refused(result, name, "has no column n, which its schema has")
    assert len(snapshot_ids(table)) == 1


@pytest.mark.parametrize("column", ["id", "n"])
def test_a_merge_by_few_keys(
    spark: SparkSession, warehouse: Path, table: Connector, column: str
) -> None:
    name = damage(warehouse, without(column))
    delete = MergeCase("matched", DeleteAction(), "t.n = 3")
    merge = MergeSpec("s", "t.id = s.id", (delete,), "t", "s")

    result = ran(spark, warehouse, merge, SqlSource("s", "SELECT 3 AS id"))

    require_refused(result, name, f"has no column {column}")
    assert len(snapshot_ids(table)) == 1


@pytest.mark.parametrize("sources", [(), (SqlSource("rows", "SELECT * FROM s WHERE n > 1"),)])
def test_rows_for_another_table(
    spark: SparkSession, warehouse: Path, table: Connector, sources: tuple[Source, ...]
) -> None:
    name = damage(warehouse, without("n"))
    insert = InsertIntoSpec("rows" if sources else "s")

    result = ran(spark, warehouse, insert, TableSource("s", NAME), *sources, target=COPY)

    require_refused(result, name, "has no column n")
    assert snapshot_ids(table, COPY) == []


def test_a_query(spark: SparkSession, warehouse: Path, table: Connector) -> None:
    name = damage(warehouse, without("n"))
    query = SqlSource("q", "SELECT count(*) AS c FROM s WHERE n IS NULL")

    result = ran(spark, warehouse, QuerySpec("q"), TableSource("s", NAME), query, target=None)

    require_refused(result, name, "has no column n")


def test_a_file_that_lacks_what_is_not_read(
    spark: SparkSession, warehouse: Path, table: Connector
) -> None:
    damage(warehouse, without("n"))

    result = ran(spark, warehouse, DeleteSpec("t", "id = 3 OR s.a = 5"))

    assert result.error is None, result.error
    assert result.metrics.deleted == 2


def test_a_file_that_would_be_rewritten(
    spark: SparkSession, warehouse: Path, connector: Connector
) -> None:
    create(connector, COLUMNS)
    append(connector, ROWS)
    name = damage(warehouse, without("n"))
    before = read(connector)

    result = ran(spark, warehouse, UpdateSpec("t", (Assignment("note", "'y'"),), "id = 3"))

    require_refused(result, name, "has no column n")
    assert (read(connector), len(snapshot_ids(connector))) == (before, 1)
