"""A query of a table on S3: a few rows into the result, all rows into files on S3."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.query import QueryReport, QuerySpec
from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin, SqlSource, TableSource
from spark_jobs.run import run
from tests.support.paimon_tables import NAME, append, create
from tests.support.stores import ObjectStore

pytestmark = pytest.mark.slow


@pytest.fixture
def catalog(store: ObjectStore) -> CatalogSpec:
    """A table with the rows 0, 1 and 2."""
    catalog = store.new_catalog()
    connector = open_connector(catalog, store.credentials)
    create(connector, {"id": "int", "v": "string"})
    append(connector, [{"id": each, "v": f"v{each}"} for each in range(3)], "op")
    return catalog


def found(
    spark: SparkSession, store: ObjectStore, catalog: CatalogSpec, try_number: int = 1, **spec: Any
) -> QueryReport:
    request = JobRequest(
        "query-1",
        None,
        catalog,
        QuerySpec("query", limit=2, **spec),
        (
            TableSource("orders", NAME),
            SqlSource("query", "SELECT id, v FROM orders ORDER BY id DESC"),
        ),
        origin=Origin(try_number=try_number),
    )
    result = run(request, spark, store.credentials)
    assert result.error is None, result.error
    assert result.query is not None
    return result.query


def test_the_first_rows_are_in_the_result(
    spark: SparkSession, store: ObjectStore, catalog: CatalogSpec
) -> None:
    report = found(spark, store, catalog)

    assert report.rows == ((2, "v2"), (1, "v1"))
    assert report.truncated


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_all_rows_are_in_the_files_of_the_last_try(
    spark: SparkSession, store: ObjectStore, catalog: CatalogSpec, scheme: str
) -> None:
    output = f"{scheme}://{store.new_bucket()}/reports/orders"
    found(spark, store, catalog, output_path=output)
    report = found(spark, store, catalog, try_number=2, output_path=output)

    assert (report.row_count, report.rows, report.truncated) == (3, None, False)
    location = str(report.location).removeprefix(f"{scheme}://")
    bucket, _, folder = location.partition("/")
    files = store.keys(bucket)
    assert [key for key in files if not key.startswith(f"{folder}/")] == []
    rows = pq.read_table(location, filesystem=store.filesystem()).to_pylist()
    assert rows == [{"id": 2, "v": "v2"}, {"id": 1, "v": "v1"}, {"id": 0, "v": "v0"}]
