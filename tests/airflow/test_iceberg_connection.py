"""What a connection of the type ``iceberg`` tells a job, and what it is refused for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.apache.iceberg.get_provider_info import (
    get_provider_info as airflows_provider_info,
)

from airflow_provider_merge.get_provider_info import get_provider_info
from airflow_provider_merge.hooks.catalog import catalog_hook
from airflow_provider_merge.hooks.iceberg import IcebergHook
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.errors import (
    CatalogError,
    ErrorCode,
    JobError,
    NotSupportedError,
    RequestError,
)
from tests.airflow.support import PASSWORD, connection

Hook = Callable[..., IcebergHook]
REST = "https://lake.example/api"


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Hook:
    def make(host: str | None = REST, *, login: str = "", password: str = "", **extra: Any) -> Any:
        fields = {"host": host, "login": login, "password": password, "extra": extra}
        connection(monkeypatch, "lake", conn_type="iceberg", **fields)
        return catalog_hook("lake")

    return make


def test_a_server(hook: Hook) -> None:
    lake = hook(
        f"{REST}/",
        login="id",
        password=PASSWORD,
        warehouse="prod",
        scope="PRINCIPAL_ROLE:ALL",
        workspace="/work",
        ui_url="https://ui.example/{database}/{table}/{snapshot_id}",
        **{"s3.endpoint": "http://minio:9000", "s3.secret-access-key": PASSWORD, "own": 1},
    )
    assert lake.catalog_spec() == CatalogSpec(
        "iceberg",
        "",
        {
            "type": "rest",
            "uri": REST,
            "warehouse": "prod",
            "scope": "PRINCIPAL_ROLE:ALL",
            "catalog-name": "lake",
            "snapshot-loading-mode": "all",
            "s3.endpoint": "http://minio:9000",
        },
        "/work",
    )
    assert lake.credentials() == {
        "oauth2.client-id": "id",
        "oauth2.client-secret": PASSWORD,
        "s3.secret-access-key": PASSWORD,
        "own": "1",
    }
    page = lake.snapshot_page(TableName("a.b", "t"), 9007199254740993)
    assert page == "https://ui.example/a.b/t/9007199254740993"


def test_a_database(hook: Hook) -> None:
    lake = hook(
        "postgresql+psycopg2://db/lake",
        login="writer",
        password=PASSWORD,
        type="sql",
        warehouse="s3://bucket/lake",
        **{"catalog-name": "prod", "s3.access-key-id": "AK", "client.region": "eu"},
    )
    spec = lake.catalog_spec()
    assert (spec.warehouse, spec.workspace) == ("s3://bucket/lake", None)
    assert spec.options["catalog-name"] == "prod"
    assert lake.credentials() == {
        "jdbc.user": "writer",
        "jdbc.password": PASSWORD,
        "s3.access-key-id": "AK",
    }
    assert lake.workspace_options()["key"] == "AK"
    assert lake.workspace_options()["client_kwargs"] == {"region_name": "eu"}


def test_aws_glue(hook: Hook) -> None:
    extra = {"type": "glue", "warehouse": "s3://bucket/lake", "client.region": "eu-central-1"}
    lake = hook(None, login="AKIA", password=PASSWORD, **extra, **{"glue.id": "123456789012"})
    assert lake.catalog_spec() == CatalogSpec(
        "iceberg",
        "s3://bucket/lake",
        {**extra, "glue.id": "123456789012", "catalog-name": "lake"},
    )
    assert lake.credentials() == {
        "client.access-key-id": "AKIA",
        "client.secret-access-key": PASSWORD,
    }
    assert lake.workspace_options()["key"] == "AKIA"
    without = hook("http://localhost:5000", **extra, **{"glue.session-token": PASSWORD})
    assert without.catalog_spec().options["uri"] == "http://localhost:5000"
    assert without.credentials() == {"glue.session-token": PASSWORD}


def test_nested_properties_travel_with_the_credentials(hook: Hook) -> None:
    auth = {"type": "basic", "basic": {"username": "u", "password": PASSWORD}}
    lake = hook(workspace="/work", auth=auth)
    assert PASSWORD not in lake.catalog_spec().options.values()
    assert lake.credentials() == {
        "auth.type": "basic",
        "auth.basic.username": "u",
        "auth.basic.password": PASSWORD,
    }


@pytest.mark.parametrize(
    ("fields", "kind", "problem"),
    [
        *(
            ({"type": name}, NotSupportedError, f"Catalogs of the type {name} are not supported")
            for name in ("hadoop", "hive", "dynamodb", "bigquery", "in-memory")
        ),
        ({"type": "other"}, RequestError, "connection 'lake', type: 'other' is not one of"),
        ({"host": None}, RequestError, "connection 'lake', uri: does not begin with http"),
        ({"host": f"https://u:{PASSWORD}@h"}, RequestError, "'lake', uri: holds a password"),
        (
            {"host": f"postgresql://u:{PASSWORD}@h/db", "type": "sql"},
            RequestError,
            "'lake', uri: holds a password",
        ),
        (
            {"s3.proxy-uri": f"http://u:{PASSWORD}@h"},
            RequestError,
            "s3.proxy-uri: holds a password",
        ),
        ({"login": "id"}, RequestError, "'lake', password: is empty, but a client has"),
        ({"password": PASSWORD}, RequestError, "'lake', login: is empty, but a client has"),
        (
            {"type": "glue", "login": "AKIA"},
            RequestError,
            "'lake', password: is empty, but a key of AWS has",
        ),
        (
            {"type": "glue", "host": "eu-central-1"},
            RequestError,
            "'lake', uri: does not begin with http",
        ),
        (
            {"type": "glue", "client.role-arn": "arn:aws:iam::1:role/r"},
            NotSupportedError,
            "client.role-arn: is not supported",
        ),
        ({"py-io-impl": "os.system"}, RequestError, "py-io-impl: names a class of your own"),
        ({"own": {"a": PASSWORD}}, RequestError, "'lake', own: is not text"),
        ({"auth": "basic"}, RequestError, "'lake', auth: is not a JSON object"),
        ({"auth": {"basic": [PASSWORD]}}, RequestError, "'lake', auth.basic: is not text"),
        ({"auth": {"type": "google"}}, NotSupportedError, "the authentication 'google'"),
        ({"workspace": ""}, RequestError, "'lake', workspace: is empty, but jobs need a place"),
        ({"workspace": "gs://b/w"}, RequestError, "jobs cannot leave results on gs://"),
        ({"workspace": "work"}, RequestError, "workspace: 'work' is not an absolute path"),
    ],
)
def test_what_is_refused(
    hook: Hook, fields: dict[str, Any], kind: type[JobError], problem: str
) -> None:
    lake = hook(**{"workspace": "/work", **fields})
    with pytest.raises(kind) as error:
        # As an operator does: either may refuse.
        (lake.catalog_spec(), lake.credentials())
    assert problem in str(error.value)
    assert PASSWORD not in str(error.value)
    assert PASSWORD not in repr(lake._settings())


def test_airflows_own_type_stays_its_own() -> None:
    own, airflows = (
        [each["connection-type"] for each in info()["connection-types"]]
        for info in (get_provider_info, airflows_provider_info)
    )
    assert "iceberg" in airflows
    assert "iceberg" not in own
    assert "lakehouse_iceberg" in own


def test_a_form_in_which_only_some_fields_are_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = next(
        each["conn-fields"]
        for each in get_provider_info()["connection-types"]
        if each["connection-type"] == "lakehouse_iceberg"
    )
    filled = {"type": "rest", "warehouse": "prod", "workspace": "/work"}
    plain = {"conn_type": "iceberg", "host": REST, "extra": filled}
    connection(monkeypatch, "lake", **plain)
    expected = catalog_hook("lake").catalog_spec()
    for empty in ("", None):
        extra = {name: filled.get(name, empty) for name in fields}
        connection(monkeypatch, "lake", conn_type="lakehouse_iceberg", host=REST, extra=extra)
        lake = catalog_hook("lake")
        assert lake.catalog_spec() == expected
        assert lake.credentials() == {}
        assert lake.snapshot_page(TableName("db", "t"), 1) == ""


def test_a_hook_without_a_connection_names_the_type() -> None:
    with pytest.raises(RequestError, match="there is no connection 'iceberg_default'"):
        IcebergHook().catalog_spec()


def test_importing_hook_and_sensors_loads_no_library() -> None:
    code = (
        "import sys; import airflow_provider_merge.hooks.catalog, "
        "airflow_provider_merge.sensors.snapshot, airflow_provider_merge.triggers.table; "
        "sys.exit('pyiceberg' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0


def test_a_database_that_holds_no_catalog(hook: Hook, tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    lake = hook(f"sqlite:///{path}", type="sql", workspace=str(tmp_path))

    passed, text = lake.test_connection()

    assert not passed
    assert "WAREHOUSE_NOT_FOUND" in text
    assert "write init_catalog_tables = true" in text
    assert not path.exists()

    path.touch()
    with pytest.raises(CatalogError, match="has no table iceberg_tables") as found:
        lake.table("shop.orders")
    assert found.value.code is ErrorCode.WAREHOUSE_NOT_FOUND
    assert path.stat().st_size == 0


def test_airflow_begins_no_catalog(hook: Hook, tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    extra = {"type": "sql", "workspace": str(tmp_path), "init_catalog_tables": "true"}
    lake = hook(f"sqlite:///{path}", **extra)

    assert lake.test_connection()[0]
    with pytest.raises(CatalogError, match="the catalog lake in sqlite") as found:
        lake.table("shop.orders")

    assert found.value.code is ErrorCode.TABLE_NOT_FOUND
    assert path.stat().st_size == 0
