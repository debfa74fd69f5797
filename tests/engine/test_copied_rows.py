"""INSERT from a table whose columns are copied as they are: the same rows, in few files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from spark_jobs.contract.inserts import InsertIntoSpec, InsertOverwriteSpec
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.request import JobRequest, TableName, TableSource
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec, DeleteSpec
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.errors import ErrorCode
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import ColumnRange
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import NESTED, ORDERS, VALUES, SeedTable

MakeTable = Callable[..., Harness]
COPY = TableName("db", "copy")
# Bytes of new files: so few that no task writes more files than clustering would.
SMALL = 1_000

# Without VARCHAR(n), whose values are checked and so not copied.
PLAIN = SeedTable(
    "plain",
    tuple(column for column in VALUES.columns if column.name != "code"),
    tuple(
        tuple({name: row[name] for name in row if name != "code"} for row in file)
        for file in VALUES.files
    ),
)


# Files with one day each: their statistics tell which partitions a copy has.
DAILY = SeedTable(
    "daily",
    (ColumnSpec("id", "BIGINT"), ColumnSpec("p", "INT")),
    tuple(tuple({"id": 10 * day + i, "p": day} for i in range(3)) for day in (1, 2, 3)),
)


class OnlyOnePass:
    """A scan that can only be read without the JVM; ``read_columns`` are those of each reading."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.read_columns: list[list[str]] = []

    def arrow_rows(self, spark: Any, table: Any, files: Any, columns: Any) -> Any:
        self.read_columns.append(list(columns))
        return self._real.arrow_rows(spark, table, files, columns)

    def read(self, spark: Any, table: Any, files: Any, columns: Any) -> Any:
        return self._real.read(spark, table, (), columns)


class WrongStatistics:
    """Metadata that tells of each file that it has the day after the one that it has."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def plan_files(self, table: Any) -> Any:
        files = self._real.plan_files(table)
        return tuple(replace(file, ranges={"p": _next_day(file.ranges["p"])}) for file in files)


def _next_day(known: ColumnRange) -> ColumnRange:
    return ColumnRange(known.minimum + 1, known.maximum + 1, known.null_count)


def attempted(connector: Connector, harness: Harness, statement: Any, **options: Any) -> Any:
    sources = (TableSource("s", TARGET),)
    request = JobRequest("copy", COPY, harness.catalog, statement, sources, JobOptions(**options))
    return Job(request, harness.spark, connector).run()


def run(connector: Connector, harness: Harness, statement: Any, **options: Any) -> Any:
    result = attempted(connector, harness, statement, **options)
    assert result.error is None, result.error
    return result


def copy_of(harness: Harness, table: SeedTable, keys: tuple[str, ...]) -> Connector:
    """An empty table like the harness' own, and a connector that reads in one pass alone."""
    connector = harness.open()
    connector.metadata.create_table(COPY, CreateTableSpec(table.columns, keys))
    return replace(connector, scan=OnlyOnePass(connector.scan))


def same_by_spark(harness: Harness) -> bool:
    """Whether Spark finds the same rows in both tables."""
    real, frames = harness.open(), []
    for name in (TARGET, COPY):
        table = real.metadata.load_table(name)
        files = real.metadata.plan_files(table)
        frame = real.scan.read(harness.spark, table, files, table.column_names)
        frames.append(frame.drop("__merge_row_id"))
    one, other = frames
    # As text: a map has no equality.
    texts = [frame.selectExpr("to_json(struct(*)) AS row") for frame in (one, other)]
    return texts[0].exceptAll(texts[1]).isEmpty() and texts[1].exceptAll(texts[0]).isEmpty()


@pytest.mark.slow
@pytest.mark.parametrize("table", [ORDERS, PLAIN, NESTED], ids=["orders", "values", "nested"])
def test_every_row_is_copied(make_table: MakeTable, table: SeedTable) -> None:
    harness = make_table("append-cow", table, partitioned=True)
    keys = ("p",)
    connector = copy_of(harness, table, keys)

    result = run(connector, harness, InsertIntoSpec("s"), target_file_size=SMALL)

    assert result.metrics.inserted == result.metrics.source_rows == len(table.rows)
    found = harness.connector.metadata.load_table(COPY)
    files = harness.connector.metadata.plan_files(found)
    assert sum(file.row_count for file in files) == len(table.rows)
    assert {file.partition["p"] for file in files} == {row["p"] for row in table.rows}
    assert same_by_spark(harness)


@pytest.mark.slow
def test_marked_rows_stay_behind(make_table: MakeTable) -> None:
    harness = make_table("append-dv", ORDERS, partitioned=True)
    delete = JobRequest("delete", TARGET, harness.catalog, DeleteSpec("t", "id IN (101, 122)"))
    assert Job(delete, harness.spark, harness.open()).run().error is None
    connector = copy_of(harness, ORDERS, ("p",))

    run(
        connector,
        harness,
        InsertOverwriteSpec("s", "dynamic", by_name=True),
        target_file_size=SMALL,
    )

    assert same_by_spark(harness)


@pytest.mark.slow
def test_rows_of_many_partitions_are_clustered_instead(make_table: MakeTable) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=True)
    connector = harness.open()
    connector.metadata.create_table(COPY, CreateTableSpec(ORDERS.columns, ("id",)))

    result = run(connector, harness, InsertIntoSpec("s"))

    assert result.metrics.files_added == len(ORDERS.rows)
    assert same_by_spark(harness)


@pytest.mark.slow
def test_statistics_tell_the_partitions_of_a_copy(make_table: MakeTable) -> None:
    harness = make_table("append-cow", DAILY, partitioned=True)
    connector = copy_of(harness, DAILY, ("p",))

    result = run(connector, harness, InsertOverwriteSpec("s", "dynamic", by_name=True))

    assert result.metrics.source_rows == result.metrics.inserted == len(DAILY.rows)
    assert connector.scan.read_columns == [["id", "p"]]
    assert same_by_spark(harness)


@pytest.mark.slow
def test_a_copy_of_files_with_wrong_statistics_changes_nothing(make_table: MakeTable) -> None:
    harness = make_table("append-cow", DAILY, partitioned=True)
    connector = copy_of(harness, DAILY, ("p",))
    wrong = replace(connector, metadata=WrongStatistics(connector.metadata))

    result = attempted(wrong, harness, InsertOverwriteSpec("s", "dynamic", by_name=True))

    assert result.error.code == ErrorCode.DATA_FILE_UNREADABLE.name
    assert "has rows with p = 1, which" in result.error.message
    assert harness.open().metadata.load_table(COPY).snapshot_id is None
    assert not [*harness.warehouse.rglob("copy/p=*/**/*.parquet")]
