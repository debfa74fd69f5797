"""A warehouse on an object store is opened, or refused with the field to correct."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.errors import ErrorCode, JobError, NotSupportedError
from tests.support.paimon_tables import NAME, append, create, read
from tests.support.stores import ObjectStore

SECRETS = ("planted-access-key", "planted-secret-key")


def refused(catalog: CatalogSpec, credentials: dict[str, str]) -> JobError:
    with pytest.raises(JobError) as raised:
        open_connector(catalog, credentials)
    assert not [secret for secret in SECRETS if secret in str(raised.value)]
    return raised.value


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_tables_are_made_written_and_read(each_store: ObjectStore, scheme: str) -> None:
    catalog = each_store.new_catalog()
    catalog = replace(catalog, warehouse=catalog.warehouse.replace("s3://", f"{scheme}://"))
    connector = open_connector(catalog, each_store.credentials)

    create(connector, {"id": "bigint", "day": "string"}, ["day"])
    append(connector, [{"id": 1, "day": "a/b"}, {"id": 2, "day": "ü=%"}])

    assert read(connector) == [{"id": 1, "day": "a/b"}, {"id": 2, "day": "ü=%"}]
    assert connector.metadata.load_table(NAME).snapshot_id == 1


def test_options_under_paimons_shorter_names_are_understood(gateway: ObjectStore) -> None:
    catalog = gateway.new_catalog()
    options = {"s3.endpoint": gateway.endpoint, "s3.region": "us-east-1"}
    keys = {"s3.access-key": gateway.access_key, "s3.secret-key": gateway.secret_key}

    connector = open_connector(replace(catalog, options=options), keys)

    create(connector, {"id": "bigint"})
    append(connector, [{"id": 1}])
    assert read(connector) == [{"id": 1}]


def test_a_missing_bucket_is_named(each_store: ObjectStore) -> None:
    error = refused(each_store.catalog("s3://no-such-bucket/warehouse"), each_store.credentials)

    assert error.code is ErrorCode.WAREHOUSE_NOT_FOUND
    assert "bucket no-such-bucket" in error.message
    assert "warehouse" in error.remedy


def test_a_wrong_access_key_is_the_login(gateway: ObjectStore) -> None:
    keys = {**gateway.credentials, "fs.s3.accessKeyId": SECRETS[0]}

    error = refused(gateway.new_catalog(), keys)

    assert error.code is ErrorCode.WAREHOUSE_ACCESS_DENIED
    assert "access key (login)" in error.remedy


def test_a_wrong_secret_key_is_the_password(gateway: ObjectStore) -> None:
    keys = {**gateway.credentials, "fs.s3.accessKeySecret": SECRETS[1]}

    error = refused(gateway.new_catalog(), keys)

    assert error.code is ErrorCode.WAREHOUSE_ACCESS_DENIED
    assert "secret key (password)" in error.remedy


def test_half_a_key_is_refused(moto: ObjectStore) -> None:
    error = refused(moto.new_catalog(), {"fs.s3.accessKeyId": SECRETS[0]})

    assert error.code is ErrorCode.WAREHOUSE_ACCESS_DENIED
    assert "secret key (password)" in error.message


def test_no_key_anywhere_is_told(moto: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")

    error = refused(moto.new_catalog(), {})

    assert error.code is ErrorCode.WAREHOUSE_ACCESS_DENIED
    assert "login" in error.remedy


def test_the_key_may_be_ambient(gateway: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", gateway.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", gateway.secret_key)

    connector = open_connector(gateway.new_catalog(), {})

    create(connector, {"id": "bigint"})
    append(connector, [{"id": 1}])
    assert read(connector) == [{"id": 1}]


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9", "no-such-host.invalid"])
def test_a_wrong_endpoint_is_named(moto: ObjectStore, endpoint: str) -> None:
    catalog = CatalogSpec("paimon", "s3://bucket/warehouse", {"fs.s3.endpoint": endpoint})

    error = refused(catalog, moto.credentials)

    assert error.code is ErrorCode.STORAGE_UNAVAILABLE
    assert "endpoint" in error.remedy


def test_an_endpoint_that_is_no_url_is_refused(moto: ObjectStore) -> None:
    catalog = CatalogSpec("paimon", "s3://bucket/warehouse", {"fs.s3.endpoint": "http://a b"})

    error = refused(catalog, moto.credentials)

    assert error.code is ErrorCode.WAREHOUSE_NOT_FOUND
    assert "endpoint" in error.remedy


def test_a_catalog_whose_java_writers_hold_a_lock_is_refused(moto: ObjectStore) -> None:
    catalog = moto.new_catalog()
    catalog = replace(catalog, options={**catalog.options, "lock.enabled": "true"})

    error = refused(catalog, moto.credentials)

    assert isinstance(error, NotSupportedError)
    assert "lock.enabled" in error.message
