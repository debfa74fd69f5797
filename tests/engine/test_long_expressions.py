"""Expressions with thousands of parts mean what their texts mean, though texts are read once."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.analysis.catalyst_nodes import class_name
from spark_jobs.engine.analysis.expression_analyzer import ExpressionAnalyzer
from spark_jobs.engine.analysis.expressions import LONG_TERM, Expression, Side
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.errors import AnalysisError, ErrorCode
from tests.conformance.conftest import MakeTable
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ORDERS, Row

pytestmark = pytest.mark.slow

_ROWS = """
    VALUES
      (1, 1L, 1Y, 1.50, 0.0, 'v1', DATE '2024-01-01', array(1, 5), named_struct('x', 1), 1),
      (2, 2L, 2Y, 2.25, -0.0, 'V2', DATE '2024-01-02', array(700), named_struct('x', 9000), 2),
      (3, 9999999999L, -3Y, 3.00, double('NaN'), 'v3 ', DATE '1970-01-01', array(), NULL, 3),
      (4, -5L, 4Y, NULL, 700.5, NULL, NULL, NULL, named_struct('x', NULL), 4),
      (5, NULL, NULL, 0.10, NULL, '', current_date(), array(NULL), named_struct('x', 2), 5)
      AS rows(i, id, tiny, amount, f, v, day, xs, s, `a.b`)
"""


def _numbers(start: int = 1, count: int = LONG_TERM + 100) -> str:
    return ", ".join(map(str, range(start, start + count)))


def _quoted(text: str) -> str:
    return f"'{text}'"


def _texts(text: str) -> str:
    return ", ".join(text.format(number) for number in range(LONG_TERM + 100))


_DATES = _texts("date_add(DATE '2024-01-01', {0})")
_TIMES = _texts("TIMESTAMP '1{0:03}-01-01'") + ", TIMESTAMP '2024-01-01'"
CONDITIONS = {
    "numbers of the type": f"i IN ({_numbers(2)})",
    "narrower numbers": f"id IN ({_numbers()})",
    "wider numbers": f"tiny IN ({_numbers(-4)}, 9999999999)",
    "negative numbers": f"id IN ({_numbers(-800)})",
    "decimals": f"amount IN ({_texts('{0}.25')}, 0.1)",
    "numbers with fractions": f"f IN (0, {_texts('{0}.5')})",
    "NaN": f"f IN ({_texts('{0}.5')}, double('NaN'))",
    "texts": f"v IN ({_texts(_quoted('v{0}'))}, '')",
    "texts for numbers": f"id IN ({_texts(_quoted('{0}'))})",
    "constants that are computed": f"id IN ({_numbers(2)}, 0 + 1, abs(-9999999999))",
    "columns among the constants": f"id IN ({_numbers(5)}, i)",
    "dates": f"day IN ({_DATES})",
    "texts for dates": f"day IN ({_texts(_quoted('1{0:03}-01-01'))}, '2024-01-01')",
    "today": f"day IN ({_texts(_quoted('1{0:03}-01-01'))}, current_date())",
    "one constant many times": f"id IN ({', '.join(['2'] * 700)})",
    "NULL among them": f"id IN ({_numbers(2)}, NULL)",
    "NOT IN": f"id NOT IN ({_numbers(2)})",
    "nothing but NULL": f"id IN ({', '.join(['NULL'] * 700)})",
    "numbers for doubles": f"f IN ({_numbers(-100, 900)})",
    "signed zeros": f"f IN ({', '.join(['-0.0D'] * 700)})",
    "binary": f"CAST(v AS BINARY) IN ({', '.join(['X' + _quoted('7631')] * 700)})",
    "texts for times": f"CAST(day AS TIMESTAMP) IN ({_texts(_quoted('1{0:03}-01-01'))})",
    "another type of the column": f"day IN ({_TIMES})",
    "NOT IN with NULL": f"v NOT IN ({_texts(_quoted('v{0}'))}, NULL)",
    "another spelling of the column": f"ID IN ({_numbers(2)}) OR iD = 1 OR T.Id IS NULL",
    "lists in conditions": f"IF(i > 2, id IN ({_numbers(-5)}), NOT tiny IN ({_numbers(2)}))",
    "a list in CASE": f"CASE WHEN v = 'v1' THEN id IN ({_numbers()}) WHEN i = 2 THEN true END",
    "a list in a lambda": f"exists(xs, x -> x IN ({_numbers(500)}))",
    "a list in an expression": f"coalesce(id IN ({_numbers()}), i BETWEEN 4 AND 9)",
    "an expression in a list": f"id + 1 IN ({_numbers(3)})",
    "a field": f"s.x IN ({_numbers()})",
    "a name with a dot": f"`a.b` IN ({_numbers(3)})",
    "two lists": f"id IN ({_numbers()}) AND i NOT IN ({_numbers(2)})",
    "OR": " OR ".join(f"(id = {n} AND v <> 'v{n + 1}')" for n in range(400)),
    "AND": " AND ".join(f"id <> {n}" for n in range(2, 700)),
    "CASE": f"CASE {_texts('WHEN id = {0} THEN v = ' + _quoted('v{0}')).replace(',', '')} END",
}
SETS = [
    "numbers of the type",
    "narrower numbers",
    "wider numbers",
    "decimals",
    "texts",
    "texts for numbers",
    "texts for dates",
]


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "true")  # as in jobs
    return session.sql(_ROWS).alias("t")


def analyzed(rows: DataFrame, text: str) -> Expression:
    spark = rows.sparkSession
    side = Side("t", spark.createDataFrame([], rows.schema))
    return ExpressionAnalyzer(spark, side).analyze(text, "target", "WHERE")


@pytest.mark.parametrize("text", CONDITIONS.values(), ids=CONDITIONS)
def test_a_long_condition_means_its_text(rows: DataFrame, text: str) -> None:
    found = analyzed(rows, text)

    assert found.long is not None
    by_text = rows.select("i", F.expr(text).alias("value")).collect()
    assert rows.select("i", found.column.alias("value")).collect() == by_text


@pytest.mark.parametrize("name", SETS)
def test_long_lists_are_sets(rows: DataFrame, name: str) -> None:
    found = analyzed(rows, CONDITIONS[name])

    assert found.long is not None
    assert class_name(found.long.tree) == "InSet"


def test_what_depends_on_the_time_is_not_decided_early(rows: DataFrame) -> None:
    texts = _texts("'1{0:03}-01-01'")

    found = analyzed(rows, f"day IN ({texts}, 'today')")

    assert found.long is not None
    assert class_name(found.long.tree) == "In"


def test_a_constant_that_does_not_fit_fails_when_rows_are_read(rows: DataFrame) -> None:
    text = f"id IN ({_texts(_quoted('{0}'))}, 'many')"

    found = analyzed(rows, text)

    with pytest.raises(PySparkException, match="CAST_INVALID_INPUT"):
        rows.where(found.column).collect()


def test_what_fails_names_its_place_in_the_text(rows: DataFrame) -> None:
    text = f"id IN ({_numbers()})\n OR i / (i - i) = 1"

    with pytest.raises(PySparkException, match=r"line 2, position 5"):
        rows.where(analyzed(rows, text).column).collect()


def test_errors_are_those_of_short_texts(rows: DataFrame) -> None:
    messages = []
    for constants in ("1", _numbers()):
        with pytest.raises(AnalysisError) as raised:
            analyzed(rows, f"nothing IN ({constants})")
        assert raised.value.code is ErrorCode.COLUMN_NOT_FOUND
        messages.append(
            raised.value.message.replace(f"({constants})", "…").partition(": ")[2][-80:]
        )
    assert messages[0] == messages[1]


_SOURCE = "(SELECT 101L AS id, 'x' AS v UNION ALL SELECT 122L, 'y' UNION ALL SELECT 1L, 'z')"
_MERGE = f"MERGE INTO {TARGET} t USING {_SOURCE} s ON t.id = s.id"
_INSERT = "WHEN NOT MATCHED THEN INSERT (id, v, req, p) VALUES"
# Each with two lists of constants: of ids, and of texts.
STATEMENTS = {
    "DELETE": f"DELETE FROM {TARGET} WHERE id IN ({{0}}) AND v NOT IN ({{1}})",
    "UPDATE": f"UPDATE {TARGET} SET v = IF(id IN ({{0}}), 'in', v), n = 7 WHERE v IN ({{1}})",
    "ON": f"{_MERGE} AND t.id IN ({{0}}) WHEN MATCHED THEN UPDATE SET v = s.v "
    f"{_INSERT} (s.id, s.v, 'r', 'a')",
    "ON, without a key": f"{_MERGE.replace('=', '<=', 1)} AND t.id IN ({{0}}) AND s.id > 100 "
    "AND t.id > s.id - 1 AND s.v IN ('x') WHEN MATCHED THEN DELETE",
    "clauses": f"{_MERGE} WHEN MATCHED AND t.id IN ({{0}}) "
    "THEN UPDATE SET v = IF(t.v IN ({1}), s.v, 'no') "
    f"WHEN MATCHED AND s.id NOT IN ({{0}}) THEN DELETE "
    f"{_INSERT} (s.id, IF(id IN ({{0}}), 'in', 'out'), 'r', 'a')",
    "not matched by source": f"{_MERGE} WHEN NOT MATCHED BY SOURCE AND id IN ({{0}}) "
    "AND v IN ({1}) THEN DELETE",
}


def outcome(make_table: MakeTable, text: str) -> tuple[list[Row], int, int, int]:
    """The rows and counts after a statement."""
    harness = make_table("folder", ORDERS, partitioned=True)
    metrics = run(harness, text).metrics
    rows = sorted(harness.read(), key=lambda row: int(row["id"]))
    return rows, metrics.inserted, metrics.updated, metrics.deleted


def run(harness: Harness, text: str) -> JobResult:
    parsed = parse_statement(text)
    request = JobRequest("one", TARGET, harness.catalog, parsed.statement, parsed.sources)
    result = Job(request, harness.spark, harness.open()).run()
    assert result.error is None, result.error
    return result


@pytest.mark.parametrize("text", STATEMENTS.values(), ids=STATEMENTS)
def test_statements_do_what_short_ones_do(make_table: MakeTable, text: str) -> None:
    ids, texts = "101, 123, 303", "'v101', 'v123', 'v209'"
    more_texts = ", ".join(f"'none {number}'" for number in range(1_000))

    few = outcome(make_table, text.format(ids, texts))
    many = outcome(make_table, text.format(f"{ids}, {_numbers(1_000)}", f"{texts}, {more_texts}"))

    assert many == few
    assert many[1:] != (0, 0, 0)


def test_many_conditions_on_the_target(make_table: MakeTable) -> None:
    harness = make_table("folder", ORDERS, partitioned=True)
    terms = " AND ".join(f"id <> {number}" for number in range(102, 1_102))

    result = run(harness, f"DELETE FROM {TARGET} WHERE {terms}")

    assert result.metrics.deleted == 2
