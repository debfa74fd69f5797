"""The connection type: what becomes catalog options, what stays secret, what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.get_provider_info import get_provider_info
from airflow_provider_merge.hooks.catalog import catalog_hook
from airflow_provider_merge.hooks.paimon import PaimonHook
from spark_jobs.errors import RequestError
from tests.airflow.support import PASSWORD, connection

AMBIENT = {
    "client_kwargs": {},
    "config_kwargs": {"s3": {"addressing_style": "virtual"}},
    "use_listings_cache": False,
}


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Callable[..., PaimonHook]:
    def make(login: None = None, password: None = None, **extra: Any) -> PaimonHook:
        connection(
            monkeypatch, "lake", conn_type="paimon", login=login, password=password, extra=extra
        )
        return PaimonHook("lake")

    return make


def test_filesystem(hook: Callable[..., PaimonHook]) -> None:
    lake = hook(warehouse="/lake")
    spec = lake.catalog_spec()
    assert (spec.connector, spec.warehouse) == ("paimon", "/lake")
    assert spec.options == {"metastore": "filesystem"}
    assert lake.credentials() == {}
    assert lake.storage_options() == {}


def test_object_store(hook: Callable[..., PaimonHook]) -> None:
    lake = hook(
        login="AK", password=PASSWORD, warehouse="s3://b/lake", endpoint="http://s3", region="eu"
    )
    assert lake.catalog_spec().options == {
        "metastore": "filesystem",
        "fs.s3.endpoint": "http://s3",
        "fs.s3.region": "eu",
    }
    assert lake.credentials() == {"fs.s3.accessKeyId": "AK", "fs.s3.accessKeySecret": PASSWORD}
    assert lake.storage_options() == {
        "key": "AK",
        "secret": PASSWORD,
        "client_kwargs": {"endpoint_url": "http://s3", "region_name": "eu"},
        "config_kwargs": {"s3": {"addressing_style": "path"}},
        "use_listings_cache": False,
    }


def test_without_a_workspace_it_is_the_warehouse(hook: Callable[..., PaimonHook]) -> None:
    lake = hook(warehouse="s3://b/lake", workspace="")
    assert lake.catalog_spec().workspace is None
    assert lake.catalog_spec().workspace_location == "s3://b/lake"
    assert lake.workspace_options() == lake.storage_options() == AMBIENT


def test_a_workspace_is_no_catalog_option(hook: Callable[..., PaimonHook]) -> None:
    lake = hook(warehouse="/lake", workspace="/scratch/")
    spec = lake.catalog_spec()
    assert (spec.warehouse, spec.workspace) == ("/lake", "/scratch/")
    assert spec.workspace_location == "/scratch"
    assert spec.options == {"metastore": "filesystem"}


def test_a_workspace_may_be_on_other_storage(hook: Callable[..., PaimonHook]) -> None:
    lake = hook(login="AK", password=PASSWORD, warehouse="/lake", workspace="s3://b/scratch")
    assert lake.storage_options() == {}
    assert lake.workspace_options() == {**AMBIENT, "key": "AK", "secret": PASSWORD}
    assert lake.credentials() == {"fs.s3.accessKeyId": "AK", "fs.s3.accessKeySecret": PASSWORD}
    assert PASSWORD not in repr(lake.catalog_spec())


def test_the_test_of_a_connection_looks_for_the_workspace(
    hook: Callable[..., PaimonHook], tmp_path: Path
) -> None:
    (tmp_path / "lake").mkdir()
    lake = hook(warehouse=str(tmp_path / "lake"), workspace=str(tmp_path / "scratch"))
    ok, text = lake.test_connection()
    assert not ok
    assert f"the workspace {tmp_path}/scratch is not a folder" in text

    (tmp_path / "scratch").mkdir()
    assert lake.test_connection()[0]


def test_ambient_object_store(hook: Callable[..., PaimonHook]) -> None:
    lake = hook(warehouse="s3://b/lake")
    assert lake.credentials() == {}
    assert lake.storage_options() == AMBIENT


def test_rest(hook: Callable[..., PaimonHook]) -> None:
    lake = hook(None, PASSWORD, metastore="rest", uri="http://rest", warehouse="s3://b/lake")
    assert lake.credentials() == {"token": PASSWORD, "token.provider": "bear"}


@pytest.mark.parametrize("as_text", [True, False])
def test_further_options_are_split_by_name(hook: Callable[..., PaimonHook], as_text: bool) -> None:
    options = {
        "fs.s3.accessKeySecret": PASSWORD,
        "dlf.access-key-id": PASSWORD,
        "fs.s3.securityToken": PASSWORD,
        "jdbc.password": PASSWORD,
        "token": PASSWORD,
        "header.Authorization": PASSWORD,
        "fs.azure.account.key.store.dfs.core.windows.net": PASSWORD,
        "dlf.private-key": PASSWORD,
        "ssl.key.passphrase": PASSWORD,
        "s3.account-key": PASSWORD,
        "fs.s3a.access.key": PASSWORD,
        "token.provider": "bear",
        "format-table.enabled": True,
        "parallelism": 3,
    }
    lake = hook(warehouse="/lake", options=json.dumps(options) if as_text else options)
    spec = lake.catalog_spec()
    assert spec.options == {
        "metastore": "filesystem",
        "token.provider": "bear",
        "format-table.enabled": "true",
        "parallelism": "3",
    }
    assert PASSWORD not in repr(spec)
    assert set(lake.credentials()) == {k for k, v in options.items() if v == PASSWORD}


WRONG = {
    "no warehouse": ({}, r"warehouse: is empty"),
    "relative warehouse": ({"warehouse": "lake"}, r"warehouse: 'lake' is not an absolute path"),
    "metastore": (
        {"warehouse": "/x", "metastore": "hive"},
        r"metastore: 'hive' is not one of: filesystem, rest",
    ),
    "metastore jdbc": (
        {"warehouse": "/x", "metastore": "jdbc", "uri": "jdbc:mysql://db/x"},
        r"metastore: 'jdbc' is not one of: filesystem, rest",
    ),
    "relative workspace": (
        {"warehouse": "/x", "workspace": "tmp"},
        r"workspace: 'tmp' is not an absolute path",
    ),
    "workspace on other storage": (
        {"warehouse": "/x", "workspace": "oss://b/w"},
        r"workspace: oss:// is not supported: jobs cannot reach",
    ),
    "password in workspace": (
        {"warehouse": "/x", "workspace": f"s3://u:{PASSWORD}@bucket/x"},
        r"workspace: holds a password",
    ),
    "no uri": ({"warehouse": "/x", "metastore": "rest"}, r"uri: is empty, but the rest metastore"),
    "other storage": ({"warehouse": "oss://b/w"}, r"warehouse: oss:// is not supported"),
    "options": ({"warehouse": "/x", "options": "{"}, r"options: is not JSON"),
    "null as an option": (
        {"warehouse": "/x", "options": {"a.b": None}},
        r"options\.a\.b: is null",
    ),
    "object as an option": (
        {"warehouse": "/x", "options": {"a.b": {"c": 1}}},
        r"options\.a\.b: is not text",
    ),
    "list as the warehouse": ({"warehouse": ["/x"]}, r"warehouse: is not text"),
    "options list": ({"warehouse": "/x", "options": [1]}, r"options: is not a JSON object"),
    "password in uri": (
        {"warehouse": "/x", "metastore": "rest", "uri": f"http://u:{PASSWORD}@host/x"},
        r"uri: holds a password",
    ),
    **{
        f"parameter {parameter} in uri": (
            {
                "warehouse": "/x",
                "metastore": "rest",
                "uri": f"http://host/x?a=b&{parameter}=" + PASSWORD,
            },
            r"uri: holds a password",
        )
        for parameter in ("password", "passwd", "secret", "token", "sig")
    },
    "password in warehouse": (
        {"warehouse": f"s3://u:{PASSWORD}@bucket/x"},
        r"warehouse: holds a password",
    ),
}


@pytest.mark.parametrize(("extra", "message"), WRONG.values(), ids=WRONG)
def test_refused_with_connection_and_field(
    hook: Callable[..., PaimonHook], extra: dict[str, Any], message: str
) -> None:
    with pytest.raises(RequestError, match=f"connection 'lake', {message}") as caught:
        hook(**extra).catalog_spec()
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize(
    "warehouse",
    ["/lake", "file:///lake", "s3://b/w", "s3a://b/w", "s3n://b/w", "hdfs://n/w", "oss://b/w"],
)
def test_the_form_takes_the_warehouses_that_jobs_take(
    hook: Callable[..., PaimonHook], warehouse: str
) -> None:
    form, _ = get_provider_info()["connection-types"]
    pattern = form["conn-fields"]["warehouse"]["schema"]["pattern"]
    try:
        hook(warehouse=warehouse).catalog_spec()
        taken = True
    except RequestError:
        taken = False
    assert bool(re.match(pattern, warehouse)) == taken == (not warehouse.startswith("oss"))


def test_the_form_offers_the_metastores_that_jobs_take(hook: Callable[..., PaimonHook]) -> None:
    form, _ = get_provider_info()["connection-types"]
    for name in form["conn-fields"]["metastore"]["schema"]["enum"]:
        spec = hook(warehouse="/lake", metastore=name, uri="http://host").catalog_spec()
        assert spec.options["metastore"] == name


def test_missing_connection() -> None:
    with pytest.raises(RequestError, match="catalog_conn_id: there is no connection 'nowhere'"):
        catalog_hook("nowhere")


def test_a_script_learns_where_airflow_looks_for_connections() -> None:
    with pytest.raises(RequestError) as raised:
        PaimonHook("nowhere").catalog_spec()
    assert "environment variables (AIRFLOW_CONN_NOWHERE) and secrets" in raised.value.remedy


def test_other_type(monkeypatch: pytest.MonkeyPatch) -> None:
    connection(monkeypatch, "pg", conn_type="postgres")
    with pytest.raises(RequestError, match=r"connection 'pg' has the type 'postgres'.*paimon"):
        catalog_hook("pg")
