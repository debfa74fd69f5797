"""Comparisons of CHAR columns, whose values end in blanks, with texts."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import DeleteAction, DeleteSpec, MergeCase, MergeSpec
from spark_jobs.engine.analysis.analyzer import analyze_filtered, analyze_merge
from spark_jobs.errors import ErrorCode, NotSupportedError
from spark_jobs.spi.tables import Column, TableHandle

_SOURCE = StructType([StructField("code", StringType()), StructField("word", StringType())])


def table() -> TableHandle:
    columns = (
        Column("code", "char(4)", nullable=True),
        Column("word", "varchar(4)", nullable=True),
        Column("text", "string", nullable=True),
    )
    return TableHandle(TableName("db", "t"), columns, (), 1)


@pytest.mark.parametrize(
    "where",
    [
        "code = 'ab'",
        "'ab' <=> t.code",
        "NOT code <> 'ab  c'",
        "text = 'x' AND code IN ('ab  ', 'c')",
        "code BETWEEN 'a   ' AND 'b'",
        "CASE code WHEN 'ab' THEN true END",
        "EXISTS (SELECT 1) OR code >= 'b'",
    ],
)
def test_a_text_of_another_length_is_refused(spark: SparkSession, where: str) -> None:
    with pytest.raises(NotSupportedError, match=r"WHERE: code is CHAR\(4\)") as raised:
        analyze_filtered(spark, DeleteSpec(target_alias="t", where=where), table())

    assert raised.value.code is ErrorCode.NOT_SUPPORTED
    assert "rtrim(code)" in raised.value.remedy


@pytest.mark.parametrize(
    "where",
    [
        "code = 'ab  '",
        "rtrim(code) = 'ab'",
        "code LIKE 'ab%'",
        "code IN ('ab  ', 'abcd') AND word = 'ab' AND text = 'abcdef'",
        "code BETWEEN 'a   ' AND 'b   '",
        "code = rpad('ab', 4, ' ') AND code IS NOT NULL",
    ],
)
def test_other_conditions_are_as_they_are(spark: SparkSession, where: str) -> None:
    merge = analyze_filtered(spark, DeleteSpec(target_alias="t", where=where), table())

    assert "code" in merge.on.target_columns


def test_conditions_of_a_merge(spark: SparkSession) -> None:
    def merge(on: str, condition: str) -> None:
        case = MergeCase("matched", DeleteAction(), condition)
        analyze_merge(spark, MergeSpec("s", on, (case,), "t", "s"), table(), _SOURCE)

    merge("t.code = s.code", "s.code = 'ab' AND t.code = 'ab  '")
    with pytest.raises(NotSupportedError, match=r"ON: t.code is CHAR\(4\).*'ab'"):
        merge("t.word = s.word AND t.code = 'ab'", "s.word = 'x'")
    with pytest.raises(NotSupportedError, match=r"condition of clause 1.*t.code is CHAR\(4\)"):
        merge("t.code = s.code", "t.code = 'abcde'")
