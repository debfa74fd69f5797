"""References that are resolved without Spark mean what Spark would take them for."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from spark_jobs.engine.analysis.expression_analyzer import ExpressionAnalyzer
from spark_jobs.engine.analysis.expressions import Side
from spark_jobs.errors import AnalysisError, ErrorCode
from tests.support.statement_cost import counted

_SEEN = "NOT MATCHED sees only the source, NOT MATCHED BY SOURCE only the target."
UNKNOWN = [
    (
        "s.w",
        "both",
        "s.w is not a column of s",
        "Columns: ID, v, info, t.",
    ),
    (
        "north",
        "both",
        "north is not a column of t or s",
        (
            "A text needs quotes of its own: \"'north'\". Columns of t: id, a.b, day. "
            "Columns of s: ID, v, info, t."
        ),
    ),
    (
        "upper(inf)",
        "both",
        "inf is not a column of t or s",
        "Did you mean info? Columns of t: id, a.b, day. Columns of s: ID, v, info, t.",
    ),
    ("s.v", "target", "s.v is not a column of t", f"Columns: id, a.b, day. {_SEEN}"),
    (
        "x.v",
        "both",
        "x.v is not a column of t or s",
        "Columns of t: id, a.b, day. Columns of s: ID, v, info, t.",
    ),
]


@pytest.fixture
def analyzer(spark: SparkSession) -> ExpressionAnalyzer:
    target = spark.createDataFrame([], "id BIGINT, `a.b` STRING, day DATE")
    source = spark.createDataFrame([], "ID INT, v STRING, info STRUCT<x: INT>, t STRUCT<id: INT>")
    return ExpressionAnalyzer(spark, Side("t", target), Side("s", source))


@pytest.mark.parametrize(
    ("text", "sees", "target", "source", "kind"),
    [
        ("s.v", "both", set(), {"v"}, "string"),
        (" S.id ", "both", set(), {"ID"}, "int"),
        ("`s`.`v`", "source", set(), {"v"}, "string"),
        ("t.`a.b`", "target", {"a.b"}, set(), "string"),
        ("t.id", "target", {"id"}, set(), "bigint"),
        # Spark takes the alias before a column of the same name.
        ("t.id", "both", {"id"}, set(), "bigint"),
        ("t.id", "source", set(), {"t"}, "int"),
        ("info.x", "both", set(), {"info"}, "int"),
        ("s.info.x", "both", set(), {"info"}, "int"),
        ("s.v -- text", "both", set(), {"v"}, "string"),
    ],
)
def test_what_a_reference_means(
    analyzer: ExpressionAnalyzer,
    text: str,
    sees: str,
    target: set[str],
    source: set[str],
    kind: str,
) -> None:
    found = analyzer.analyze(text, sees, "value")

    assert (found.target_columns, found.source_columns) == (target, source)
    assert found.type.simpleString() == kind
    assert found.deterministic


@pytest.mark.parametrize(
    ("text", "sees", "problem", "remedy"),
    UNKNOWN,
)
def test_names_that_spark_does_not_resolve(
    analyzer: ExpressionAnalyzer, text: str, sees: str, problem: str, remedy: str
) -> None:
    with pytest.raises(AnalysisError) as raised:
        analyzer.analyze(text, sees, "value")

    assert raised.value.code is ErrorCode.COLUMN_NOT_FOUND
    assert raised.value.message == f"value: {problem}"
    assert raised.value.remedy == remedy


def test_names_among_expressions_that_are_analysed_together(analyzer: ExpressionAnalyzer) -> None:
    """None means another one of them, as names of the same SELECT do in Spark."""
    texts = ["s.id + 1", "`__merge_value_0` + 1"]
    analyzer.analyze_together(texts, "both")

    assert analyzer.analyze(texts[0], "both", "value").source_columns == {"ID"}
    with pytest.raises(AnalysisError) as raised:
        analyzer.analyze(texts[1], "both", "value")
    assert raised.value.code is ErrorCode.COLUMN_NOT_FOUND


def test_an_alias_that_the_parser_takes_for_something_else(spark: SparkSession) -> None:
    side = Side("null", spark.createDataFrame([], "v INT"))
    analyzer = ExpressionAnalyzer(spark, Side("t", spark.createDataFrame([], "id INT")), side)

    with pytest.raises(AnalysisError):
        analyzer.analyze("null.v", "source", "value")

    assert analyzer.analyze("`null`.v", "source", "value").source_columns == {"v"}


def test_spark_is_not_asked(spark: SparkSession, analyzer: ExpressionAnalyzer) -> None:
    analyzer.analyze("s.v", "both", "value")  # asks for the schemas, and whether s is a name

    with counted(spark) as cost:
        found = [analyzer.analyze(text, "both", "value") for text in ("s.id", "s.info", "s.v")]

    assert [each.type.simpleString() for each in found] == ["int", "struct<x:int>", "string"]
    assert cost.calls == 0


def test_columns_of_a_file_whose_header_is_not_told(spark: SparkSession) -> None:
    source = Side("s", spark.createDataFrame([], "_c0 STRING, _c1 STRING"))
    analyzer = ExpressionAnalyzer(spark, Side("t", spark.createDataFrame([], "id INT")), source)
    with pytest.raises(AnalysisError) as raised:
        analyzer.analyze("t.id = s.id", "both", "ON")
    assert raised.value.remedy.endswith("options={'header': True}.")
