"""SQL text means what was meant, whatever users write into their expressions and names."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType

from spark_jobs.engine.runtime.older_spark import parsed_type
from spark_jobs.engine.runtime.session import fixed_settings
from spark_jobs.engine.runtime.sql_text import embedded, null_of, text_literal, type_text


@pytest.mark.parametrize("escapes", ["true", "false"])
def test_a_literal_is_the_text(spark: SparkSession, escapes: str) -> None:
    texts = ["", "it's", 'a "b" `c`', "\\n\\", "line\nbreak\ttab", "ü😀", "${x} %d --", "\0"]

    with fixed_settings(spark, {"spark.sql.parser.escapedStringLiterals": escapes}):
        frame = spark.range(1).selectExpr(
            *(f"{text_literal(t)} AS c{i}" for i, t in enumerate(texts))
        )
        found = list(frame.collect()[0])

    assert found == texts


@pytest.mark.parametrize(
    "text", ["1 -- one", "1 -- one \\", "1 /* one */", "1\n", "CASE WHEN TRUE THEN 1 END"]
)
def test_an_expression_may_end_in_a_comment(spark: SparkSession, text: str) -> None:
    assert spark.range(1).selectExpr(f"{embedded(text)} + 1 AS two").collect() == [(2,)]


@pytest.mark.parametrize(
    "declared",
    [
        "DECIMAL(38, 3)",
        "TIMESTAMP_NTZ",
        "STRUCT<`a b`: INT NOT NULL, `c``d`: ARRAY<STRUCT<e: DATE>>>",
        "MAP<STRING, STRUCT<f: BINARY>>",
    ],
)
def test_the_text_of_a_type_is_that_type(spark: SparkSession, declared: str) -> None:
    kind: DataType = parsed_type(declared)

    assert parsed_type(type_text(kind)) == kind
    frame = spark.range(1).selectExpr(f"{null_of(kind)} AS n")
    assert frame.schema[0].dataType.simpleString() == kind.simpleString()
    assert frame.collect() == [(None,)]
