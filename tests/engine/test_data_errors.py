"""Errors of data, as Spark raises them: each is final, and has the code EXPRESSION_FAILED."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.engine.runtime.failures import translated
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.arrow_tasks import map_in_arrow

pytestmark = pytest.mark.slow

# Expressions over ``id`` (0, 1, 2), and Spark's name for what they raise.
EXPRESSIONS = {
    "1 / id": "DIVIDE_BY_ZERO",
    "1 % id": "REMAINDER_BY_ZERO",
    "make_interval(1) / id": "INTERVAL_DIVIDED_BY_ZERO",
    "9223372036854775807 + id": "ARITHMETIC_OVERFLOW",
    "127Y + CAST(id AS TINYINT)": "BINARY_ARITHMETIC_OVERFLOW",
    "CAST(id + 5000000000 AS INT)": "CAST_OVERFLOW",
    "CAST(concat('x', id) AS INT)": "CAST_INVALID_INPUT",
    "CAST(concat(id, '-x') AS DATE)": "CAST_INVALID_INPUT",
    "CAST(id + 1000 AS DECIMAL(2, 0))": "NUMERIC_VALUE_OUT_OF_RANGE",
    "map(id, 1, id, 2)": "DUPLICATED_MAP_KEY",
    "map_concat(map(id, 1), map(id, 2))": "DUPLICATED_MAP_KEY",
    "str_to_map(concat('a:1,a:', id))": "DUPLICATED_MAP_KEY",
    "map_from_arrays(array(nullif(id, 0)), array(1))": "NULL_MAP_KEY",
    "map_from_arrays(array(id, 7), array(1))": "_LEGACY_ERROR_TEMP_2128",
    "array(1)[CAST(id AS INT)]": "INVALID_ARRAY_INDEX",
    "element_at(array(1), CAST(id AS INT) + 3)": "INVALID_ARRAY_INDEX_IN_ELEMENT_AT",
    "element_at(array(1), CAST(id - id AS INT))": "INVALID_INDEX_OF_ZERO",
    "to_timestamp(concat('x', id), 'yyyy')": "CANNOT_PARSE_TIMESTAMP",
    "make_date(2020, 13, CAST(id AS INT))": "DATETIME_FIELD_OUT_OF_BOUNDS",
    "regexp_replace('a', concat('(', id), '')": "INVALID_PARAMETER_VALUE",
    "decode(unhex(concat('ff', '0', id)), 'utf-8')": "MALFORMED_CHARACTER_CODING",
    "validate_utf8(CAST(unhex(concat('ff', '0', id)) AS STRING))": "INVALID_UTF8_STRING",
    "url_decode(concat('%zz', id))": "CANNOT_DECODE_URL",
    "parse_url(concat('http://a b', id), 'HOST')": "INVALID_URL",
    "to_number(concat('a', id), '999')": "INVALID_FORMAT",
    "from_json(concat('{', id), 'a INT', map('mode', 'FAILFAST'))": "MALFORMED_RECORD_IN_PARSING",
    "array_repeat(1, 2147483647 - CAST(id AS INT))": "COLLECTION_SIZE_LIMIT_EXCEEDED",
    "aes_decrypt(unhex(concat('0', id)), X'00')": "INVALID_PARAMETER_VALUE",
    "(SELECT id FROM range(3))": "SCALAR_SUBQUERY_TOO_MANY_ROWS",
    "raise_error(concat('no ', id))": "USER_RAISED_EXCEPTION",
    "raise_error('[FAILED_READ_FILE] x')": "USER_RAISED_EXCEPTION",
    "assert_true(id > 3)": "USER_RAISED_EXCEPTION",
    "raise_error(repeat('[A_B', 300000))": "USER_RAISED_EXCEPTION",
    "CAST(repeat('x', 6000000) AS INT)": "CAST_INVALID_INPUT",
}
# In Spark 3.5 no function, or no error.
_LATER = ("validate_utf8", "decode")


def _passed_on(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def failure(frame: DataFrame) -> JobError:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - whatever Spark raises
        frame.collect()
    return translated(raised.value)


@pytest.mark.parametrize(("text", "condition"), EXPRESSIONS.items())
def test_errors_of_data_are_final(spark: SparkSession, text: str, condition: str) -> None:
    if text.startswith(_LATER) and spark.version < "4":
        pytest.skip("not in this version of Spark")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    try:
        frame = spark.range(3).selectExpr(f"{text} AS value")
        hashed = frame.selectExpr("hash(CAST(value AS STRING)) AS value")
        found = [failure(frame), failure(map_in_arrow(hashed, _passed_on, "value INT"))]
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")

    for error in found:
        assert (error.code, error.retryable) == (ErrorCode.EXPRESSION_FAILED, False), error
        # Spark 3.5 has other names, or none.
        assert spark.version < "4" or f"failed: [{condition}" in error.message
        assert len(error.message) < 3_000
        assert "\n" not in error.message


@pytest.mark.parametrize(
    ("kind", "is_of_data"),
    [("RuntimeException", True), ("ArithmeticException", True), ("OutOfMemoryError", False)],
)
def test_only_exceptions_of_expressions_are_final(
    spark: SparkSession, kind: str, is_of_data: bool
) -> None:
    """A lack of memory within an expression is the machine's."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    lang = gateway.jvm.java.lang
    trace = gateway.new_array(lang.StackTraceElement, 2)
    trace[0] = lang.StackTraceElement("java.util.Arrays", "copyOf", "Arrays.java", 1)
    place = "org.apache.spark.sql.catalyst.expressions.GeneratedClass"
    trace[1] = lang.StackTraceElement(place, "eval", "generated.java", 1)
    raised: Any = Exception("it failed")
    raised._origin = getattr(lang, kind)("it failed")
    raised._origin.setStackTrace(trace)

    error = translated(raised)

    assert (error.code is ErrorCode.EXPRESSION_FAILED) is is_of_data


def test_a_long_value_does_not_make_a_long_error(spark: SparkSession) -> None:
    error = failure(spark.range(1).selectExpr("raise_error(repeat('x', 6000000)) AS v"))

    assert error.code is ErrorCode.EXPRESSION_FAILED
    assert len(error.message) < 3_000
