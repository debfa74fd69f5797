"""Full disks, and values too long for the name of a folder: named errors, and nothing is lost."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource
from spark_jobs.run import run
from tests.attacks.on_small_disks import catalogs, counted
from tests.support.namespaces import in_namespace, mounted, namespaces, python
from tests.support.paimon_tables import NAME, create
from tests.support.stores import ObjectStore, moto

__all__ = ["moto", "namespaces"]


def test_full_disks_are_told_by_name(tmp_path: Path, namespaces: None) -> None:
    sizes = {"paimon": "3m", "iceberg": "3m", "local": "64m"}
    for name in sizes:
        (tmp_path / name).mkdir()
    mounts = [mounted(tmp_path / name, size) for name, size in sizes.items()]

    done = in_namespace(mounts, python("-m", "tests.attacks.on_small_disks", str(tmp_path)))

    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout.splitlines()[-1])
    for name in ("paimon", "iceberg"):
        first, full, kept, again, rows = told[name]
        assert (first["status"], again["status"]) == ("committed", "committed")
        assert full["error"]["code"] == "STORAGE_UNAVAILABLE", full
        assert full["error"]["message"].startswith("A disk is full: ")
        assert (kept, rows) == (10, 20)
    assert told["local"]["error"]["code"] == "STORAGE_UNAVAILABLE", told["local"]
    assert "spark.local.dir" in told["local"]["error"]["remedy"]


@pytest.mark.parametrize("store", ["paimon", "iceberg", "s3"])
def test_a_value_that_is_too_long_for_a_partition_is_refused_before_it_is_written(
    spark: SparkSession, tmp_path: Path, store: str, request: pytest.FixtureRequest
) -> None:
    credentials = {}
    if store == "s3":
        server: ObjectStore = request.getfixturevalue("moto")
        catalog, credentials = server.new_catalog(), server.credentials
    else:
        catalog = catalogs(tmp_path)[store]
        Path(catalog.warehouse).mkdir()
    connector = open_connector(catalog, credentials)
    create(connector, {"id": "bigint", "day": "string"}, ["day"])

    def insert(length: int) -> str | None:
        query = f"SELECT 1L AS id, repeat('x', {length}) AS day"
        source = SqlSource("s", query)
        result = run(
            JobRequest(str(uuid.uuid4()), NAME, catalog, InsertIntoSpec("s"), (source,)),
            spark,
            credentials,
        )
        return None if result.error is None else f"{result.error.code}: {result.error.message}"

    assert insert(200) is None
    refused = insert(1200 if store == "s3" else 252)

    assert refused is not None
    assert refused.startswith("VALUE_NOT_STORABLE: ")
    assert "day=xxx" in refused
    assert _rows(catalog, credentials) == 1


def _rows(catalog: CatalogSpec, credentials: dict[str, str]) -> int:
    if not credentials:
        return counted(catalog)
    metadata = open_connector(catalog, credentials).metadata
    return sum(each.live_row_count for each in metadata.plan_files(metadata.load_table(NAME)))
