"""The current time is one moment in all that a statement evaluates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.contract.inserts import InsertOverwriteSpec
from spark_jobs.contract.request import JobRequest, SqlSource, TableName
from spark_jobs.contract.statements import DeleteSpec
from spark_jobs.engine.analysis.analyzer import analyze_filtered
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.pruning.file_conditions import FileConditions, FileTruth
from spark_jobs.engine.runtime.progress import Progress
from spark_jobs.engine.runtime.session import fixed_settings, meaningful_settings
from spark_jobs.engine.source.sources import Sources
from spark_jobs.spi.tables import Column, ColumnRange, PlannedFile, TableHandle
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ORDERS

NOW = "CAST(current_timestamp() AS STRING)"
FUNCTIONS = [
    "current_date",
    "current_date()",
    "curdate()",
    "current_timestamp",
    "current_timestamp()",
    "now()",
    "localtimestamp()",
    "unix_timestamp()",
    "date_add(current_date(), 1)",
    *(["CAST(current_time(3) AS STRING)"] if pyspark.__version__ >= "4.1" else []),
]
LEFT = re.compile(r"\b(current_\w+|now|localtimestamp)\(")


@pytest.fixture
def moment(spark: SparkSession) -> Iterator[StatementTime]:
    with fixed_settings(spark, meaningful_settings("Asia/Tokyo")):
        yield StatementTime(spark)


def value(spark: SparkSession, moment: StatementTime, text: str) -> Any:
    row = moment.fixed(spark.range(1).select(F.expr(text))).first()
    assert row is not None
    return row[0]


@pytest.mark.parametrize("text", FUNCTIONS)
def test_no_function_is_left(spark: SparkSession, moment: StatementTime, text: str) -> None:
    frame = spark.sql(f"SELECT {text} AS a")

    assert LEFT.search(frame._jdf.queryExecution().analyzed().toString())
    assert not LEFT.search(moment.fixed(frame)._jdf.queryExecution().analyzed().toString())
    assert value(spark, moment, text) == value(spark, moment, text)


def test_all_functions_tell_the_same_moment(spark: SparkSession, moment: StatementTime) -> None:
    same = (
        "now() = current_timestamp() AND current_date() = CAST(now() AS DATE)"
        " AND localtimestamp() = CAST(now() AS TIMESTAMP_NTZ)"
        " AND unix_timestamp() = unix_seconds(now())"
    )

    assert value(spark, moment, same) is True


def test_views_and_subqueries_are_of_the_same_moment(
    spark: SparkSession, moment: StatementTime
) -> None:
    spark.sql(f"SELECT {NOW} AS c").createOrReplaceTempView("moment_view")
    frame = spark.sql(
        f"SELECT c = (SELECT max(c) FROM moment_view) AND c = {NOW} FROM moment_view"
        f" WHERE c IN (WITH x AS (SELECT {NOW} AS c) SELECT c FROM x)"
    )

    assert [row[0] for row in moment.fixed(frame).collect()] == [True]
    spark.catalog.dropTempView("moment_view")


def test_sources_are_of_the_same_moment(
    make_table: Callable[..., Harness], moment: StatementTime
) -> None:
    harness = make_table("folder", ORDERS, partitioned=False)
    connector = harness.open()
    request = JobRequest(
        operation_id="operation-1",
        target=TARGET,
        catalog=harness.catalog,
        statement=DeleteSpec("t"),
        sources=(
            SqlSource("first", f"SELECT {NOW} AS c"),
            SqlSource("second", f"SELECT c AS one, {NOW} AS two FROM first"),
        ),
    )
    handle = connector.metadata.load_table(TARGET)
    sources = Sources(harness.spark, connector, request, handle, "scratch", Progress(), moment)

    sources.open()

    ((expected,),) = moment.fixed(harness.spark.sql(f"SELECT {NOW}")).collect()
    assert sources["first"].frame.collect() == [(expected,)]
    assert sources["second"].frame.collect() == [(expected, expected)]
    assert harness.spark.sql("SELECT * FROM second").collect() == [(expected, expected)]
    sources.close()


def test_a_frame_without_it_stays(spark: SparkSession, moment: StatementTime) -> None:
    frame = spark.range(3).where("id > rand()")

    assert moment.fixed(frame) is frame


@pytest.mark.parametrize("column", ["p", "v"])
def test_files_are_looked_at_in_the_same_moment(
    spark: SparkSession, moment: StatementTime, column: str
) -> None:
    table = TableHandle(
        TableName("db", "t"), (Column("v", "STRING"), Column("p", "STRING")), ("p",), 1
    )
    now = value(spark, moment, NOW)
    ranges = {"v": ColumnRange(now, now, 0)}
    files = [PlannedFile(0, "/f", {"p": now}, 1, 100, ranges)]
    merge = analyze_filtered(spark, DeleteSpec("t", f"{column} = {NOW}"), table)

    conditions = FileConditions(spark, "t", ("p",), merge.target_types, files, moment)

    assert conditions.truth(merge.read_set.on_predicates) == [FileTruth(may=True, must=True)]


@pytest.mark.slow
def test_rows_belong_to_the_partition_of_the_moment(make_table: Callable[..., Harness]) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=True)
    rows = f"SELECT 1 AS id, CAST(1 AS INT) AS k, {NOW} AS v, 1 AS n, 'r' AS req, {NOW} AS p"
    statement = InsertOverwriteSpec("s", "static", {"p": NOW})
    request = JobRequest("one", TARGET, harness.catalog, statement, (SqlSource("s", rows),))

    result = Job(request, harness.spark, harness.open()).run()

    assert result.error is None, result.error
    (row,) = [each for each in harness.read() if each["id"] == 1]
    assert row["v"] == row["p"]
    assert result.partitions == (f"p={row['p']}",)
