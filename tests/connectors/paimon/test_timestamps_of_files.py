"""Timestamps of any year, INT96 too, whatever the session says of calendars and zones."""

from __future__ import annotations

import datetime as dt
import uuid
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.request import (
    CatalogSpec,
    JobRequest,
    Source,
    SqlSource,
    TableName,
    TableSource,
)
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import (
    Assignment,
    DeleteAction,
    MergeCase,
    MergeSpec,
    UpdateAction,
    UpdateSpec,
)
from spark_jobs.engine.runtime.session import fixed_settings, meaningful_settings
from spark_jobs.run import run
from spark_jobs.spark_reads import parquet_rows
from spark_jobs.spi.connector import Connector
from tests.support.paimon_tables import NAME, append, create

pytestmark = pytest.mark.slow

ZONE = "Asia/Kathmandu"
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
VALUES = [
    dt.datetime.fromisoformat(f"{text}+00:00")
    for text in (
        *("0001-01-02 00:00:00", "1582-10-10 12:00:00", "1677-09-20 01:02:03.000004"),
        *("1900-01-01 00:00:00", "1969-12-31 23:59:59.999999", "2024-02-29 12:30:00.123456"),
        *("2262-04-12 00:00:00", "9999-12-30 23:59:59.999999"),
    )
]
LATER = dt.timedelta(days=400)
# The opposite of each setting that a job fixes, and of those of Spark's readers that it overrides.
OPPOSITE = {
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.optimizer.nestedPredicatePushdown.supportedFileSources": "parquet,orc",
    "spark.sql.orc.filterPushdown": "true",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "America/Los_Angeles",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
    "spark.sql.variable.substitute": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.parquet.binaryAsString": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
    "spark.sql.parquet.int96AsTimestamp": "false",
    "spark.sql.parquet.int96TimestampConversion": "true",
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "spark.sql.legacy.charVarcharAsString": "true",
    "spark.sql.readSideCharPadding": "false",
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
}
LEGACY = {
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.enableVectorizedReader": "false",
    "spark.sql.parquet.mergeSchema": "true",
}


def test_each_setting_that_a_job_fixes_has_an_opposite() -> None:
    assert OPPOSITE.keys() == meaningful_settings(ZONE).keys()


@pytest.fixture(autouse=True)
def sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests put other files in place of a table's, whose sizes the metadata does not have."""
    monkeypatch.setattr(parquet_rows, "_require_planned", lambda *_: None)


@pytest.fixture(params=["INT64", "INT96", "INT96 with deletion vectors"])
def table(connector: Connector, warehouse: Path, request: pytest.FixtureRequest) -> Connector:
    """One file with ``VALUES`` as instants and without a zone; the last row is NULL."""
    vectors = "deletion vectors" in request.param
    options = {"deletion-vectors.enabled": "true"} if vectors else {}
    create(connector, {"id": "int", "at": "timestamp", "local": "timestamp_ntz"}, options=options)
    rows: list[dict[str, Any]] = [
        {"id": i, "at": value, "local": value.replace(tzinfo=None)}
        for i, value in enumerate(VALUES)
    ]
    append(connector, [*rows, {"id": len(VALUES)}])
    if request.param.startswith("INT96"):
        (path,) = (warehouse / "shop.db" / "orders").rglob("*.parquet")
        stored = pq.read_table(path)
        pq.write_table(stored, path, use_deprecated_int96_timestamps=True, store_schema=False)
        assert pq.ParquetFile(path).schema.column(1).physical_type == "INT96"
    return connector


def test_rows_are_exact_after_every_statement(
    spark: SparkSession, table: Connector, warehouse: Path
) -> None:
    expected: dict[int, dt.datetime | None] = dict(enumerate(VALUES))
    expected[len(VALUES)] = None
    with fixed_settings(spark, {**OPPOSITE, **LEGACY}):
        assert rows(spark, warehouse) == expected

        merge(spark, warehouse, [VALUES[0], VALUES[4], VALUES[7]])
        del expected[4]
        expected[0], expected[7] = VALUES[0] + LATER, VALUES[7] - LATER
        assert rows(spark, warehouse) == expected

        where = "at < TIMESTAMP '1600-01-01 00:00:00Z' OR id = 8"
        instant = "TIMESTAMP '1500-03-01 06:00:00.000001Z'"
        local = "TIMESTAMP_NTZ '1500-03-01 06:00:00.000001'"
        assigned = (Assignment("at", instant), Assignment("local", local))
        changed = ran(spark, warehouse, UpdateSpec("t", assigned, where))
        assert changed.metrics.updated == 3
        new = dt.datetime(1500, 3, 1, 6, 0, 0, 1, tzinfo=dt.UTC)
        expected |= {0: new, 1: new, 8: new}
        assert rows(spark, warehouse) == expected


def merge(spark: SparkSession, warehouse: Path, keys: list[dt.datetime]) -> None:
    """Delete the row of the second key, and move the others 400 days towards the middle."""
    values = ", ".join(f"(timestamp_micros({micros(key)}L))" for key in keys)
    source = SqlSource("s", f"SELECT * FROM VALUES {values} AS s(at)")
    shift = "if(t.id = 0, INTERVAL '400' DAY, INTERVAL '-400' DAY)"
    moved = (Assignment("at", f"t.at + {shift}"), Assignment("local", f"t.local + {shift}"))
    cases = (
        MergeCase(
            "matched", DeleteAction(), f"t.local = TIMESTAMP_NTZ '{keys[1]:%Y-%m-%d %H:%M:%S.%f}'"
        ),
        MergeCase("matched", UpdateAction(moved)),
    )
    result = ran(spark, warehouse, MergeSpec("s", "t.at = s.at", cases, "t", "s"), source)
    assert (result.metrics.deleted, result.metrics.updated) == (1, 2)


def rows(spark: SparkSession, warehouse: Path) -> dict[int, dt.datetime | None]:
    """The instants by id, which agree with the timestamps without a zone."""
    query = "SELECT id, unix_micros(at) AS at, cast(local AS string) AS local FROM t"
    sources = (TableSource("t", NAME), SqlSource("q", query))
    report = ran(spark, warehouse, QuerySpec("q"), *sources, target=None).query
    assert report is not None
    found: dict[int, dt.datetime | None] = {}
    for key, instant, local in report.rows:
        at = None if instant is None else EPOCH + dt.timedelta(microseconds=instant)
        assert local == (None if at is None else shown(at))
        found[key] = at
    return found


def shown(at: dt.datetime) -> str:
    """As Spark writes it: without zeros at the end of a fraction."""
    text = at.replace(tzinfo=None).isoformat(sep=" ")
    return text.rstrip("0") if "." in text else text


def micros(at: dt.datetime) -> int:
    return (at - EPOCH) // dt.timedelta(microseconds=1)


def ran(
    spark: SparkSession,
    warehouse: Path,
    statement: Any,
    *sources: Source,
    target: TableName | None = NAME,
) -> JobResult:
    catalog, options = CatalogSpec("paimon", str(warehouse)), JobOptions(session_time_zone=ZONE)
    request = JobRequest(str(uuid.uuid4()), target, catalog, statement, sources, options)
    result = run(request, spark)
    assert result.error is None, result.error
    return result
