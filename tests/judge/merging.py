"""Runs statements of this project on a warehouse; the source of a MERGE is an Arrow table."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.contract.inserts import (
    InsertIntoSpec,
    InsertOverwriteSpec,
    OverwriteMode,
    TruncateTableSpec,
)
from spark_jobs.contract.options import Isolation, JobOptions
from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.request import (
    CatalogSpec,
    FileSource,
    JobRequest,
    Source,
    SqlSource,
    TableName,
    TableSource,
)
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import (
    Assignment,
    Cardinality,
    DeleteSpec,
    MergeCase,
    MergeSpec,
    Statement,
    UpdateSpec,
)
from spark_jobs.run import run
from tests.judge.tables import Warehouse
from tests.support.judged_values import Row, from_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def merge(
    spark: SparkSession,
    warehouse: Warehouse,
    source: pa.Table,
    cases: Sequence[MergeCase],
    *,
    on: str = "t.id = s.id",
    table: str = "d.t",
    aliases: tuple[str, str] = ("t", "s"),
    cardinality: Cardinality = "effective",
    evolves: bool = False,
    isolation: Isolation | None = None,
) -> JobResult:
    """``MERGE INTO table t USING source s ON on`` with the clauses; ``evolves``: the schema."""
    file = warehouse.path.parent / f"source-{uuid.uuid4()}.parquet"
    pq.write_table(source, file)
    statement = MergeSpec("s", on, tuple(cases), *aliases, cardinality, evolves)
    source_file, options = FileSource("s", str(file), "parquet"), JobOptions(isolation=isolation)
    return _run(spark, warehouse, table, statement, source_file, options=options)


def merge_query(
    spark: SparkSession, warehouse: Warehouse, query: str, cases: Sequence[MergeCase]
) -> JobResult:
    """``MERGE INTO d.t t USING (query) s ON t.id = s.id`` with the clauses."""
    statement = MergeSpec("s", "t.id = s.id", tuple(cases), "t", "s")
    return _run(spark, warehouse, "d.t", statement, SqlSource("s", query))


def merge_table(
    spark: SparkSession,
    warehouse: Warehouse,
    source: str,
    cases: Sequence[MergeCase],
    *,
    on: str,
    table: str = "d.t",
) -> JobResult:
    """``MERGE INTO table t USING source s ON on``; the source is a table, too."""
    statement = MergeSpec("s", on, tuple(cases), "t", "s")
    return _run(spark, warehouse, table, statement, TableSource("s", TableName.parse(source)))


def delete(spark: SparkSession, warehouse: Warehouse, where: str, table: str = "d.t") -> JobResult:
    """``DELETE FROM table t WHERE where``."""
    return _run(spark, warehouse, table, DeleteSpec("t", where))


def update(
    spark: SparkSession,
    warehouse: Warehouse,
    assignments: Mapping[str, str],
    where: str,
    table: str = "d.t",
) -> JobResult:
    """``UPDATE table t SET column = expression ... WHERE where``."""
    pairs = tuple(Assignment(column, value) for column, value in assignments.items())
    return _run(spark, warehouse, table, UpdateSpec("t", pairs, where))


def overwrite(
    spark: SparkSession,
    warehouse: Warehouse,
    source: pa.Table,
    mode: OverwriteMode,
    partition: Mapping[str, str] | None = None,
    table: str = "d.t",
) -> JobResult:
    """``INSERT OVERWRITE table PARTITION (partition) BY NAME`` the rows of ``source``."""
    file = warehouse.path.parent / f"source-{uuid.uuid4()}.parquet"
    pq.write_table(source, file)
    statement = InsertOverwriteSpec("s", mode, dict(partition or {}), by_name=True)
    return _run(spark, warehouse, table, statement, FileSource("s", str(file), "parquet"))


def insert(
    spark: SparkSession, warehouse: Warehouse, source: pa.Table, table: str = "d.t"
) -> JobResult:
    """``INSERT INTO table BY NAME`` the rows of ``source``."""
    file = warehouse.path.parent / f"source-{uuid.uuid4()}.parquet"
    pq.write_table(source, file)
    statement = InsertIntoSpec("s", {}, by_name=True)
    return _run(spark, warehouse, table, statement, FileSource("s", str(file), "parquet"))


def selected(spark: SparkSession, warehouse: Warehouse, table: str) -> list[Row]:
    """The rows of a table as this project reads them."""
    output = warehouse.path.parent / f"output-{uuid.uuid4()}"
    output.mkdir()
    source = TableSource("s", TableName.parse(table))
    result = _run(spark, warehouse, None, QuerySpec("s", output_path=str(output)), source)
    assert result.error is None, result.error
    assert result.query is not None
    return from_arrow(pq.read_table(result.query.location))


def truncate(
    spark: SparkSession, warehouse: Warehouse, partition: Mapping[str, str], table: str = "d.t"
) -> JobResult:
    """``TRUNCATE TABLE table PARTITION (partition)``."""
    return _run(spark, warehouse, table, TruncateTableSpec(dict(partition)))


def _run(
    spark: SparkSession,
    warehouse: Warehouse,
    table: str | None,
    statement: Statement,
    *sources: Source,
    options: JobOptions | None = None,
) -> JobResult:
    request = JobRequest(
        operation_id=str(uuid.uuid4()),
        target=None if table is None else TableName.parse(table),
        catalog=CatalogSpec("paimon", str(warehouse.path)),
        statement=statement,
        sources=sources,
        options=options or JobOptions(),
    )
    return run(request, spark)
