"""What the engine asks of Spark's own classes, on the PySpark that is installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.engine.analysis import bound_expressions, catalyst, expression_parser
from spark_jobs.engine.runtime import older_spark, query_status

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a + t.b", {("a",): 0, ("t", "b"): 4}),
        ("/* a */ `a.b` = 'a' -- a", {("a.b",): 8}),
        ("exists(xs, x -> x = y)", {("xs",): 7, ("y",): 20}),
        (
            "aggregate(xs, 0, (x, y) -> x + Y + z.x + t.y)",
            {("xs",): 10, ("z", "x"): 35, ("t", "y"): 41},
        ),
        ("transform(xs, x -> exists(x, y -> y = x AND z))", {("xs",): 10, ("z",): 44}),
        ("s.info.city", {("s", "info", "city"): 0}),
        ("CASE WHEN a IN (1, b) THEN c END", {("a",): 10, ("b",): 19, ("c",): 27}),
        ("'ä😀' || a", {("a",): 8}),
        ("1", {}),
    ],
)
def test_names_and_where_they_start(
    spark: SparkSession, text: str, names: dict[tuple[str, ...], int]
) -> None:
    parsed = expression_parser.parse_expression(spark, text)

    assert {name.parts: name.start for name in parsed.names} == names
    assert not parsed.has_subquery


@pytest.mark.parametrize("text", ["a AS b", "a b", "a = b AND", "a AS (b, c)"])
def test_a_name_behind_an_expression_is_seen(spark: SparkSession, text: str) -> None:
    assert expression_parser.parse_expression(spark, text).is_named


@pytest.mark.parametrize("text", ["(SELECT 1)", "a IN (SELECT 1)", "NOT EXISTS (SELECT 1)"])
def test_subqueries_are_seen(spark: SparkSession, text: str) -> None:
    assert expression_parser.parse_expression(spark, text).has_subquery


def test_text_that_is_no_expression(spark: SparkSession) -> None:
    with pytest.raises(ParseException):
        expression_parser.parse_expression(spark, "a = = b")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a = b", ["a = b"]),
        ("a = b AND c IN (1, 2) and d IS NULL", ["a = b", "c IN (1, 2)", "d IS NULL"]),
        ("a BETWEEN 1 AND 2 AND b", ["a BETWEEN 1 AND 2", "b"]),
        ("(a AND b) AND NOT c", ["a", "b", "NOT c"]),
        ("((a = b) AND (c AND (d)))", ["a = b", "c", "d"]),
        ("(a) AND (b)", ["a", "b"]),
        ("/* why */ (a AND b)", ["/* why */ (a AND b)"]),
        ("a OR b AND c", ["a OR b AND c"]),
        ("a = 'x AND y' AND b", ["a = 'x AND y'", "b"]),
        ("a /* AND */ AND `AND`", ["a /* AND */", "`AND`"]),
        ("exists(xs, x -> x AND y) AND z", ["exists(xs, x -> x AND y)", "z"]),
        ("CASE WHEN a AND b THEN true END AND c", ["CASE WHEN a AND b THEN true END", "c"]),
    ],
)
def test_parts_that_and_connects(spark: SparkSession, text: str, parts: list[str]) -> None:
    found = expression_parser.conjuncts(expression_parser.parse_expression(spark, text))

    assert [each.parsed.text for each in found] == parts


@pytest.mark.parametrize(
    ("text", "sides"),
    [
        ("t.id = s.id + 1", ("t.id", "s.id + 1")),
        ("t.`=` == s.`a = b`", ("t.`=`", "s.`a = b`")),
        ("concat(t.v, '=') = s.v", ("concat(t.v, '=')", "s.v")),
        ("((t.id) = (s.id + 1))", ("t.id", "s.id + 1")),
        ("(t.a) = (s.a) = (t.b)", ("(t.a) = (s.a)", "t.b")),
        ("t.id <=> s.id", None),
        ("t.id >= s.id", None),
        ("NOT t.id = s.id", None),
    ],
)
def test_sides_of_an_equality(
    spark: SparkSession, text: str, sides: tuple[str, str] | None
) -> None:
    parsed = expression_parser.parse_expression(spark, text)
    [conjunct] = expression_parser.conjuncts(parsed)

    assert conjunct.sides == sides


def test_columns_that_an_expression_reads(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], "a INT, b INT, c STRING")
    ids = catalyst.attribute_ids(frame)

    selected, other = catalyst.selected_expressions(
        frame.alias("t").select(F.expr("t.A + b"), F.expr("rand()"))
    )

    assert sorted(ids[key] for key in selected.attributes) == ["a", "b"]
    assert selected.deterministic
    assert (other.attributes, other.deterministic) == ((), False)


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        ("max(a)", "Aggregate"),
        ("row_number() OVER (ORDER BY a)", "Window"),
        ("explode(array(a))", "Generate"),
    ],
)
def test_expressions_over_several_rows(spark: SparkSession, text: str, operator: str) -> None:
    frame = spark.createDataFrame([], "a INT").select(F.expr(text))

    assert operator in catalyst.selected_expressions(frame)[0].operators


def test_nondeterministic_expression(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], "a INT").select(F.expr("a + rand()"))

    assert not catalyst.selected_expressions(frame)[0].deterministic


def test_name_of_an_error(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException) as raised:
        spark.sql("SELECT b FROM VALUES (1) AS t(a)")

    assert older_spark.error_condition(raised.value) == "UNRESOLVED_COLUMN.WITH_SUGGESTION"


def test_observed_metric_of_a_frame_that_was_collected(spark: SparkSession) -> None:
    frame = spark.range(5).observe("counting", F.count("id").alias("n"))
    frame.collect()

    assert query_status.observed_metric(frame, "counting") == 5
    assert query_status.observed_metric(frame, "another") == 0


@pytest.mark.parametrize(
    ("text", "target", "views"),
    [
        ("a = 1", {"a"}, {}),
        ("a IN (SELECT x FROM one)", {"a"}, {"one": {"x"}}),
        ("a IN (SELECT x FROM ONE WHERE y = t.b)", {"a", "b"}, {"one": {"x", "y"}}),
        ("EXISTS (SELECT 1 FROM one JOIN two ON x = z)", set(), {"one": {"x"}, "two": {"z"}}),
        ("a < (SELECT count(*) FROM one)", {"a"}, {"one": set()}),
        (
            "a IN (SELECT x FROM one WHERE y IN (SELECT z FROM two))",
            {"a"},
            {"one": {"x", "y"}, "two": {"z"}},
        ),
        ("a IN (SELECT q.x FROM one q, one WHERE q.x = one.y)", {"a"}, {"one": {"x", "y"}}),
        ("a IN (SELECT id FROM range(3))", {"a"}, {}),
    ],
)
def test_what_subqueries_read(
    spark: SparkSession, text: str, target: set[str], views: dict[str, set[str]]
) -> None:
    spark.createDataFrame([], "x INT, y STRING").createOrReplaceTempView("one")
    spark.createDataFrame([], "z STRING").createOrReplaceTempView("two")
    frame = spark.createDataFrame([], "a INT, b STRING").alias("t")
    names = catalyst.attribute_ids(frame)

    condition = catalyst.filter_condition(frame.where(F.expr(text)))

    assert {names[key] for key in condition.attributes} == target
    found = {name.lower(): set(columns) for name, columns in condition.view_columns.items()}
    assert found == views
    assert condition.deterministic
    assert not condition.other_relations


def test_subqueries_over_what_is_no_view(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).write.parquet(f"{tmp_path}/files")
    frame = spark.range(1).where(F.expr(f"id IN (SELECT id FROM parquet.`{tmp_path}/files`)"))

    assert catalyst.filter_condition(frame).other_relations


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("a < 1", ["LessThan", "AttributeReference", "Literal"]),
        ("a = 1L", ["EqualTo", "Cast", "AttributeReference", "Literal"]),
        ("NOT a <=> 1", ["Not", "EqualNullSafe", "AttributeReference", "Literal"]),
        ("a IN (1, 2)", ["In", "AttributeReference", "Literal", "Literal"]),
        (
            "a BETWEEN 1 AND 2",
            [
                "And",
                *("GreaterThanOrEqual", "AttributeReference", "Literal"),
                *("LessThanOrEqual", "AttributeReference", "Literal"),
            ],
        ),
        ("a = (SELECT 1)", ["EqualTo", "AttributeReference", "ScalarSubquery"]),
    ],
)
def test_the_tree_of_a_condition(spark: SparkSession, text: str, kinds: list[str]) -> None:
    frame = spark.createDataFrame([(1,)], "a INT")

    tree = bound_expressions.bound_condition(frame.where(F.expr(text)))

    assert list(_kinds(tree)) == kinds
    assert tree.attributes == set(catalyst.attribute_ids(frame))
    assert not tree.has_predicate_subquery


def test_a_part_of_a_condition_is_a_column_of_the_frame(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1,), (2,)], "a INT")

    tree = bound_expressions.bound_condition(frame.where(F.expr("a = 2 OR a IS NULL")))

    assert frame.select(tree.children[0].column).collect() == [(False,), (True,)]


def test_casts_that_cannot_fail(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], "a INT, s STRING, d DATE")

    def is_safe(text: str) -> bool:
        return (
            bound_expressions.bound_condition(frame.where(F.expr(text))).children[0].is_safe_upcast
        )

    assert is_safe("CAST(a AS BIGINT) = 1")
    assert is_safe("CAST(d AS TIMESTAMP) = now()")
    assert not is_safe("CAST(a AS TINYINT) = 1Y")
    assert is_safe("CAST(a AS STRING) = '1'")
    assert not is_safe("CAST(s AS INT) = 1")


def _kinds(node: bound_expressions.BoundExpression) -> Iterator[str]:
    yield node.kind
    for child in node.children:
        yield from _kinds(child)
