"""Which files texts may read, and which texts have to be looked at."""

from __future__ import annotations

import pytest

from spark_jobs.contract.inserts import InsertOverwriteSpec
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource, TableName
from spark_jobs.contract.text_limits import TextLimits, expressions, is_within, may_call
from spark_jobs.errors import RequestError

PREFIXES = ("/land", "s3://lake/in/", "hdfs://nn:8020/a")
LOCAL = "file:///"


@pytest.mark.parametrize(
    "location",
    [
        "/land",
        "/land/",
        "/land/a.csv",
        "//land//a",
        "file:///land/x",
        "file:/land/x",
        "FILE:///land/x",
        "file://localhost/land/x",
        "/land/*",
        "/land/{a,b}/x",
        "/land/2026-{01,02}/*.csv",
        "/land/a..b",
        "/land/...",
        "/land/a%20b",
        "s3a://lake/in/x",
        "S3://lake/in/x",
        "s3n://lake/in",
        "hdfs://NN:8020/a/b",
    ],
)
def test_below_a_prefix(location: str) -> None:
    assert is_within(location, PREFIXES, LOCAL)


@pytest.mark.parametrize(
    "location",
    [
        "/landing",
        "/landing/x",
        "/land*",
        "/land?/x",
        "/land{,ing}/x",
        "/lan[d]/x",
        "/Land/x",
        " /land/x",
        "land/x",
        "/land/../etc",
        "/land/./x",
        "/land/%2e%2e/etc",
        "/land/%252e%252e/x",
        "/land/..%2fetc",
        "/land/{..,a}/x",
        "/land/{.,/}./etc",
        "/land/{a,/etc}",
        "/land/{a",
        "/land/\\.\\./etc",
        "/land/\n/x",
        "file:land",
        "file://land/etc/passwd",
        "file://evil/land/x",
        "s3://lake2/in/x",
        "s3://lake/in2",
        "s3://lake@evil/in/x",
        "s3:/lake/in",
        "http://lake/in/x",
        "jar:file:/land/x",
        "hdfs://nn/a",
        "hdfs:///a/b",
    ],
)
def test_not_below_a_prefix(location: str) -> None:
    assert not is_within(location, PREFIXES, LOCAL)


def test_a_path_is_on_the_default_store() -> None:
    assert is_within("/a/x", PREFIXES, "hdfs://nn:8020/")
    assert not is_within("/a/x", PREFIXES, "hdfs://other:8020/")
    assert not is_within("/land/x", ("file:///land",), "hdfs://nn:8020")


def test_a_bucket() -> None:
    assert is_within("s3a://lake/x/y", ("s3://lake",), LOCAL)
    assert not is_within("s3a://lakes/x", ("s3://lake",), LOCAL)


@pytest.mark.parametrize("prefix", ["land", "/land/*", "/land/../x", "s3:lake", ""])
def test_what_is_no_prefix(prefix: str) -> None:
    with pytest.raises(RequestError, match="source_prefixes"):
        TextLimits(source_prefixes=(prefix,))


def test_names_are_no_expressions() -> None:
    statement = InsertOverwriteSpec(
        "q",
        "static",
        {"source": "f(1)", "columns": "1"},
        columns=("total(eur)",),
        order_by=("total(eur) DESC",),
        expected_partitions=({"day": "g(2)"},),
    )
    lake = CatalogSpec("paimon", "/lake")
    sources = (SqlSource("q", "SELECT 1"),)
    request = JobRequest("one", TableName("a", "b"), lake, statement, sources)

    assert list(expressions(request.statement)) == [
        ("statement.partition.source", "f(1)"),
        ("statement.expected_partitions[0].day", "g(2)"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "f(1)",
        "x IN (SELECT 1)",
        "(( select 1 ))",
        "x IN (\u017felect 1)",
        "(/* */ SELECT 1)",
        "f -- a comment\n(1)",
        "`f` (1)",
        f"f{' ' * 100}(1)",
        f"({' ' * 100}SELECT 1)",
        f"{'long' * 20}(1)",
        "(VALUES (1))",
        "identifier('f')(1)",
    ],
)
def test_texts_that_may_call(text: str) -> None:
    assert may_call(text)


@pytest.mark.parametrize(
    "text",
    ["a = 1", "a IN (1, 2)", "NOT (a = 1 OR (b = 2 AND (c + 1) * (d) > 3))", "a IN('x')"],
)
def test_texts_that_call_nothing(text: str) -> None:
    assert not may_call(text)
