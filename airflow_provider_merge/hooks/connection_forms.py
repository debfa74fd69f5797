"""The forms of the connection types, as Airflow's ``provider_info.schema.json`` describes them."""

from __future__ import annotations

from typing import Any, Final

from spark_jobs.contract.locations import WAREHOUSE_SCHEMES
from spark_jobs.formats.iceberg.options import CATALOGS, REST
from spark_jobs.formats.paimon.options import FILESYSTEM, METASTORES

# What SQL calls the catalog: spark.sql.catalog.<name> of a cluster.
SPARK_CATALOG_NAME: Final = "spark-catalog-name"
# An absolute path, or a URI of a scheme that jobs open.
_LOCATION: Final = f"^(/|({'|'.join(WAREHOUSE_SCHEMES)})://).*$"
_TEXT: Final = {"type": ["string", "null"]}
_TEST: Final = (
    "To test the connection in a terminal: AIRFLOW__CORE__TEST_CONNECTION=Enabled "
    "airflow connections test CONN_ID"
)
_ENDPOINT: Final = "Of a store other than Amazon's, such as http://minio:9000."


def paimon_form() -> dict[str, Any]:
    """The form of the connection type ``paimon``."""
    return {
        "connection-type": "paimon",
        "hook-class-name": "airflow_provider_merge.hooks.paimon.PaimonHook",
        "hook-name": "Apache Paimon",
        "ui-field-behaviour": {
            "hidden-fields": ["host", "port", "schema"],
            "relabeling": {"login": "Access key", "password": "Secret key"},
            "placeholders": {"login": "leave empty for ambient credentials"},
        },
        "conn-fields": {
            "metastore": {
                "label": "Metastore",
                "description": (
                    "filesystem: tables are folders of the warehouse; rest: a server knows them, "
                    "and takes the secret key as its token."
                ),
                "schema": {"type": "string", "enum": list(METASTORES), "default": FILESYSTEM},
            },
            "warehouse": {
                "label": "Warehouse",
                "description": (
                    "An absolute path, or a URI of file, s3 or hdfs: s3://bucket/warehouse. "
                    f"{_TEST}"
                ),
                "schema": {"type": "string", "pattern": _LOCATION},
            },
            "workspace": _field(
                "Workspace", "Where jobs put results and temporary files. Empty: the warehouse."
            ),
            "uri": _field("Metastore URI", "For a rest metastore; without a password."),
            "endpoint": _field("Object store endpoint", _ENDPOINT),
            "region": _field("Object store region", "Such as eu-central-1."),
            **_of_all(),
            "options": {
                "label": "Further catalog options",
                "description": 'A JSON object such as {"fs.s3.path-style-access": "true"}.',
                "schema": {"type": ["object", "null"]},
            },
        },
    }


def iceberg_form() -> dict[str, Any]:
    """The form of the connection type ``lakehouse_iceberg``."""
    return {
        "connection-type": "lakehouse_iceberg",
        "hook-class-name": "airflow_provider_merge.hooks.iceberg.IcebergHook",
        "hook-name": "Apache Iceberg (Lakehouse MERGE)",
        "ui-field-behaviour": {
            "hidden-fields": ["port", "schema"],
            "relabeling": {
                "host": "Catalog URI",
                "login": "ID, user or key",
                "password": "Secret or password",
            },
            "placeholders": {
                "host": "https://lake.example/api/catalog, or postgresql+psycopg2://db/lake",
                "login": "client ID, user of the database, or access key",
                "password": "client secret, password, or secret key",
            },
        },
        "conn-fields": {
            "type": {
                "label": "Catalog",
                "description": (
                    "rest; sql: a database, with a URI such as postgresql+psycopg2://db/lake or "
                    "sqlite:////lake/catalog.db; glue: AWS Glue, where the URI is empty."
                ),
                "schema": {"type": "string", "enum": list(CATALOGS), "default": REST},
            },
            "warehouse": _field(
                "Warehouse",
                "What the catalog calls its warehouse: a name, or a location such as "
                f"s3://bucket/warehouse. {_TEST}",
            ),
            "workspace": {
                "label": "Workspace",
                "description": (
                    "Where jobs put results and temporary files: an absolute path, or a URI of "
                    "file, s3 or hdfs. Operators need it, unless the warehouse is such a location."
                ),
                "schema": {**_TEXT, "pattern": f"^$|{_LOCATION}"},
            },
            "catalog-name": _field(
                "Name of the catalog",
                "In the tables of a sql catalog. Empty: the connection's id.",
            ),
            "token": {
                "label": "Token",
                "description": "Of a rest catalog, instead of client ID and secret.",
                "schema": {"type": ["string", "null"], "format": "password"},
            },
            "scope": _field("Scope", "Of OAuth 2, such as PRINCIPAL_ROLE:ALL."),
            "oauth2-server-uri": _field(
                "Token server", "Of OAuth 2. Empty: <Catalog URI>/v1/oauth/tokens."
            ),
            "client.region": _field("AWS region", "Of Glue and S3, such as eu-central-1."),
            "s3.endpoint": _field("Object store endpoint", _ENDPOINT),
            **_of_all(),
        },
    }


def _of_all() -> dict[str, Any]:
    return {
        SPARK_CATALOG_NAME: _field(
            "Name in SQL",
            "What SQL files call this catalog in front of a table, as in lake.shop.orders.",
        ),
        "ui_url": _field(
            "Page of a snapshot",
            "A task's link opens it, with {database}, {table} and {snapshot_id}, such as "
            "https://lake.example/{database}/{table}?snapshot={snapshot_id}.",
        ),
        "quarantine-url": _field(
            "Page of quarantined rows",
            "A task's link opens it, with {path}, the path or URI of a JSON Lines file, such as "
            "https://files.example/view?path={path}.",
        ),
    }


def _field(label: str, description: str | None = None) -> dict[str, Any]:
    described = {} if description is None else {"description": description}
    return {"label": label, **described, "schema": _TEXT}
