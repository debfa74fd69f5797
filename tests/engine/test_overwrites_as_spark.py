"""INSERT OVERWRITE under Spark's dynamic mode: no rows replace nothing."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.contract.inserts import InsertIntoSpec, InsertOverwriteSpec
from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource, TableName, TableSource
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.run import run

COLUMNS = (ColumnSpec("id", "INT"), ColumnSpec("p", "STRING"))
BOTH = [(1, "a"), (2, "b")]


def rows(spark: SparkSession, catalog: CatalogSpec, name: TableName) -> list[Any]:
    sources = (TableSource("t", name), SqlSource("q", "SELECT id, p FROM t ORDER BY id"))
    done = run(JobRequest("read", None, catalog, QuerySpec("q", limit=100), sources), spark).query
    assert done is not None
    return [tuple(each) for each in done.rows or ()]


def test_what_dynamic_overwrites_replace(spark: SparkSession, catalog: CatalogSpec) -> None:
    some, none = "SELECT 9 AS id, 'a' AS p", "SELECT 9 AS id, 'a' AS p WHERE false"
    cases: list[tuple[tuple[str, ...], dict[str, str], str, list[Any]]] = [
        ((), {}, none, BOTH),
        ((), {}, some, [(9, "a")]),
        (("p",), {"p": "'a'"}, none, BOTH),
        (("p",), {"p": "'a'"}, some, [(2, "b"), (9, "a")]),
        (("p",), {}, none, BOTH),
    ]
    for number, (keys, partition, query, expected) in enumerate(cases):
        name = TableName("shop", f"t{number}")
        overwrite = InsertOverwriteSpec("q", "dynamic", partition, whole_if_unpartitioned=True)
        requests = (
            JobRequest(f"c{number}", name, catalog, CreateTableSpec(COLUMNS, keys)),
            JobRequest(
                *(f"i{number}", name, catalog, InsertIntoSpec("q")),
                (SqlSource("q", "SELECT * FROM VALUES (1, 'a'), (2, 'b') AS v (id, p)"),),
            ),
            JobRequest(f"o{number}", name, catalog, overwrite, (SqlSource("q", query),)),
        )
        for each in requests:
            done = run(each, spark)
            assert done.error is None, (number, done.error)
        assert rows(spark, catalog, name) == expected, number
