"""Which constants of partition specs need no Spark, and what they are.

tests/engine/test_plain_constants.py compares the values with Spark's.
"""

from __future__ import annotations

import datetime as dt

import pytest

from spark_jobs.contract.inserts import ClearingStatement, DropPartitionsSpec, TruncateTableSpec
from spark_jobs.contract.plain_constants import (
    Constant,
    has_plain_constants,
    is_unclear_day,
    plain_constant,
)

DAY = dt.date(2026, 1, 31)
TYPES = {"Day": "DATE", "n": "INT NOT NULL", "at": "TIMESTAMP(6)"}


@pytest.mark.parametrize(
    ("text", "declared", "value", "shown"),
    [
        ("NULL", "timestamp", None, None),
        ("null", "int", None, None),
        ("'it is 007 '", "string", "it is 007 ", "it is 007 "),
        ("''", "string", "", ""),
        ("'Straße'", "VARCHAR(6)", "Straße", "Straße"),
        ("'007'", "int", 7, "7"),
        ("'+7'", "BIGINT", 7, "7"),
        ("'-128'", "tinyint", -128, "-128"),
        ("'32767'", "SMALLINT NOT NULL", 32767, "32767"),
        ("'true'", "boolean", True, "true"),
        ("'2026-01-31'", "date", DAY, "2026-01-31"),
        ("007", "string", "7", "7"),
        ("-7", "int", -7, "-7"),
        ("TRUE", "boolean", True, "true"),
        ("False", "string", "false", "false"),
        ("DATE '2026-01-31'", "date", DAY, "2026-01-31"),
        ("date'2026-01-31'", "STRING", "2026-01-31", "2026-01-31"),
    ],
)
def test_plain(text: str, declared: str, value: object, shown: str | None) -> None:
    found = plain_constant(text, declared)

    assert found == Constant(value, shown)
    assert type(found.value) is type(value)


@pytest.mark.parametrize(
    ("text", "declared"),
    [
        (r"'it\'s'", "string"),
        (r"'a\\b'", "string"),
        ("'a''b'", "string"),
        ('"a"', "string"),
        ("r'a'", "string"),
        ("'a' 'b'", "string"),
        ("'a\u00a0b'", "string"),
        ("'a\nb'", "string"),
        ("'a\ud800'", "string"),
        ("fal\u017fe", "string"),
        ("'abcd'", "varchar(3)"),
        ("'a'", "char(1)"),
        ("' 7'", "int"),
        ("'7.0'", "int"),
        ("'1e1'", "int"),
        ("'\u0667'", "int"),
        ("'128'", "tinyint"),
        ("2147483648", "int"),
        ("1234567890123456789", "bigint"),
        ("7L", "bigint"),
        ("- 7", "int"),
        ("7.5", "int"),
        ("7", "date"),
        ("1", "boolean"),
        ("'1'", "boolean"),
        ("'TRUE'", "boolean"),
        ("true", "int"),
        ("'2026-1-31'", "date"),
        ("'2026-02-30'", "date"),
        ("'0000-01-01'", "date"),
        ("'2026-01-31 00:00:00'", "date"),
        ("DATE '2026-02-30'", "string"),
        ("DATE '2026-01-31'", "timestamp"),
        ("'2026-01-31'", "timestamp"),
        ("TIMESTAMP '2026-01-31 00:00:00'", "date"),
        ("CAST('7' AS INT)", "int"),
        ("current_date()", "date"),
        ("7", "decimal(10,2)"),
        ("'7'", "double"),
        ("'x'", "binary"),
        ("'x'", ""),
    ],
)
def test_left_to_spark(text: str, declared: str) -> None:
    assert plain_constant(text, declared) is None


@pytest.mark.parametrize(
    ("statement", "plain"),
    [
        (TruncateTableSpec({"day": "'2026-01-31'", "`N`": "7"}), True),
        (TruncateTableSpec({"day": "'2026-01-31'", "n": "7 + 1"}), False),
        (TruncateTableSpec({"at": "'2026-01-31'"}), False),
        (TruncateTableSpec({"nowhere": "'x'"}), False),
        (DropPartitionsSpec(({"DAY": "NULL"}, {"n": "'007'"})), True),
        (DropPartitionsSpec(({"day": "NULL"}, {"n": "'many'"})), False),
    ],
)
def test_every_constant_of_a_statement_counts(statement: ClearingStatement, plain: bool) -> None:
    assert has_plain_constants(statement, lambda: TYPES) is plain


def test_a_whole_table_needs_no_types() -> None:
    def unknown() -> dict[str, str]:
        raise AssertionError("the columns are of no use")

    assert has_plain_constants(TruncateTableSpec(), unknown)


@pytest.mark.parametrize(
    ("text", "declared"),
    [
        ("'2026'", "DATE"),
        ("'2026-01'", "date not null"),
        ("'2026-01-31 or so'", "date"),
        ("'2026-01-31T99:99'", "date"),
        ("' '", "date"),
        ("'2026-01'", "TIMESTAMP(6)"),
        ("'2026'", "timestamp_ntz"),
    ],
)
def test_no_whole_day(text: str, declared: str) -> None:
    assert is_unclear_day(text, declared)


@pytest.mark.parametrize(
    ("text", "declared"),
    [
        ("'2026-1-5'", "date"),
        ("' 2026-01-31 '", "date"),
        ("DATE '2026-01-31'", "date"),
        ("NULL", "date"),
        ("'2026-01'", "string"),
        ("'2026'", "int"),
        ("'2026-01-31'", "timestamp"),
        ("'2026-01-31 05:00'", "timestamp"),
    ],
)
def test_a_whole_day(text: str, declared: str) -> None:
    assert not is_unclear_day(text, declared)


@pytest.mark.parametrize(
    ("value", "declared", "sql"),
    [
        (b"\0'", "BINARY", "X'0027'"),
        (
            dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC),
            "TIMESTAMP",
            "timestamp_micros(-3600000000)",
        ),
        (-0.0, "DOUBLE", "CAST('text' AS DOUBLE)"),
    ],
    ids=str,
)
def test_values_whose_text_could_mean_another_one(value: object, declared: str, sql: str) -> None:
    assert Constant(value, "text").as_sql(declared) == sql
