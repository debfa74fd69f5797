"""A cluster in miniature: the driver runs elsewhere and shares only the warehouse with Airflow.

Imported by the DAG of ``test_cluster_mode``. What a cluster manager does is done here with folders:
the files are copied to "the driver's machine", as spark-submit uploads them, and removed from the
worker's; the driver has its own working directory and variables; of its end the worker learns only
whether it failed, and of its output nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from airflow_provider_merge.metadata.operations import result_location
from airflow_provider_merge.operators.create_table import CreateTableOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.submit.job_files import job_files
from airflow_provider_merge.submit.spark_environment import SparkEnvironment
from airflow_provider_merge.submit.submitter import SparkJob, SubmissionError
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult

_CONF = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}


class ClusterSubmitter:
    """A ``Submitter``; ``loses_result``: the driver dies between the snapshot and its result."""

    def __init__(self, *, loses_result: bool = False) -> None:
        self._loses_result = loses_result

    def submit(self, job: SparkJob) -> None:
        machine = Path(tempfile.mkdtemp(prefix="driver-", dir=os.environ["LAKE"]))
        uploaded, working = machine / "uploaded", machine / "working"
        working.mkdir()
        with job_files(job, is_shipped=True) as files:
            shutil.copytree(files.folder, uploaded)
        assert not files.folder.exists()
        spark = SparkEnvironment.at(os.environ["AIRFLOW__MERGE__SPARK_ENV"], "spark_env")
        command = [str(spark.spark_submit), "--master", "local[2]"]
        for name, value in {**_CONF, "spark.pyspark.python": str(spark.python)}.items():
            command += ["--conf", f"{name}={value}"]
        command += ["--py-files", str(uploaded / files.package.name)]
        command += ["--files", str(uploaded / files.work.name)]
        command += [str(uploaded / files.main.name), files.option, files.work.name]
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME")
                if name in os.environ}  # fmt: skip
        done = subprocess.run(
            command,
            cwd=working,
            env={**kept, "SPARK_HOME": str(spark.spark_home), "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        if self._loses_result:
            _undo_the_end(job.work)
        if done.returncode or self._loses_result:
            raise SubmissionError("Application application_1_0001 finished with failed status")

    def kill(self) -> None:
        raise NotImplementedError


def _undo_the_end(request: JobRequest) -> None:
    """What a driver leaves that dies right after its snapshot: no result yet, the guard still."""
    result = JobResult.from_json(Path(result_location(request)).read_text())
    Path(result_location(request)).unlink()
    target = request.target
    table = Path(request.catalog.warehouse, f"{target.database}.db", target.table)
    guard = table / "consumer" / f"consumer-merge-{request.operation_id}"
    assert not guard.exists()
    guard.write_text(json.dumps({"nextSnapshot": result.base_snapshot_id}))


class ClusterMerge(MergeIntoOperator):
    """``MergeIntoOperator`` in cluster mode."""

    def __init__(self, *, loses_result: bool = False, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.loses_result = loses_result

    def get_submitter(self) -> ClusterSubmitter:
        return ClusterSubmitter(loses_result=self.loses_result)


class ClusterCreate(CreateTableOperator):
    """``CreateTableOperator`` in cluster mode."""

    def get_submitter(self) -> ClusterSubmitter:
        return ClusterSubmitter()
