"""A REST catalog's server that cannot be reached, or answers anything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_merge.checks.requests import MetadataCheck
from airflow_provider_merge.hooks.paimon import PaimonHook
from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import DeleteSpec
from spark_jobs.errors import CatalogError, ErrorCode, InternalError, JobError, NotSupportedError
from tests.airflow.support import connection
from tests.support.small_server import Answer, serving

TOKEN = "a-planted-token"
TABLE = "shop.orders"


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Answer]]:
    """What a server answers, by path; the connection ``lake`` is to it."""
    found: dict[str, Answer] = {}

    with serving(lambda path: found.get(path, (404, {}))) as uri:
        extra = {"metastore": "rest", "uri": uri, "warehouse": "/lake"}
        connection(monkeypatch, "lake", conn_type="paimon", password=TOKEN, extra=extra)
        yield found


@pytest.mark.parametrize(
    "answer",
    [
        (500, TOKEN.encode()),
        (302, b""),
        (200, b"no json"),
        (200, b"[]"),
        (200, b'{"defaults": [1]}'),
        (200, b" " * (17 * 1024 * 1024)),
    ],
)
def test_what_is_no_answer(answers: dict[str, Answer], answer: Answer) -> None:
    answers["/v1/config"] = answer
    answers["/elsewhere"] = (200, b"{}")

    with pytest.raises(InternalError) as error:
        PaimonHook("lake").latest_snapshot(TABLE)

    assert error.value.code is ErrorCode.STORAGE_UNAVAILABLE
    assert TOKEN not in str(error.value)
    assert PaimonHook("lake").test_connection() == (False, str(error.value))


TABLE_PATH = "/v1/a%2Fb/databases/shop/tables/orders"


@pytest.mark.parametrize(
    ("config", "table", "kind", "code"),
    [
        ((403, b""), (200, b"{}"), CatalogError, ErrorCode.WAREHOUSE_ACCESS_DENIED),
        ((404, b""), (200, b"{}"), CatalogError, ErrorCode.WAREHOUSE_NOT_FOUND),
        ((200, b"{}"), (200, b'{"path": "/x"}'), CatalogError, ErrorCode.TABLE_NOT_FOUND),
        (
            (200, b'{"overrides": {"prefix": "a/b", "data-token.enabled": true}}'),
            (200, b'{"path": "/x"}'),
            NotSupportedError,
            ErrorCode.NOT_SUPPORTED,
        ),
        (
            (200, b'{"defaults": {"prefix": "a/b"}}'),
            (200, b'{"path": 7}'),
            CatalogError,
            ErrorCode.TABLE_NOT_FOUND,
        ),
        (
            (200, b'{"defaults": {"prefix": "a/b"}, "overrides": null}'),
            (200, b'{"path": "/no/such/folder"}'),
            CatalogError,
            ErrorCode.TABLE_NOT_FOUND,
        ),
    ],
)
def test_what_the_server_refuses(
    answers: dict[str, Answer],
    config: Answer,
    table: Answer,
    kind: type[JobError],
    code: ErrorCode,
) -> None:
    answers |= {"/v1/config": config, TABLE_PATH: table}
    with pytest.raises(kind) as error:
        PaimonHook("lake").latest_snapshot(TABLE)
    assert error.value.code is code


def test_a_catalog_that_lets_nobody_in_is_final_where_the_driver_would_ask_it_with_the_same_key(
    answers: dict[str, Answer],
) -> None:
    answers["/v1/config"] = (401, b"")
    wanted = TableName("shop", "orders"), DeleteSpec("true"), ()

    with pytest.raises(CatalogError) as error:
        MetadataCheck(PaimonHook("lake"), shares_files=True).require_valid(*wanted)
    assert error.value.code is ErrorCode.WAREHOUSE_ACCESS_DENIED

    MetadataCheck(PaimonHook("lake"), shares_files=False).require_valid(*wanted)


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"metastore": "rest", "uri": "http://127.0.0.1:9", "warehouse": "/lake"}
    connection(monkeypatch, "lake", conn_type="paimon", password=TOKEN, extra=extra)
    with pytest.raises(
        InternalError, match=r"127\.0\.0\.1:9 did not answer as it should .ConnectionError"
    ):
        PaimonHook("lake").table(TABLE)


def test_the_test_button_asks_the_server(answers: dict[str, Answer]) -> None:
    answers["/v1/config"] = (200, b"{}")
    works, text = PaimonHook("lake").test_connection()
    assert works
    assert text.endswith("knows /lake."), "it does not list its databases"
    answers["/v1/config"] = (200, b'{"defaults": {"prefix": "a/b"}}')
    answers["/v1/a%2Fb/databases"] = (403, b"")
    assert PaimonHook("lake").test_connection() == (True, text), "it lists them for others"
    answers["/v1/a%2Fb/databases"] = (200, b'{"databases": ["shop", "lab"]}')
    works, text = PaimonHook("lake").test_connection()
    assert works
    assert text.endswith("knows /lake. It has 2 databases: lab, shop.")


def test_tables_are_listed(answers: dict[str, Answer]) -> None:
    """A server's pages may lead to each other, and its names lead elsewhere."""
    answers["/v1/config"] = (200, b"{}")
    answers["/v1/databases"] = (200, b'{"databases": ["shop"]}')
    answers["/v1/databases/shop/tables"] = (200, b'{"tables": ["b", "../a"], "nextPageToken": "1"}')
    assert set(map(str, PaimonHook("lake").table_names(5))) == {"shop.b"}
    answers["/v1/databases/shop/tables"] = (200, b'{"tables": 1}')
    assert PaimonHook("lake").table_names(5) == []
