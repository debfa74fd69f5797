"""Texts that certainly do more than compute rows are told before anything is started for them."""

from __future__ import annotations

import pytest

from airflow_provider_merge.checks.plain_texts import require_plain
from airflow_provider_merge.operators._shared.configured_limits import configured_limits
from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource, TableName
from spark_jobs.contract.text_limits import TextLimits
from spark_jobs.errors import NotSupportedError, RequestError

LAKE = CatalogSpec("paimon", "/lake")
CODE = "reflect('java.lang.System', 'gc')"
COMMANDS = ["DROP TABLE a.b", "ADD JAR '/a'", "set x = 1", "/* a */ CREATE TABLE t AS SELECT 1"]
QUERIES = [
    f"SELECT {CODE}",
    "SELECT `JAVA_METHOD` ( 'java.lang.System', 'gc')",
    "SELECT TRANSFORM (a) USING 'touch /a' AS (b) FROM t",
    'WITH a AS (SELECT 1) SELECT * FROM (FROM a MAP x USING "cat" AS (y))',
]
# What looks like one, and Spark knows better.
PLAIN = [
    "SELECT 'reflect(''a'')' AS x -- reflect('a')",
    "WITH reflect(a) AS (SELECT 1) SELECT reflect.a FROM reflect",
    "SELECT transform(a, x -> x + 1) FROM t JOIN u USING (id)",
    "SELECT drop, `set` FROM t",
    "SELECT unclosed '",
]


def query(text: str, limits: TextLimits | None = None) -> JobRequest:
    source = SqlSource("q", text)
    limits = limits or TextLimits()
    return JobRequest("query", None, LAKE, QuerySpec("q"), (source,), text_limits=limits)


@pytest.mark.parametrize("text", COMMANDS)
@pytest.mark.parametrize("allow_code", [False, True])
def test_commands(text: str, allow_code: bool) -> None:
    with pytest.raises(NotSupportedError, match="query of source q: it is not a query"):
        require_plain(query(text, TextLimits(allow_code)))


@pytest.mark.parametrize("text", QUERIES)
def test_code(text: str) -> None:
    with pytest.raises(NotSupportedError, match=r"\[merge\] allow_code_in_sql"):
        require_plain(query(text))

    require_plain(query(text, TextLimits(allow_code=True)))


@pytest.mark.parametrize("text", PLAIN)
def test_plain_queries(text: str) -> None:
    require_plain(query(text))


@pytest.mark.parametrize(
    "text",
    [
        f"UPDATE a.b SET x = {CODE}",
        f"DELETE FROM a.b WHERE {CODE} IS NULL",
        f"MERGE INTO a.b t USING c.d s ON t.id = s.id WHEN MATCHED AND {CODE} = 'a' THEN DELETE",
        f"INSERT INTO a.b SELECT {CODE}",
    ],
)
def test_statements(text: str) -> None:
    parsed = parse_statement(text)
    target = TableName("a", "b")
    request = JobRequest("one", target, LAKE, parsed.statement, parsed.sources)

    with pytest.raises(NotSupportedError, match="the function reflect runs code"):
        require_plain(request)


def test_what_airflow_is_configured_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert configured_limits() == TextLimits()

    monkeypatch.setenv("AIRFLOW__MERGE__ALLOW_CODE_IN_SQL", "True")
    monkeypatch.setenv("AIRFLOW__MERGE__SOURCE_PREFIXES", " s3://lake/in , /land,")

    assert configured_limits() == TextLimits(True, ("s3://lake/in", "/land"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALLOW_CODE_IN_SQL", "perhaps"),
        ("SOURCE_PREFIXES", "land"),
        ("SOURCE_PREFIXES", "/land/*"),
        ("SOURCE_PREFIXES", "/land/../etc"),
    ],
)
def test_a_setting_that_says_nothing(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"AIRFLOW__MERGE__{name}", value)

    with pytest.raises(RequestError, match=rf"\[merge\] {name.lower()}"):
        configured_limits()
