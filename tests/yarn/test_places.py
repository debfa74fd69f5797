"""Where drivers run, and where staging area and warehouse are."""

from __future__ import annotations

import json
import tarfile
from contextlib import contextmanager
from pathlib import Path

import fsspec
import pytest

from airflow_provider_merge.hooks.paimon import PaimonHook
from tests.judge.hdfs_server import hdfs_beside_airflow
from tests.live.store import Store
from tests.support.gateway import gateway_program_or_skip
from tests.support.paimon_metadata import TableFiles
from tests.yarn import traces
from tests.yarn.cluster import SILENT, TURNS, Task
from tests.yarn.endings import insert

__all__ = ["hdfs_beside_airflow"]


def inserted(cluster, table, **more):
    """The application of a task that put a row into the table."""
    parameters = {**cluster.parameters(), "spark_conn_id": SILENT, **more}
    task = Task(cluster, lambda: insert(cluster, table, parameters))
    task.start()
    task.join()
    assert task.error is None
    assert task.result["snapshot_id"] == 1
    (found,) = cluster.applications(task.name)
    return found


@contextmanager
def catalog(**fields):
    """The connection ``lake``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "paimon", **fields}))
        yield PaimonHook("lake")


@pytest.mark.by_turns(TURNS, 11)
def test_client_mode(cluster):
    table = cluster.table().name

    application = inserted(cluster, table, deploy_mode="client")

    assert cluster.ended(application["id"])["finalStatus"] == "SUCCEEDED"
    assert cluster.snapshots(table) == ["snapshot-1"]


@pytest.mark.by_turns(TURNS, 12)
def test_staging_area_and_warehouse_in_hdfs(cluster, hdfs_beside_airflow, tmp_path):
    warehouse = hdfs_beside_airflow.new_warehouse()
    staging = f"{hdfs_beside_airflow.uri}/staging"
    TableFiles(tmp_path, "orders").create()
    with catalog(extra={"warehouse": warehouse}) as hook:
        store = fsspec.filesystem("hdfs", **hook.storage_options())
        store.put(f"{tmp_path}/shop.db/", f"{warehouse}/shop.db/", recursive=True)
        parameters = cluster.parameters(**{"spark.yarn.stagingDir": staging})

        inserted(cluster, "orders", **parameters, catalog_conn_id="lake")

        assert hook.row_count("shop.orders") == 1
        assert store.find(f"{staging}/.sparkStaging") == []


@pytest.mark.by_turns(TURNS, 13)
def test_warehouse_in_an_object_store(cluster, tmp_path):
    store = Store(gateway_program_or_skip(), tmp_path, secret_key="planted-secret-of-store")
    store.start()
    try:
        TableFiles(store.bucket, "orders").create()
        fields = store.connection("lake")
        del fields["connection_id"]
        with catalog(**fields) as hook:
            application = inserted(cluster, "orders", catalog_conn_id="lake")
            assert hook.row_count("shop.orders") == 1
    finally:
        store.stop()
    assert traces.places_left(cluster, application["id"], store.secret_key) == []


# Packs 700 MB, which YARN unpacks.
@pytest.mark.extended
def test_the_environment_as_an_archive(cluster, tmp_path):
    """As docs/cluster.md has it; a virtual environment finds itself wherever it is unpacked."""
    archive, table = tmp_path / "merge.tar.gz", cluster.table().name
    with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
        folder = cluster.environment.python.parents[1].resolve()
        packed.add(folder, ".", filter=without_large_files)
    python = "./env/bin/python"
    parameters = cluster.parameters(**{
        "spark.pyspark.python": python,
        "spark.pyspark.driver.python": python,
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": python,
    })  # fmt: skip

    inserted(cluster, table, **parameters, archives=f"{archive.as_uri()}#env")

    assert cluster.snapshots(table) == ["snapshot-1"]


def without_large_files(member):
    """Neither Spark's jars, which are on the cluster, nor what only tests need."""
    large = ("jars", "_polars_runtime_32", "_duckdb.cpython-311-x86_64-linux-gnu.so")
    return None if Path(member.name).name in large else member
