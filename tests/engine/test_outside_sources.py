"""Functions and data sources of Spark as sources: run once, and what is wrong is told by name."""

from __future__ import annotations

import logging
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.approval import Ticket
from spark_jobs.contract.catalogs import scoped
from spark_jobs.contract.outside_sources import PythonSource, SparkSource
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.sources import OutsideSource
from spark_jobs.contract.text_limits import TextLimits
from spark_jobs.errors import NotSupportedError
from spark_jobs.run import run
from tests.support.paimon_tables import create

NAME = TableName("db", "t")
MERGE = (
    "MERGE INTO db.t USING (SELECT a.id, a.v FROM s a JOIN s b ON a.r = b.r) x ON t.id = x.id "
    "WHEN MATCHED THEN UPDATE SET v = x.v WHEN NOT MATCHED THEN INSERT *"
)
SECRET = "planted-secret-of-tests"
CODE = '''
"""A module beside a DAG."""
from pathlib import Path

from pyspark.sql import functions as F
from pyspark.sql.types import StringType


def shout(text):
    return None if text is None else text.upper()


def rows(spark, context):
    called = Path(context.arguments["called"])
    called.write_text(called.read_text() + "." if called.exists() else ".")
    frame = spark.createDataFrame([(1, "one"), (2, None)], "id BIGINT, v STRING")
    return frame.select("id", F.udf(shout, StringType())("v").alias("v"), F.rand().alias("r"))


def nothing(spark, context):
    return [1]


def wrong(spark):
    return None


def failing(spark, context):
    raise ValueError("no rows for " + context.arguments["secret"])


def failing_in_tasks(spark, context):
    def fail(text):
        raise KeyError("a row without a price")

    failing = F.udf(fail, StringType())("id").alias("v")
    return spark.range(2).select("id", failing, F.lit(1).alias("r"))


def offline(spark, context):
    raise ConnectionRefusedError("the service does not answer")


def needing(spark, context):
    import not_there_at_all


def leaving(spark, context):
    raise SystemExit(0)


def elsewhere(spark, context):
    return spark.newSession().range(1)


def streaming(spark, context):
    return spark.readStream.format("rate").load()


def meddling(spark, context):
    spark.conf.set("spark.sql.ansi.enabled", "false")
    spark.range(9).selectExpr("99L AS id", "'other' AS v").createOrReplaceTempView("first")
    return spark.sql("SELECT 2L AS id, 'x' AS v")


number = 5
'''


class Lake:
    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        warehouse = folder / "warehouse"
        warehouse.mkdir()
        self.catalog = CatalogSpec("paimon", str(warehouse))
        create(open_connector(self.catalog, {}), {"id": "bigint", "v": "string"}, name=NAME)

    def request(self, source: OutsideSource, text: str = MERGE, **more: Any) -> JobRequest:
        parsed = parse_statement(text, [source.name])
        made = JobRequest(
            *(str(uuid.uuid4()), parsed.target, self.catalog, parsed.statement),
            sources=(source, *parsed.sources),
        )
        return replace(made, **more)

    def run(self, source: OutsideSource, text: str = MERGE, **more: Any) -> JobResult:
        return run(
            self.request(source, text, **more), self.spark, scoped("c", {"password": SECRET})
        )

    def rows(self) -> list[tuple[Any, ...]]:
        connector = open_connector(self.catalog, {})
        table = connector.metadata.load_table(NAME)
        files = connector.metadata.plan_files(table)
        frame = connector.scan.read(self.spark, table, files, table.column_names)
        return sorted(tuple(row[:2]) for row in frame.collect())


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, tmp_path)


def function(name: str, **arguments: Any) -> PythonSource:
    return PythonSource("s", f"sources_of_tests:{name}", CODE, arguments)


@pytest.mark.slow
def test_a_function_runs_once(lake: Lake, tmp_path: Path) -> None:
    called = tmp_path / "called"
    source = function("rows", called=str(called))
    done = lake.run(source)
    assert done.error is None, done.error
    assert called.read_text() == "."
    assert done.metrics.sources["s"].records == 2
    assert lake.rows() == [(1, "ONE"), (2, None)]
    # The code is part of what is asked for.
    other = replace(source, code=f"{CODE}\n")
    assert lake.request(source).digest() != lake.request(other).digest()


WRONG = {
    "nothing": ("REQUEST_INVALID", "returned list, not a DataFrame"),
    "wrong": ("REQUEST_INVALID", "cannot be called with (spark, context)"),
    "gone": ("REQUEST_INVALID", "is not a function of its module"),
    "number": ("REQUEST_INVALID", "is not a function of its module"),
    "failing": ("SOURCE_UNREADABLE", "raised ValueError: no rows for ***"),
    "failing_in_tasks": ("SOURCE_UNREADABLE", "a row without a price"),
    "offline": ("STORAGE_UNAVAILABLE", "raised ConnectionRefusedError"),
    "leaving": ("SOURCE_UNREADABLE", "raised SystemExit: 0"),
    "elsewhere": ("REQUEST_INVALID", "returned a DataFrame of another session"),
    "streaming": ("REQUEST_INVALID", "returned a stream"),
    "needing": ("LIBRARY_MISSING", "needs the Python module 'not_there_at_all'"),
}


def test_what_is_wrong_with_a_function(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    for name, (code, problem) in WRONG.items():
        error = lake.run(function(name, secret=SECRET)).error
        assert error is not None
        assert (error.code, f"sources_of_tests:{name} " in error.message) == (code, True), error
        assert problem in error.message, error.message
        assert SECRET not in f"{error.message} {error.remedy}"
    traces = [each.exc_info for each in caplog.records if each.levelno == logging.ERROR]
    assert len([each for each in traces if each]) >= 2
    broken = replace(function("rows"), code="import not_there_at_all\n")
    error = lake.run(broken).error
    assert error is not None
    assert error.code == "LIBRARY_MISSING"
    error = lake.run(replace(broken, code="def rows(:\n")).error
    assert error is not None
    assert (error.code, "SyntaxError" in error.message) == ("SOURCE_UNREADABLE", True)
    error = lake.run(replace(broken, code=None)).error
    assert error is not None
    assert error.code == "REQUEST_INVALID"
    assert lake.rows() == []


def test_a_function_changes_nothing_but_its_rows(lake: Lake) -> None:
    first = SqlSource("first", "SELECT 1L AS id, 'one' AS v")
    request = lake.request(function("meddling"))
    text = "INSERT INTO db.t SELECT * FROM first UNION ALL SELECT id + CAST('x' AS INT), v FROM s"
    for query in (text, text.replace(" + CAST('x' AS INT)", "")):
        parsed = parse_statement(query, ["first", "s"])
        sources = (first, *request.sources[:1], *parsed.sources)
        made = replace(
            request,
            operation_id=str(uuid.uuid4()),
            statement=parsed.statement,
            sources=sources,
        )
        error = run(made, lake.spark, {}).error
        assert (error is None) == (query != text)
    assert lake.rows() == [(1, "one"), (2, "x")]


@pytest.mark.slow
def test_a_data_source_of_spark(lake: Lake, tmp_path: Path) -> None:
    # A batch source that every Spark has: binary files, with their bytes.
    (tmp_path / "files").mkdir()
    for name in ("a", "b"):
        (tmp_path / "files" / name).write_text(name)
    source = SparkSource(
        "s", "binaryFile", {"path": str(tmp_path / "files")}, secret_options={"unused.key": "c"}
    )
    text = "INSERT INTO db.t SELECT length AS id, CAST(content AS STRING) AS v FROM s ORDER BY v"
    done = lake.run(source, text)
    assert done.error is None, done.error
    assert lake.rows() == [(1, "a"), (1, "b")]
    assert done.metrics.sources["s"].records == 2

    wrong = [
        (replace(source, format="kafka"), ("LIBRARY_MISSING", "spark-sql-kafka-0-10")),
        (replace(source, format="no.such.Source"), ("LIBRARY_MISSING", "no.such.Source")),
        (replace(source, schema="id BIGINT, "), ("SOURCE_UNREADABLE", "schema")),
        (replace(source, secret_options={"k": "d"}), ("REQUEST_INVALID", "connection d")),
        (replace(source, options={"path": "/gone/for/ever"}), ("SOURCE_UNREADABLE", "/gone")),
    ]
    for each, (code, told) in wrong:
        error = lake.run(each, text).error
        assert error is not None
        assert error.code == code, error
        assert told in f"{error.message} {error.remedy}"
    limits = TextLimits(source_prefixes=("/landing",))
    error = lake.run(source, text, text_limits=limits).error
    assert error is not None
    assert (error.code, "source_prefixes" in error.message) == ("NOT_SUPPORTED", True)


@pytest.mark.slow
def test_an_approval_says_that_it_cannot_know(lake: Lake, tmp_path: Path) -> None:
    source = function("rows", called=str(tmp_path / "called"))
    told = lake.run(source, dry_run=True)
    assert told.ticket is not None
    assert isinstance(told.ticket, Ticket)
    with pytest.raises(NotSupportedError, match="source s is of the kind python"):
        lake.run(source, approved=told.ticket)
    assert lake.rows() == []
