"""Tables that Spark with Iceberg makes, and how this project reads them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.connectors.iceberg.read.scan import IcebergScan, Reader
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.runtime.session import fixed_settings, meaningful_settings
from spark_jobs.run import run
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.rows import ROW_ID
from tests.judge.iceberg_spark import CATALOG, IcebergSpark

READERS: Sequence[Reader] = ("spark", "pyarrow")


def catalog_of(judge: IcebergSpark) -> CatalogSpec:
    return CatalogSpec("iceberg", str(judge.warehouse), judge.options)


def opened(judge: IcebergSpark) -> Connector:
    return open_connector(catalog_of(judge), {})


def done_here(
    spark: SparkSession, judge: IcebergSpark, text: str, source: str, **options: Any
) -> JobResult:
    """Run a statement of SQL whose source ``s`` is a query."""
    return statement_done(spark, catalog_of(judge), text, source, {}, **options)


def statement_done(
    spark: SparkSession,
    catalog: CatalogSpec,
    text: str,
    source: str,
    credentials: Mapping[str, str],
    **options: Any,
) -> JobResult:
    """The same in any catalog; ``options`` are those of the job."""
    parsed = parse_statement(text, ["s"])
    request = JobRequest(
        operation_id=str(uuid.uuid4()),
        target=parsed.target,
        catalog=catalog,
        statement=parsed.statement,
        sources=(SqlSource("s", source), *parsed.sources),
        options=JobOptions(**options),
    )
    result = run(request, spark, credentials)
    assert result.error is None, result.error
    return result


def rows_here(
    spark: SparkSession, connector: Connector, name: TableName, reader: Reader
) -> list[dict[str, Any]]:
    """The rows by one of the readers."""
    table = connector.metadata.load_table(name)
    files = connector.metadata.plan_files(table)
    with fixed_settings(spark, meaningful_settings("UTC")):
        frame = IcebergScan(reader).read(spark, table, files, table.column_names)
        found = [row.asDict(recursive=True) for row in frame.collect()]
    ids = [(row[ROW_ID]["file"], row[ROW_ID]["position"]) for row in found]
    assert len(set(ids)) == len(ids)
    return [{k: v for k, v in row.items() if k != ROW_ID} for row in found]


def assert_read_alike(spark: SparkSession, judge: IcebergSpark, table: str) -> int:
    """Check that both readers read what Iceberg reads; the number of rows."""
    wanted = sorted(map(repr, judge.sql(f"SELECT * FROM {CATALOG}.{table}")))
    connector = opened(judge)
    name = TableName.parse(table.replace(".branch_", "$branch_"))
    for reader in READERS:
        assert sorted(map(repr, rows_here(spark, connector, name, reader))) == wanted, reader
    return len(wanted)
