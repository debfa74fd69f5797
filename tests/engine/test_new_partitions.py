"""How many partitions a statement may add."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import (
    Assignment,
    ColumnSpec,
    CreateTableSpec,
    MergeSpec,
    Statement,
    UpdateSpec,
)
from spark_jobs.run import run
from tests.conformance.behaviour import insert, not_matched
from tests.connectors.iceberg.plain_tables import PlainCatalog

NAME = TableName("db", "t")
TYPES = {
    "day": "DATE",
    "number": "INT",
    "share": "DECIMAL(10, 2)",
    "name": "STRING",
    "at": "TIMESTAMP",
    "v": "INT",
}
ROWS = """SELECT date_add(DATE'2026-01-01', CAST(id AS INT)) AS day, CAST(id AS INT) AS number,
    CAST(id / 2 AS DECIMAL(10, 2)) AS share, concat('n', id) AS name,
    timestamp_seconds(id * 90000) AS at, 1 AS v FROM range({}, {})"""
MERGE = MergeSpec(
    "s",
    "t.number = s.number",
    (not_matched(insert({name: f"s.{name}" for name in TYPES})),),
    "t",
    "s",
)
UPDATE = UpdateSpec("t", (Assignment("v", "v + 1"),))

Run = Callable[..., JobResult]


@pytest.fixture
def table(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Run:
    """Runs a statement on a table with three partitions, by the format and the key of the test.

    Its source ``s`` has rows of the partitions ``first`` to ``last``.
    """
    connector, key = request.param
    spec = CatalogSpec("paimon", str(tmp_path))
    if connector == "iceberg":
        spec = CatalogSpec("iceberg", str(tmp_path), PlainCatalog(tmp_path).options)
        PlainCatalog(tmp_path).library().create_namespace("db")

    def ran(statement: Statement, first: int, last: int, most: int | None = None) -> JobResult:
        source = SqlSource("s", ROWS.format(first, last))
        options = JobOptions(max_new_partitions=most)
        name = f"{statement.kind}-{first}-{last}-{most}"
        return run(JobRequest(name, NAME, spec, statement, (source,), options), spark)

    columns = tuple(ColumnSpec(name, kind) for name, kind in TYPES.items())
    created = CreateTableSpec(columns, (key,))
    assert open_connector(spec, {}).metadata.create_table(NAME, created)
    assert ran(InsertIntoSpec("s"), 0, 3).error is None
    return ran


KINDS = [
    *(("paimon", name) for name in ("day", "share")),
    *(("iceberg", name) for name in ("share", "at", "day(at)")),
]


@pytest.mark.slow
@pytest.mark.parametrize("table", KINDS, ids=map(" ".join, KINDS), indirect=True)
def test_partitions_that_are_there_may_change(table: Run) -> None:
    assert table(UPDATE, 0, 3, most=1).error is None
    assert table(InsertIntoSpec("s"), 0, 3, most=1).error is None


def files_of(warehouse: Path) -> list[Path]:
    data = (each for each in warehouse.rglob("*") if "_operations" not in each.parts)
    return sorted(each for each in data if each.is_file())


TWO_KINDS = [("paimon", "day"), ("iceberg", "at")]


@pytest.mark.slow
@pytest.mark.parametrize("table", TWO_KINDS, ids=map(" ".join, TWO_KINDS), indirect=True)
@pytest.mark.parametrize("statement", [InsertIntoSpec("s"), MERGE], ids=["insert", "merge"])
def test_too_many_new_partitions(table: Run, statement: Statement, tmp_path: Path) -> None:
    before = files_of(tmp_path)

    result = table(statement, 2, 10, most=3)

    assert result.error is not None
    assert result.error.code == "TOO_MANY_PARTITIONS"
    assert "more than the 3 allowed" in result.error.message
    assert files_of(tmp_path) == before
    assert table(statement, 2, 10, most=7).metrics.partitions_changed in (7, 8)


NUMBERS = [("paimon", "number"), ("iceberg", "number")]


@pytest.mark.slow
@pytest.mark.parametrize("table", NUMBERS, ids=map(" ".join, NUMBERS), indirect=True)
def test_a_thousand_without_a_word(table: Run) -> None:
    result = table(InsertIntoSpec("s"), 3, 1004)

    assert result.error is not None
    assert "add 1001 partitions by number to db.t" in result.error.message
    assert result.error.message.count("number=") == 3
