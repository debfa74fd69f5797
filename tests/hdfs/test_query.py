"""A query of a table in HDFS: a few rows into the result, all rows into files in HDFS."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.hdfs_options import HdfsOptions
from spark_jobs.contract.query import QueryReport, QuerySpec
from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin, SqlSource, TableSource
from spark_jobs.run import run
from spark_jobs.storage.hdfs import hdfs_filesystem
from tests.judge.hdfs_server import Hdfs
from tests.support.paimon_tables import NAME, append, create


def found(
    spark: SparkSession, catalog: CatalogSpec, try_number: int = 1, **spec: Any
) -> QueryReport:
    query = SqlSource("query", "SELECT id FROM orders ORDER BY id DESC")
    request = JobRequest(
        "query-1",
        None,
        catalog,
        QuerySpec("query", limit=2, **spec),
        (TableSource("orders", NAME), query),
        origin=Origin(try_number=try_number),
    )
    result = run(request, spark)
    assert result.error is None, result.error
    assert result.query is not None
    return result.query


@pytest.mark.slow
def test_rows_in_the_result_and_in_files(hdfs: Hdfs, spark: SparkSession) -> None:
    catalog = hdfs.new_catalog()
    connector = open_connector(catalog, {})
    create(connector, {"id": "int"})
    append(connector, [{"id": each} for each in range(3)])
    output = f"{hdfs.new_warehouse()}/reports"

    first = found(spark, catalog)
    found(spark, catalog, try_number=2, output_path=output)
    last = found(spark, catalog, try_number=3, output_path=output)

    assert (first.rows, first.truncated) == (((2,), (1,)), True)
    assert (last.row_count, last.rows) == (3, None)
    folders = hdfs.client().list_status(output.removeprefix(hdfs.uri))
    assert [f"{hdfs.uri}{each.path}" for each in folders] == [last.location]
    filesystem = hdfs_filesystem(HdfsOptions.of(hdfs.uri, {}))
    path = str(last.location).removeprefix("hdfs://")
    assert pq.read_table(path, filesystem=filesystem)["id"].to_pylist() == [2, 1, 0]
