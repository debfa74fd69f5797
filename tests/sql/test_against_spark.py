"""What Spark's own parser finds in the same texts: the same clauses, the same expressions."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given, reject, settings
from pyspark.errors import ParseException

from airflow_provider_merge.checks.expressions import names_in
from airflow_provider_merge.sql.parser import parse_statement
from airflow_provider_merge.sql.text import require_whole
from spark_jobs.contract.request import SqlSource
from spark_jobs.engine.runtime.session import fixed_meaning
from spark_jobs.errors import JobError
from tests.settings.registry import Trial, session_with
from tests.sql.reading import read
from tests.sql.strategies import cut_expressions, mutations, queries, statements
from tests.sql.test_expressions import WHOLE
from tests.sql.test_fuzz import pieces_of
from tests.sql.test_table_names import FROM_FIRST, MERGE, QUERIES

pytestmark = pytest.mark.slow


class SparkParser:
    """Spark's parser; Hypothesis cannot print what comes from the JVM."""

    def __init__(self, session):
        self._parser = session._jsparkSession.sessionState().sqlParser()

    def plan(self, text):
        return self._parser.parsePlan(text)

    def expression(self, text):
        return self._parser.parseExpression(text)


@pytest.fixture(scope="module")
def parser(spark):
    return SparkParser(spark)


def items(sequence):
    return [sequence.apply(index) for index in range(sequence.size())]


def given_one(option):
    return [option.get()] if option.isDefined() else []


def expressions_of(plan):
    """Spark's expressions of a statement, in the order of its text; None: it is another one."""
    kind = plan.getClass().getSimpleName()
    if kind == "DeleteFromTable":
        return without_defaults([plan.condition()])
    if kind == "UpdateTable":
        values = [each.value() for each in items(plan.assignments())]
        return values + given_one(plan.condition())
    if kind != "MergeIntoTable":
        return None
    found = [plan.mergeCondition()]
    for actions in (
        plan.matchedActions(),
        plan.notMatchedActions(),
        plan.notMatchedBySourceActions(),
    ):
        for action in items(actions):
            found += given_one(action.condition())
            if action.getClass().getSimpleName() in ("UpdateAction", "InsertAction"):
                found += [each.value() for each in items(action.assignments())]
    return found


def without_defaults(expressions):
    """DELETE without WHERE has the condition true."""
    return [each for each in expressions if each.toString() != "true"]


def check(parser, text):
    """Where Spark's grammar and ours both accept a text, the expressions are the same."""
    try:
        wanted = expressions_of(parser.plan(text))
    except ParseException:
        return False
    if wanted is None:
        return False
    found = [parser.expression(each) for each in pieces_of(parse_statement(text).statement)]
    if text.lstrip().upper().startswith("DELETE"):
        found = without_defaults(found)
    assert [each.toString() for each in found] == [each.toString() for each in wanted]
    assert all(one.equals(other) for one, other in zip(found, wanted, strict=True))
    return True


@given(statements)
@settings(max_examples=150)
def test_random_statements(parser, pieces):
    assert check(parser, pieces.text)


@given(mutations())
@settings(max_examples=300)
def test_mutated_statements_are_never_split_otherwise(parser, text):
    with contextlib.suppress(JobError):  # refused here: nothing was split
        check(parser, text)


@pytest.mark.parametrize("text", WHOLE)
def test_written_expressions(parser, text):
    head = "MERGE INTO d.t AS t USING d.s AS s"
    assert check(parser, f"{head} ON {text} WHEN MATCHED AND {text} THEN UPDATE SET a = {text}")


@given(cut_expressions())
@settings(max_examples=300)
def test_what_is_no_whole_expression_is_none_for_spark(parser, text):
    try:
        require_whole(text)
    except JobError:
        try:
            parsed = parser.expression(text)
        except ParseException:
            return
        # An alias, which no statement takes.
        assert parsed.getClass().getSimpleName() in ("Alias", "UnresolvedAlias")


@pytest.mark.parametrize(("query", "expected"), QUERIES.items(), ids=QUERIES)
def test_no_table_is_overlooked(parser, query, expected):
    before = relations(parser.plan(query))
    after = relations(parser.plan(expected))
    source = read(MERGE.format(query), "src").sources[-1]
    assert isinstance(source, SqlSource)
    assert [name.replace("d, ", "d__") for name in before] == after
    assert not any(name.startswith("d, ") for name in relations(parser.plan(source.query)))


@pytest.mark.parametrize("expected", FROM_FIRST.values())
def test_what_a_query_that_begins_with_from_becomes_is_one(parser, expected):
    parser.plan(expected)


@given(queries())
@settings(max_examples=100)
def test_no_table_of_a_random_query_is_overlooked(parser, query):
    try:
        before = relations(parser.plan(query))
    except ParseException:
        reject()
    source = read(MERGE.format(query), "src").sources[-1]
    after = relations(parser.plan(source.query))
    assert after == [name.replace("d, ", "d__") for name in before]


def relations(plan):
    """The tables that a plan reads, also in its subqueries, as Spark writes them."""
    return re.findall(r"UnresolvedRelation \[([^\]]*)\]", plan.treeString())


# Literals that some setting of Spark reads as something else, with the columns that they name.
TRICKY = {
    r"'a\'b'": [],
    r"'\\'": [],
    r"'^\\d+$'": [],
    "'it''s'": [],
    "'a' 'b'": [],
    '"id"': [],
    r'"a\"b"': [],
    "'--' || id": ["id"],
    "'/*' || id || '*/'": ["id"],
    r"r'\' || id": ["id"],
    "X'41'": [],
    "`id`": ["id"],
    "`(id)?+.+`": ["(id)?+.+"],
    "1e3": [],
    "1L + `a``b`": ["a`b"],
}
DIALECTS = (
    "ansi.doubleQuotedIdentifiers",
    "ansi.enforceReservedKeywords",
    "legacy.consecutiveStringLiterals.enabled",
    "legacy.exponentLiteralAsDecimal.enabled",
    "parser.escapedStringLiterals",
    "parser.quotedRegexColumnNames",
)


@pytest.mark.parametrize("setting", DIALECTS)
def test_literals_are_one_dialect_whatever_a_cluster_sets(spark, setting):
    with fixed_meaning(spark, "UTC"):
        wanted = {text: parsed_expression(spark, text) for text in TRICKY}
    trial = Trial(f"spark.sql.{setting}", "true")
    with session_with(spark, trial) as session, fixed_meaning(session, "UTC"):
        found = {text: parsed_expression(session, text) for text in TRICKY}

    assert found == wanted
    assert {text: columns for text, (_, columns) in found.items()} == TRICKY
    assert {text: [".".join(name) for name in names_in(text)] for text in TRICKY} == TRICKY


def parsed_expression(session, text):
    """The tree of a text, and the columns that it names."""
    found = SparkParser(session).expression(text)
    return found.toString(), unresolved(found)


def unresolved(expression):
    """The names of columns, as Spark splits them."""
    if expression.getClass().getSimpleName() == "UnresolvedAttribute":
        return [".".join(items(expression.nameParts()))]
    return [name for child in items(expression.children()) for name in unresolved(child)]
