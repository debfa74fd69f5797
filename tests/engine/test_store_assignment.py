"""Values of one type in a column of another, beyond what the conformance suite shows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from spark_jobs.engine.analysis.store_assignment import ErrorLocation, frame_type, stored
from spark_jobs.engine.runtime.failures import translated
from spark_jobs.engine.runtime.older_spark import parsed_type
from spark_jobs.engine.runtime.session import fixed_settings, meaningful_settings
from spark_jobs.errors import AnalysisError, ErrorCode

_BERLIN = "Europe/Berlin"
LOCATION = ErrorLocation("clause 1", "c")


@pytest.fixture(autouse=True)
def job_settings(spark: SparkSession) -> Iterator[None]:
    with fixed_settings(spark, meaningful_settings(_BERLIN)):
        yield


def type_of(declared: str) -> DataType:
    return frame_type(declared)


def stored_value(spark: SparkSession, value: str, declared: str) -> Any:
    """What a column ``c`` of the declared type holds after the SQL ``value`` was assigned."""
    return stored_values(spark, [(value, declared)])[0]


def stored_values(spark: SparkSession, pairs: list[tuple[str, str]]) -> list[Any]:
    row = spark.range(1).select(
        *[F.expr(value).alias(f"v{i}") for i, (value, _) in enumerate(pairs)]
    )
    columns = []
    for i, (_, declared) in enumerate(pairs):
        text = stored(f"v{i}", row.schema[i].dataType, parsed_type(declared), LOCATION)
        columns.append(f"{text} AS c{i}")
    out = row.selectExpr(*columns)
    for i, (value, declared) in enumerate(pairs):
        assert out.schema[i].dataType.simpleString() == type_of(declared).simpleString(), value
    return list(out.collect()[0])


def test_values_that_fit(spark: SparkSession) -> None:
    expected: dict[tuple[str, str], Any] = {
        ("1Y", "BIGINT"): 1,
        ("127L", "TINYINT"): 127,
        ("-2147483648.9D", "INT"): -2147483648,
        ("0.999BD", "SMALLINT"): 0,
        ("' 12 '", "INT"): 12,
        ("'1e3'", "DOUBLE"): 1000.0,
        ("'t'", "BOOLEAN"): True,
        ("1.5F", "DECIMAL(3, 1)"): Decimal("1.5"),
        ("true", "STRING"): "true",
        ("1.10BD", "STRING"): "1.10",
        ("X'41'", "STRING"): "A",
        ("DATE'2024-07-01'", "TIMESTAMP_NTZ"): dt.datetime(2024, 7, 1),  # noqa: DTZ001
        ("TIMESTAMP'2024-07-01 00:30:00+02:00'", "STRING"): "2024-07-01 00:30:00",
        ("TIMESTAMP'2024-06-30 22:30:00Z'", "DATE"): dt.date(2024, 7, 1),
        ("'2024-7-1'", "DATE"): dt.date(2024, 7, 1),
        ("NULL", "STRUCT<a: INT>"): None,
        ("CAST(NULL AS STRING)", "INT"): None,
        ("array('1', NULL)", "ARRAY<INT>"): [1, None],
        ("map(1, '2')", "MAP<STRING, INT>"): {"1": 2},
        ("array(named_struct('B', 1, 'a', '2'))", "ARRAY<STRUCT<a: INT, b: STRING>>"): [(2, "1")],
        ("named_struct('a', named_struct('b', 1L))", "STRUCT<a: STRUCT<b: INT>>"): ((1,),),
        ("'ab'", "CHAR(4)"): "ab  ",
        ("'abcd    '", "CHAR(4)"): "abcd",
        ("'ab   '", "VARCHAR(4)"): "ab  ",
        ("'äöü€'", "VARCHAR(4)"): "äöü€",
        ("12", "VARCHAR(2)"): "12",
        ("map('k', 'a')", "MAP<STRING, CHAR(2)>"): {"k": "a "},
        ("named_struct('a', 'x  ')", "STRUCT<a: VARCHAR(2)>"): ("x ",),
    }

    found = stored_values(spark, list(expected))

    assert dict(zip(expected, found, strict=True)) == expected


@pytest.mark.parametrize(
    ("value", "declared", "says"),
    [
        ("128", "TINYINT", "column c tinyint cannot hold the value '128'"),
        ("2147483648D", "INT", "column c int cannot hold the value '2.147483648E9'"),
        ("double('infinity')", "BIGINT", "Infinity"),
        ("100BD", "DECIMAL(4, 2)", "decimal(4,2)"),
        ("'maybe'", "BOOLEAN", "maybe"),
        ("'1.5'", "INT", "1.5"),
        ("''", "INT", "column c int"),
        ("'2024-13-01'", "DATE", "2024-13-01"),
        ("'noon'", "TIMESTAMP", "noon"),
        ("array('1', 'x')", "ARRAY<INT>", "column c.element int cannot hold the value 'x'"),
        ("map('k', 'x')", "MAP<STRING, INT>", "column c.value int"),
        ("'abcde'", "CHAR(4)", "clause 1: column c char(4) cannot hold the value 'abcde'"),
        ("12345", "VARCHAR(4)", "varchar(4) cannot hold the value '12345'"),
        ("named_struct('a', 'abc')", "STRUCT<a: VARCHAR(2)>", "column c.a varchar(2)"),
        ("array('abc')", "ARRAY<CHAR(2)>", "column c.element char(2)"),
        ("repeat('x', 500)", "INT", "x" * 100),
        ("'<<job-error {\"code\"'", "INT", "<<job-error"),
    ],
)
def test_values_that_do_not_fit(spark: SparkSession, value: str, declared: str, says: str) -> None:
    with pytest.raises(Exception, match=r".") as raised:
        stored_value(spark, value, declared)

    error = translated(raised.value)
    assert error.code is ErrorCode.VALUE_NOT_STORABLE, error
    assert says in error.message
    assert len(error.message) < 200


@pytest.mark.parametrize(
    ("value", "declared"),
    [
        ("1", "BOOLEAN"),
        ("true", "INT"),
        ("1", "DATE"),
        ("DATE'2024-01-01'", "BIGINT"),
        ("1", "TIMESTAMP"),
        ("TIMESTAMP'2024-01-01 00:00:00'", "DOUBLE"),
        ("'x'", "BINARY"),
        ("1", "BINARY"),
        ("X'01'", "INT"),
        ("'x'", "ARRAY<STRING>"),
        ("array(1)", "STRING"),
        ("array(true)", "ARRAY<INT>"),
        ("map('a', 1)", "STRUCT<a: INT>"),
        ("named_struct('a', 1)", "MAP<STRING, INT>"),
    ],
)
def test_types_that_do_not_fit(spark: SparkSession, value: str, declared: str) -> None:
    with pytest.raises(AnalysisError, match="column c") as raised:
        stored_value(spark, value, declared)

    assert raised.value.code is ErrorCode.TYPE_MISMATCH


@pytest.mark.parametrize(
    ("value", "declared", "path"),
    [
        ("named_struct('a', CAST(NULL AS INT))", "STRUCT<a: INT NOT NULL>", "c.a"),
        (
            "array(named_struct('a', CAST(NULL AS INT)))",
            "ARRAY<STRUCT<a: INT NOT NULL>>",
            "c.element.a",
        ),
        ("named_struct('a', NULL)", "STRUCT<a: INT NOT NULL>", "c.a"),
        (
            "map('k', named_struct('a', CAST(NULL AS INT)))",
            "MAP<STRING, STRUCT<a: INT NOT NULL>>",
            "c.value.a",
        ),
    ],
)
def test_null_in_nested_fields_that_take_none(
    spark: SparkSession, value: str, declared: str, path: str
) -> None:
    with pytest.raises(Exception, match=r".") as raised:
        stored_value(spark, value, declared)

    error = translated(raised.value)
    assert error.code is ErrorCode.NOT_NULL_VIOLATION, error
    assert path in error.message
