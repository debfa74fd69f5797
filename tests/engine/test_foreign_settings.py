"""Statements under settings of a cluster that would give them another meaning: the same rows."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.request import (
    CatalogSpec,
    FileSource,
    JobRequest,
    Source,
    SqlSource,
    TableSource,
)
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import Assignment, DeleteSpec, Statement, UpdateSpec
from spark_jobs.run import run
from spark_jobs.spi.connector import Connector
from tests.settings.registry import Trial, session_with
from tests.support.paimon_tables import NAME, append, create, read

pytestmark = pytest.mark.slow

_FORTY = "SELECT CAST(id AS INT) AS id, 'x' AS v FROM range(40)"


class Lake:
    """A table with two rows, changed by jobs on sessions with one setting."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self.catalog = CatalogSpec("paimon", str(folder))
        self.connector: Connector = open_connector(self.catalog, {})
        create(self.connector, {"id": "int", "v": "string"})
        append(self.connector, [{"id": 1, "v": "12"}, {"id": 2, "v": "b"}])

    def result(self, trial: Trial, statement: Statement, *sources: Source) -> JobResult:
        target = None if isinstance(statement, QuerySpec) else NAME
        request = JobRequest("op", target, self.catalog, statement, sources)
        with session_with(self._spark, trial) as session:
            return run(request, session)

    def run(self, trial: Trial, statement: Statement, *sources: Source) -> JobResult:
        result = self.result(trial, statement, *sources)
        assert result.error is None, result.error
        return result

    def rows(self, trial: Trial, query: str, source: FileSource) -> tuple[object, ...]:
        """The rows of a query over a source."""
        report = self.run(trial, QuerySpec("query", limit=100), source, SqlSource("query", query))
        assert report.query is not None
        assert report.query.rows is not None
        return report.query.rows

    def inserted(self, trial: Trial, query: str) -> list[str]:
        """The values of the rows that a query inserts."""
        rows = SqlSource("q", f"SELECT 9, CAST(v AS STRING) FROM ({query})")
        self.run(trial, InsertIntoSpec("q"), rows)
        return [row["v"] for row in read(self.connector) if row["id"] == 9]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    folder = tmp_path / "lake"
    folder.mkdir()
    return Lake(spark, folder)


def test_small_output_batches_store_no_row_twice(lake: Lake) -> None:
    trial = Trial("spark.sql.execution.arrow.maxRecordsPerOutputBatch", "1")
    lake.run(trial, InsertIntoSpec("q"), SqlSource("q", _FORTY))

    assert len(read(lake.connector)) == 42


@pytest.mark.parametrize("name", ["maxPartitionBytes", "openCostInBytes"])
def test_sizes_of_splits_below_zero_hide_no_row(lake: Lake, tmp_path: Path, name: str) -> None:
    """Spark makes no split then, reads no row, and says nothing."""
    trial = Trial(f"spark.sql.files.{name}", "-1")
    pq.write_table(pa.table({"id": range(40)}), tmp_path / "rows.parquet")
    source = FileSource("s", str(tmp_path / "rows.parquet"), "parquet")

    assert len(lake.rows(trial, "SELECT id FROM s", source)) == 40


@pytest.mark.parametrize(
    "name",
    ["files.maxPartitionBytes", "files.openCostInBytes", "parquet.columnarReaderBatchSize"],
)
def test_with_a_size_below_zero_every_row_changes(lake: Lake, name: str) -> None:
    trial = Trial(f"spark.sql.{name}", "-1")
    lake.run(trial, UpdateSpec("t", (Assignment("v", "concat(v, '!')"),)))

    assert {row["v"] for row in read(lake.connector)} == {"12!", "b!"}


def test_small_output_batches_give_a_query_no_row_twice(lake: Lake, tmp_path: Path) -> None:
    trial = Trial("spark.sql.execution.arrow.maxBytesPerOutputBatch", "1")
    pq.write_table(pa.table({"id": range(40)}), tmp_path / "rows.parquet")
    source = FileSource("s", str(tmp_path / "rows.parquet"), "parquet")

    assert len(lake.rows(trial, "SELECT id FROM s", source)) == 40


def test_a_regular_expression(lake: Lake) -> None:
    trial = Trial("spark.sql.parser.escapedStringLiterals", "true")
    lake.run(trial, DeleteSpec("t", r"v RLIKE '^\\d+$'"))

    assert [row["id"] for row in read(lake.connector)] == [2]


def test_a_text_in_double_quotes(lake: Lake) -> None:
    trial = Trial("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    lake.run(trial, UpdateSpec("t", (Assignment("v", '"id"'),), "t.id = 1"))

    assert {row["v"] for row in read(lake.connector)} == {"id", "b"}


INSERTED = {
    ("legacy.consecutiveStringLiterals.enabled", "true"): (r"'it''s'", "it's"),
    ("decimalOperations.allowPrecisionLoss", "false"): (
        "typeof(12345678901234567890.1234567890BD * 1.1234567890BD * 1.123456789012BD)",
        "decimal(38,14)",
    ),
    ("legacy.negativeIndexInArrayInsert", "true"): (
        "to_json(array_insert(array(1, 2, 3), -1, 9))",
        "[1,2,3,9]",
    ),
    ("legacy.castComplexTypesToString.enabled", "true"): (
        "CAST(array(1, NULL) AS STRING)",
        "[1, null]",
    ),
    ("legacy.setopsPrecedence.enabled", "true"): (
        "(SELECT count(*) FROM (SELECT 1 UNION ALL SELECT 1 INTERSECT SELECT 2))",
        "1",
    ),
    ("parser.quotedRegexColumnNames", "true"): ("`k` FROM (SELECT 'x' AS k)", "x"),
    ("retainGroupColumns", "false"): ("k FROM (SELECT 'x' AS k) GROUP BY k", "x"),
}


@pytest.mark.parametrize("setting", INSERTED, ids=lambda setting: setting[0])
def test_values_are_those_of_the_defaults(lake: Lake, setting: tuple[str, str]) -> None:
    expression, expected = INSERTED[setting]
    head, _, rest = expression.partition(" FROM (SELECT 'x'")
    query = f"SELECT {head} AS v" + (f" FROM (SELECT 'x'{rest}" if rest else "")

    assert lake.inserted(Trial(f"spark.sql.{setting[0]}", setting[1]), query) == [expected]


REFUSED = {
    ("legacy.timeParserPolicy", "LEGACY"): (
        "to_date('2024-07-01x', 'yyyy-MM-dd')",
        "CANNOT_PARSE_TIMESTAMP",
    ),
    ("mapKeyDedupPolicy", "LAST_WIN"): ("map('a', 1, 'a', 2)", "DUPLICATED_MAP_KEY"),
}


@pytest.mark.parametrize("setting", REFUSED, ids=lambda setting: setting[0])
def test_what_is_an_error_stays_one(lake: Lake, setting: tuple[str, str]) -> None:
    expression, condition = REFUSED[setting]
    rows = SqlSource("q", f"SELECT 9 AS id, CAST({expression} AS STRING) AS v")
    error = lake.result(
        Trial(f"spark.sql.{setting[0]}", setting[1]), InsertIntoSpec("q"), rows
    ).error

    assert error is not None
    assert condition in error.message
    assert len(read(lake.connector)) == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sources.partitionColumnTypeInference.enabled", "false"),
        ("sources.useV1SourceList", ""),
        ("parquet.respectSummaryFiles", "true"),
        ("parquet.mergeSchema", "true"),
    ],
)
def test_folders_with_partitions_are_read_alike(
    lake: Lake, tmp_path: Path, name: str, value: str
) -> None:
    for number in (1, 2):
        folder = tmp_path / f"rows/p={number}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [number]}), folder / "f.parquet")
    source = FileSource("s", str(tmp_path / "rows"), "parquet")
    asked = "SELECT id, p, typeof(p) AS kind FROM s ORDER BY id"
    found = lake.rows(Trial(f"spark.sql.{name}", value), asked, source)

    assert found == ((1, 1, "int"), (2, 2, "int"))


def test_nanoseconds_of_files_are_no_numbers(lake: Lake, tmp_path: Path) -> None:
    times = pa.array([1_000], pa.timestamp("ns"))
    pq.write_table(pa.table({"at": times}), tmp_path / "times.parquet", version="2.6")
    source = FileSource("s", str(tmp_path / "times.parquet"), "parquet")
    asked = SqlSource("query", "SELECT typeof(at) AS kind FROM s")
    trial = Trial("spark.sql.legacy.parquet.nanosAsLong", "true")

    report = lake.result(trial, QuerySpec("query"), source, asked).query
    assert report is not None
    assert report.rows == (("timestamp_ntz",),)


def test_the_log_names_them_once_and_the_session_gets_them_back(
    lake: Lake, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    name = "spark.sql.legacy.sizeOfNull"
    table = (TableSource("orders", NAME), SqlSource("query", "SELECT max(id) AS n FROM orders"))
    request = JobRequest("op", None, lake.catalog, QuerySpec("query"), table)
    with caplog.at_level(logging.INFO), session_with(spark, Trial(name, "false")) as session:
        result = run(request, session)

        assert result.query is not None
        assert session.conf.get(name) == "false"
    (line,) = [text for text in caplog.messages if name in text]
    assert line.startswith("not in effect")


@pytest.mark.parametrize("host", ["localhost:9", "no.such.host.invalid:8020"])
def test_a_default_store_that_is_down_is_named(lake: Lake, tmp_path: Path, host: str) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "rows.parquet")
    source = FileSource("s", str(tmp_path / "rows.parquet"), "parquet")
    asked = SqlSource("query", "SELECT id FROM s")
    trial = Trial("fs.defaultFS", f"hdfs://{host}")
    error = lake.result(trial, QuerySpec("query"), source, asked).error

    assert error is not None
    assert (error.code, error.retryable) == ("STORAGE_UNAVAILABLE", True)
    assert "source s" in error.message
    assert host.partition(":")[0] in error.message
