"""What Airflow learns of this provider through the entry point ``apache_airflow_provider``."""

from __future__ import annotations

from typing import Any

from airflow_provider_merge.hooks.connection_forms import iceberg_form, paimon_form

_NAME = "Lakehouse MERGE"


def get_provider_info() -> dict[str, Any]:
    """The provider's metadata, as Airflow's ``provider_info.schema.json`` describes it."""
    return {
        "package-name": "airflow-provider-merge",
        "name": _NAME,
        "description": "MERGE pipelines with Spark on tables of Apache Paimon and Apache Iceberg.",
        "integrations": [
            {
                "integration-name": _NAME,
                "external-doc-url": "https://paimon.apache.org/",
                "how-to-guide": [
                    "/docs/operators/merge_into.md",
                    "/docs/operators/update_and_delete.md",
                    "/docs/operators/insert_overwrite.md",
                    "/docs/operators/scd2.md",
                    "/docs/operators/create_table.md",
                    "/docs/operators/alter_table.md",
                    "/docs/operators/query.md",
                    "/docs/operators/statements.md",
                    "/docs/operators/compact.md",
                    "/docs/operators/table_care.md",
                    "/docs/operators/branches.md",
                    "/docs/operators/undo_run.md",
                    "/docs/operators/sql.md",
                    "/docs/gates.md",
                    "/docs/tables-page.md",
                ],
                "tags": ["software"],
            }
        ],
        "operators": [
            {
                "integration-name": _NAME,
                "python-modules": [
                    "airflow_provider_merge.operators.merge_into",
                    "airflow_provider_merge.operators.delete_from",
                    "airflow_provider_merge.operators.update",
                    "airflow_provider_merge.operators.insert_overwrite",
                    "airflow_provider_merge.operators.insert_into",
                    "airflow_provider_merge.operators.truncate_table",
                    "airflow_provider_merge.operators.drop_partitions",
                    "airflow_provider_merge.operators.create_table",
                    "airflow_provider_merge.operators.alter_table",
                    "airflow_provider_merge.operators.query",
                    "airflow_provider_merge.operators.statements",
                    "airflow_provider_merge.operators.compact",
                    "airflow_provider_merge.operators.expire_snapshots",
                    "airflow_provider_merge.operators.remove_orphan_files",
                    "airflow_provider_merge.operators.tags",
                    "airflow_provider_merge.operators.rollback",
                    "airflow_provider_merge.operators.branches",
                    "airflow_provider_merge.operators.table_care",
                    "airflow_provider_merge.operators.undo_run",
                    "airflow_provider_merge.operators.scd2",
                ],
            }
        ],
        "hooks": [
            {
                "integration-name": _NAME,
                "python-modules": [
                    "airflow_provider_merge.hooks.iceberg",
                    "airflow_provider_merge.hooks.paimon",
                ],
            }
        ],
        "sensors": [
            {
                "integration-name": _NAME,
                "python-modules": [
                    "airflow_provider_merge.sensors.snapshot",
                    "airflow_provider_merge.sensors.partition",
                    "airflow_provider_merge.sensors.tag",
                    "airflow_provider_merge.sensors.freshness",
                    "airflow_provider_merge.sensors.compaction",
                    "airflow_provider_merge.sensors.source_lag",
                ],
            }
        ],
        "triggers": [
            {
                "integration-name": _NAME,
                "python-modules": ["airflow_provider_merge.triggers.table"],
            }
        ],
        "asset-uris": [
            {
                "schemes": ["lakehouse", "paimon"],
                "handler": "airflow_provider_merge.assets.sanitize_uri",
                "factory": "airflow_provider_merge.assets.create_asset",
                "to_openlineage_converter": (
                    "airflow_provider_merge.assets.convert_asset_to_openlineage"
                ),
            }
        ],
        "extra-links": [
            "airflow_provider_merge.links.TableLink",
            "airflow_provider_merge.links.SnapshotLink",
            "airflow_provider_merge.links.QuarantineLink",
            "airflow_provider_merge.links.SparkApplicationLink",
        ],
        "connection-types": [paimon_form(), iceberg_form()],
        "config": {"merge": _config()},
    }


def _config() -> dict[str, Any]:
    return {
        "description": "Settings of airflow-provider-merge.",
        "options": {
            "spark_env": {
                "description": (
                    "Folder of the Python environment with pyspark and the table library. An "
                    "operator's spark_env and the Spark connection's spark-env take precedence."
                ),
                "version_added": "0.1.0",
                "type": "string",
                "example": "/opt/spark-env",
                "default": None,
            },
            "ui_connections": {
                "description": (
                    "Ids of catalog connections, separated by commas, at whose tables everybody "
                    "may look who sees the pages about tables. Others need the right to read the "
                    "connection. Connections of a secrets backend are listed only if named here."
                ),
                "version_added": "0.1.0",
                "type": "string",
                "example": "paimon_default,iceberg_default",
                "default": "",
            },
            "ui_samples": {
                "description": (
                    "Ids of catalog connections, separated by commas, of whose tables the pages "
                    "may show a sample of rows, to those who may edit the connection."
                ),
                "version_added": "0.1.0",
                "type": "string",
                "example": "paimon_default",
                "default": "",
            },
            "ui_permission": {
                "description": (
                    "Name of a custom view of the auth manager. Who sees the pages about tables "
                    "then needs, beside the right to see Airflow's plugins, the right to read it."
                ),
                "version_added": "0.1.0",
                "type": "string",
                "example": "Lakehouse Tables",
                "default": "",
            },
            "metrics_tables": {
                "description": (
                    "Tables, separated by commas, whose metrics have the tag table. Those of all "
                    "others then have the tag table=other. Empty: no metric has the tag."
                ),
                "version_added": "0.1.0",
                "type": "string",
                "example": "shop.orders,shop.customers",
                "default": "",
            },
            "docs_url": {
                "description": (
                    "Address of this project's documentation as a site. Errors then end with a "
                    "link to what it says of their code. Empty: they name the page in docs/."
                ),
                "version_added": "0.1.0",
                "type": "string",
                "example": "https://docs.example.com/merge",
                "default": "",
            },
            "class_archive_folder": {
                "description": (
                    "Folder of archives of Spark's classes. With an archive, a driver on this "
                    "machine starts some seconds sooner. Empty: none is used."
                ),
                "version_added": "0.1.0",
                "type": "string",
                "example": "/opt/class-archives",
                "default": "~/.cache/airflow-provider-merge",
            },
            "make_class_archive": {
                "description": (
                    "Whether the first job of a Spark environment leaves a process of low "
                    "priority that makes the archive of Spark's classes for the next ones. With "
                    "False, `python -m airflow_provider_merge class-archive` makes it."
                ),
                "version_added": "0.1.0",
                "type": "boolean",
                "example": "False",
                "default": "True",
            },
            "allow_code_in_sql": {
                "description": (
                    "Whether the SQL of tasks may run code: functions such as reflect, those that "
                    "are not Spark's own, and programs (TRANSFORM). Commands are refused anyway."
                ),
                "version_added": "0.1.0",
                "type": "boolean",
                "example": "True",
                "default": "False",
            },
            "max_new_partitions": {
                "description": (
                    "How many partitions one statement may add. The operators' parameter of the "
                    "same name overrides it."
                ),
                "version_added": "0.1.0",
                "type": "integer",
                "example": "10000",
                "default": "1000",
            },
            "source_prefixes": {
                "description": (
                    "Locations, separated by commas, below which the files of sources, and those "
                    "that SQL names by their path, have to be. Empty: anywhere."
                ),
                "version_added": "0.1.0",
                "type": "string",
                "example": "s3://lake/landing,/mnt/landing",
                "default": "",
            },
        },
    }
