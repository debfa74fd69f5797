"""Retries of a batch that drops what it made: no statement before the drop is done again."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.inserts import InsertIntoSpec, NewTable
from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.request import (
    CatalogSpec,
    JobRequest,
    Origin,
    SqlSource,
    TableName,
    TableSource,
)
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.run import run, run_all

STAGE, ALL = TableName("shop", "stage"), TableName("shop", "all")
BOTH = (TableSource("t", STAGE), SqlSource("q", "SELECT * FROM t"))
CREATED = CreateTableSpec((ColumnSpec("id", "INT"),))


def _values(number: int) -> tuple[SqlSource]:
    return (SqlSource("q", f"SELECT {number} AS id"),)


def _statements(of: str) -> list[tuple[TableName, Any, tuple[Any, ...]]]:
    """Rows of a table that is made, read and dropped, twice; each table as ``of`` says."""
    found: list[tuple[TableName, Any, tuple[Any, ...]]] = []
    for number in (1, 2):
        if of == "query":
            found.append((STAGE, InsertIntoSpec("q", new_table=NewTable()), _values(number)))
        else:
            found += [(STAGE, CREATED, ()), (STAGE, InsertIntoSpec("q"), _values(number))]
        found += [(ALL, InsertIntoSpec("q"), BOTH), (STAGE, DropTableSpec(), ())]
    return found


def _batch(catalog: CatalogSpec, of: str, tries: int, last: str) -> JobBatch:
    statements = [*_statements(of), (ALL, InsertIntoSpec("q"), (SqlSource("q", last),))]
    requests = (
        JobRequest(
            *(f"op-{at}", target, catalog, spec, sources),
            origin=Origin("dag", "run", "all", try_number=tries, retries=3, statement=f"s-{at}"),
        )
        for at, (target, spec, sources) in enumerate(statements)
    )
    return JobBatch("batch", tuple(requests))


def _rows(spark: SparkSession, catalog: CatalogSpec, name: TableName) -> list[Any] | None:
    sources = (TableSource("t", name), SqlSource("q", "SELECT * FROM t ORDER BY id"))
    done = run(JobRequest("read", None, catalog, QuerySpec("q", limit=100), sources), spark)
    return None if done.query is None else [row[0] for row in done.query.rows or ()]


@pytest.mark.parametrize("of", ["query", "definition"])
def test_a_retry_makes_no_table_again_that_was_dropped_since(
    spark: SparkSession, catalog: CatalogSpec, of: str
) -> None:
    made = run(JobRequest("made", ALL, catalog, CREATED), None)
    assert made.status == "committed", made.error
    failed = run_all(_batch(catalog, of, 1, "SELECT nothing AS id"), spark)
    assert [each.error.code for each in failed.values() if each.error] == ["SOURCE_UNREADABLE"]
    assert _rows(spark, catalog, ALL) == [1, 2]

    done = run_all(_batch(catalog, of, 2, "SELECT 3 AS id"), spark)

    assert {each.error for each in done.values()} == {None}
    assert _rows(spark, catalog, ALL) == [1, 2, 3]
    assert _rows(spark, catalog, STAGE) is None
