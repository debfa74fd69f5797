"""What both sides make of the options of an Iceberg catalog, and what they refuse by name."""

from __future__ import annotations

import pytest

from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.contract.s3_options import S3Options
from spark_jobs.errors import JobError, NotSupportedError, RequestError
from spark_jobs.formats.iceberg.options import (
    flat,
    identifier_of,
    properties_of,
    require_catalog,
    storage_options,
)

REST = {"type": "rest", "uri": "https://lake.example"}


@pytest.mark.parametrize(
    "options",
    [
        REST,
        {"uri": "http://lake"},
        {"type": "sql", "uri": "sqlite:////c.db"},
        {"type": "glue"},
        {"type": "glue", "uri": "http://localhost:5000"},
    ],
)
def test_catalogs_that_are_opened(options: dict[str, str]) -> None:
    assert require_catalog(options) == options.get("type", "rest")


@pytest.mark.parametrize(
    ("options", "kind", "problem"),
    [
        *(
            ({"type": name}, NotSupportedError, f"of the type {name} are not supported")
            for name in ("hadoop", "hive", "dynamodb", "bigquery", "in-memory")
        ),
        ({"type": "nessie"}, RequestError, "type: 'nessie' is not one of: rest, sql, glue"),
        ({"type": "rest"}, RequestError, "uri: does not begin with http://"),
        ({"type": "sql", "uri": "mysql://h/d"}, RequestError, "sqlite or postgresql"),
        ({"type": "glue", "uri": "eu-central-1"}, RequestError, "uri: does not begin with http"),
        ({"type": "glue", "glue.endpoint": "h"}, RequestError, "glue.endpoint: does not begin"),
        ({"type": "glue", "s3.role-arn": "r"}, NotSupportedError, "s3.role-arn: is not supported"),
        ({"type": "glue", "glue.id": "1:s3tablescatalog/b"}, NotSupportedError, "S3 Tables"),
        ({**REST, "py-catalog-impl": "a.B"}, NotSupportedError, "a class of your own"),
        ({**REST, "s3.signer": "S3V4RestSigner"}, NotSupportedError, "Remote signing"),
        ({**REST, "s3.remote-signing-enabled": "true"}, NotSupportedError, "Remote signing"),
        ({**REST, "snapshot-loading-mode": "refs"}, RequestError, "is not 'all'"),
        ({**REST, "auth.type": "custom", "auth.impl": "a.B"}, NotSupportedError, "'custom'"),
    ],
)
def test_what_is_refused(options: dict[str, str], kind: type[JobError], problem: str) -> None:
    with pytest.raises(kind) as error:
        require_catalog(options)
    assert problem in str(error.value)


def test_nested_properties_are_named_by_their_path() -> None:
    auth = {"type": "basic", "basic": {"username": "u", "password": "p"}}
    options = {**REST, **flat("auth", auth)}
    assert options["auth.basic.password"] == "p"
    assert properties_of(options) == {**REST, "auth": auth}
    for wrong in ({"a.b": "c"}, {"a": ["b"]}, {"a": {"b": None}}):
        with pytest.raises(RequestError, match=r"^RequestError|auth\.a"):
            flat("auth", wrong)


def test_client_id_and_secret_are_one_property_of_pyiceberg() -> None:
    options = {**REST, "oauth2.client-id": "id", "oauth2.client-secret": "secret"}
    tokens = f"{REST['uri']}/v1/oauth/tokens"
    expected = {**REST, "credential": "id:secret", "oauth2-server-uri": tokens}
    assert properties_of(options) == expected
    own = {"oauth2-server-uri": "https://login.example/token"}
    assert properties_of(options | own) == expected | own


def test_the_host_of_a_connection_to_glue_is_its_endpoint() -> None:
    assert properties_of({"type": "glue", "uri": "http://h", "glue.endpoint": "http://own"}) == {
        "type": "glue",
        "glue.endpoint": "http://h",
    }


def test_the_storage_is_opened_with_the_options_of_files() -> None:
    options = {
        "s3.endpoint": "http://minio:9000",
        "client.region": "eu-central-1",
        "s3.access-key-id": "id",
        "client.access-key-id": "of the catalog",
        "client.secret-access-key": "secret",
    }
    found = S3Options.of(storage_options(options))
    assert found == S3Options("http://minio:9000", "eu-central-1", "id", "secret", None, True)
    virtual = storage_options({**options, "s3.force-virtual-addressing": "true"})
    assert not S3Options.of(virtual).path_style


def test_names_of_tables() -> None:
    assert identifier_of(REST, TableName("a.b", "t$branch_audit")) == ("a", "b", "t")
    assert identifier_of({"type": "glue"}, TableName("a", "t$branch_audit")) == ("a", "t")
    with pytest.raises(NotSupportedError, match="several levels"):
        identifier_of({"type": "glue"}, TableName("a.b", "t"))
    assert TableName("a.b", "t$branch_audit").branch == "audit"
    assert TableName("a.b", "t").branch == "main"


def test_a_catalog_without_a_warehouse_needs_a_workspace() -> None:
    assert CatalogSpec("iceberg", "", REST, "/work").workspace_location == "/work"
    with pytest.raises(RequestError, match="warehouse: '' is not an absolute path"):
        CatalogSpec("iceberg", "", REST)
