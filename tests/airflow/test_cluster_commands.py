"""The whole command lines for clusters, as the Spark provider's hook gives them to spark-submit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from airflow_provider_merge.submit.spark_submit import SparkSubmitSubmitter
from airflow_provider_merge.submit.submitter import SparkJob, SparkSettings
from tests.airflow.launcher import Launcher
from tests.airflow.support import PASSWORD, connection, example_request

JOB = SparkJob("dag.task", example_request(), {"fs.s3.accessKeySecret": PASSWORD})


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def command_line(launcher: Launcher, **settings: Any) -> list[str]:
    """The arguments, with files of the job by their names alone."""
    settings = {"spark_env": str(launcher.folder), **settings}
    SparkSubmitSubmitter(SparkSettings(**settings)).submit(JOB)
    return [
        ",".join(Path(part).name for part in each.split(",")) if "/merge-job-" in each else each
        for each in launcher.arguments
    ]


def test_yarn(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connection(monkeypatch, "yarn", conn_type="spark", host="yarn", extra={"queue": "etl"})
    launcher = Launcher.make(temporary / "env")

    arguments = command_line(
        launcher,
        spark_conn_id="yarn",
        deploy_mode="cluster",
        archives="hdfs:///envs/merge.tar.gz#env",
        conf={
            "spark.pyspark.python": "./env/bin/python",
            "spark.pyspark.driver.python": "./env/bin/python",
        },
        num_executors=4,
        executor_memory="4g",
    )

    assert arguments == [
        *("--master", "yarn"),
        *("--conf", "spark.yarn.maxAppAttempts=1"),
        *("--conf", "spark.executorEnv.LC_ALL=C.UTF-8"),
        *("--conf", "spark.yarn.appMasterEnv.LC_ALL=C.UTF-8"),
        *("--conf", "spark.kubernetes.driverEnv.LC_ALL=C.UTF-8"),
        *("--conf", "spark.pyspark.python=./env/bin/python"),
        *("--conf", "spark.pyspark.driver.python=./env/bin/python"),
        *("--files", "request.json,credentials.json"),
        *("--py-files", "spark_jobs.zip"),
        *("--archives", "hdfs:///envs/merge.tar.gz#env"),
        *("--num-executors", "4"),
        *("--executor-memory", "4g"),
        *("--name", "dag.task"),
        *("--queue", "etl"),
        *("--deploy-mode", "cluster"),
        "main.py",
        *("--request", "request.json", "--credentials", "credentials.json"),
    ]


def test_kubernetes(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"namespace": "lake", "deploy-mode": "cluster"}
    host = "k8s://https://kubernetes.example"
    connection(monkeypatch, "k8s", conn_type="spark", host=host, port=6443, extra=extra)
    # The provider takes the exit code of the driver from the launcher's log.
    launcher = Launcher.make(temporary / "env", then="print('Exit code: 0')")
    monkeypatch.setattr(f"{SparkSubmitHook.__module__}.kube_client", object(), raising=False)

    arguments = command_line(
        launcher,
        spark_conn_id="k8s",
        conf={
            "spark.kubernetes.container.image": "example/merge-spark:1",
            "spark.kubernetes.file.upload.path": "s3a://lake/uploads",
        },
    )

    assert arguments == [
        *("--master", f"{host}:6443"),
        *("--conf", "spark.yarn.maxAppAttempts=1"),
        *("--conf", "spark.executorEnv.LC_ALL=C.UTF-8"),
        *("--conf", "spark.yarn.appMasterEnv.LC_ALL=C.UTF-8"),
        *("--conf", "spark.kubernetes.driverEnv.LC_ALL=C.UTF-8"),
        *("--conf", "spark.kubernetes.container.image=example/merge-spark:1"),
        *("--conf", "spark.kubernetes.file.upload.path=s3a://lake/uploads"),
        *("--conf", "spark.kubernetes.namespace=lake"),
        *("--files", "request.json,credentials.json"),
        *("--py-files", "spark_jobs.zip"),
        *("--name", "dag.task"),
        *("--deploy-mode", "cluster"),
        "main.py",
        *("--request", "request.json", "--credentials", "credentials.json"),
    ]
