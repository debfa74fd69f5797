"""The traps of docs/sources.md, in files on S3, read without a Hadoop jar.

A run takes a third of them, another third with ``MERGE_TESTS_TURN=1``; tests/engine takes all of
them in a folder.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from spark_jobs.connectors.registry import open_connector
from spark_jobs.spi.connector import Connector
from tests.support.paimon_tables import NAME, create
from tests.support.source_reading import check_trap
from tests.support.source_traps import TRAPS, Trap
from tests.support.stores import ObjectStore
from tests.support.turns import has_turn

_TRAPS = [trap for number, trap in enumerate(TRAPS) if has_turn(number, 3)]


@pytest.fixture(scope="module")
def bucket(store: ObjectStore) -> str:
    return store.new_bucket()


@pytest.fixture(scope="module")
def connector(store: ObjectStore, bucket: str) -> Connector:
    connector = open_connector(store.catalog(f"s3://{bucket}/warehouse"), store.credentials)
    create(connector, {"id": "bigint"})
    return connector


@pytest.mark.parametrize("trap", _TRAPS, ids=lambda trap: trap.id)
def test_trap(
    trap: Trap, spark: SparkSession, store: ObjectStore, bucket: str, connector: Connector
) -> None:
    for name, content in trap.files.items():
        store.client().put_object(Bucket=bucket, Key=f"{trap.id}/{name}", Body=content)

    check_trap(spark, connector, NAME, trap, f"s3://{bucket}/{trap.id}")
