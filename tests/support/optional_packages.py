"""Packages that README's environment has not, and without which tests are skipped.

`make test-readme` runs the suites of failures there: what users have who installed no extra.
"""

from __future__ import annotations

from typing import Final

import pytest

_WHY: Final = {
    "boto3": "catalogs in AWS Glue need boto3, an extra",
    "botocore": "warehouses on S3 need botocore, an extra",
    "hdfs_native": "warehouses on HDFS need hdfs-native, an extra",
    "moto": "S3 and AWS Glue of the tests need moto, which only the tests' environment has",
    "psycopg2": "catalogs in PostgreSQL need pyiceberg[sql-postgres], an extra",
    "sqlalchemy": "catalogs of the type sql need pyiceberg[sql-sqlite], an extra",
    "sqlglot": "the provider's parser needs sqlglot, which is beside Airflow",
}


def require_package(module: str) -> None:
    """Skip the test, with the reason, where the package is not installed."""
    pytest.importorskip(module, reason=_WHY[module])
