"""Table care through Airflow: real operators, the Spark environment's Python, no JVM."""

from __future__ import annotations

import subprocess

import pytest

pytestmark = pytest.mark.slow

# Runs in the Spark environment: five appends of pypaimon.
WRITER = """
import sys
import pyarrow as pa
from pypaimon import CatalogFactory, Schema
catalog = CatalogFactory.create({"warehouse": sys.argv[1]})
catalog.create_database("shop", True)
rows = pa.table({"id": pa.array([1], pa.int64())})
catalog.create_table("shop.cared", Schema.from_pyarrow_schema(rows.schema), False)
table = catalog.get_table("shop.cared")
for _ in range(5):
    builder = table.new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    write.write_arrow(rows)
    commit.commit(write.prepare_commit())
    write.close()
    commit.close()
"""
DAG = """
from datetime import datetime
from airflow.sdk import DAG
from airflow_provider_merge.operators.expire_snapshots import ExpireSnapshotsOperator
from airflow_provider_merge.operators.remove_orphan_files import RemoveOrphanFilesOperator
from airflow_provider_merge.operators.rollback import RollbackOperator
from airflow_provider_merge.operators.tags import CreateTagOperator

with DAG("cared", schedule=None, start_date=datetime(2024, 1, 1),
         default_args={"target": "shop.cared"}) as dag:
    (
        CreateTagOperator(task_id="tag", tag="v2-{{ ds }}", snapshot_id=2)
        >> ExpireSnapshotsOperator(task_id="preview", retain_min=2, older_than="0 s", dry_run=True)
        >> ExpireSnapshotsOperator(task_id="expire", retain_min=2, older_than="0 s")
        >> RemoveOrphanFilesOperator(task_id="orphans")
        >> RollbackOperator(task_id="back", tag="v2-{{ ds }}", force=True)
    )
"""


def test_tag_expire_orphans_rollback(lake):
    python = lake.spark_env / "bin" / "python"
    subprocess.run([python, "-c", WRITER, lake.warehouse], check=True, timeout=900)
    assert lake.read("shop.cared")["snapshots"] == [1, 2, 3, 4, 5]
    lake.add_dag("cared", DAG)

    done = lake.airflow("dags", "test", "cared", "2024-05-06")

    assert done.returncode == 0, done.stdout[-8000:]
    for line in (
        "shop.cared: dry_run",
        "removed: snapshots 3 | tags 0 |",
        "snapshots 4 to 5",
        "removed: snapshots 2 | tags 0 |",
    ):
        assert line in done.stdout, done.stdout[-8000:]
    assert "py4j" not in done.stdout
    assert lake.read("shop.cared") == {"rows": [{"id": 1}, {"id": 1}], "snapshots": [2]}
    assert [each["status"] for each in lake.results("shop.cared")].count("committed") == 3
    assert not list((lake.folder / "tmp").glob("merge-job-*"))
