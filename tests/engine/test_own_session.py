"""A job's own application, on a machine and a cluster whose settings all mean something else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.request import CatalogSpec, FileSource, JobRequest, SqlSource
from tests.support.paimon_tables import NAME, create, read

pytestmark = pytest.mark.slow

_ROOT = Path(__file__).resolve().parents[2]
_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.hadoop.parquet.filter.stats.enabled": "false",
    "spark.sql.catalog.spark_catalog": "com.example.NoSuchCatalog",
    "spark.sql.catalogImplementation": "hive",
    "spark.sql.defaultCatalog": "elsewhere",
    "spark.sql.execution.arrow.maxRecordsPerOutputBatch": "1",
    "spark.sql.extensions": "com.example.NoSuchExtensions",
    "spark.sql.legacy.castComplexTypesToString.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.sources.useV1SourceList": "",
    "spark.ui.enabled": "false",
}
_CORE_SITE = """<configuration>
<property><name>fs.defaultFS</name><value>hdfs://127.0.0.1:9</value></property>
<property>
<name>mapreduce.input.pathFilter.class</name><value>com.example.NoSuchFilter</value>
</property>
</configuration>"""
_QUERY = (
    "SELECT id, concat(lower('QUIT'), upper('quit'), v, CAST(array(1, NULL) AS STRING), "
    "CAST(INTERVAL '1 02:03:04' DAY TO SECOND AS STRING), "
    "CAST(TIMESTAMP '2024-07-01 00:00:00' AS STRING)) AS v FROM s"
)


def test_rows_are_those_of_the_defaults(tmp_path: Path) -> None:
    warehouse = tmp_path / "lake"
    warehouse.mkdir()
    catalog = CatalogSpec("paimon", str(warehouse))
    connector = open_connector(catalog, {})
    create(connector, {"id": "int", "v": "string"})
    pq.write_table(pa.table({"id": [1, 2], "v": ["I", "i"]}), tmp_path / "rows.parquet")
    # Paths without a scheme are in the default store, which is down.
    landed = FileSource("s", (tmp_path / "rows.parquet").as_uri(), "parquet")
    request = JobRequest("op", NAME, catalog, InsertIntoSpec("q"), (landed, SqlSource("q", _QUERY)))
    (tmp_path / "request.json").write_text(request.to_json())
    (tmp_path / "hadoop").mkdir()
    (tmp_path / "hadoop" / "core-site.xml").write_text(_CORE_SITE)
    options = " ".join(f"--conf {name}={value}" for name, value in _SETTINGS.items())
    variables = {
        **os.environ,
        "HADOOP_CONF_DIR": str(tmp_path / "hadoop"),
        "JAVA_TOOL_OPTIONS": "-Duser.language=tr -Duser.timezone=Asia/Kathmandu",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(_ROOT),
        "PYSPARK_SUBMIT_ARGS": f"{options} pyspark-shell",
    }
    command = [sys.executable, "-m", "spark_jobs.main", "--request", str(tmp_path / "request.json")]

    done = subprocess.run(
        command, cwd=_ROOT, env=variables, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr[-5000:]
    rest = "[1, null]INTERVAL '1 02:03:04' DAY TO SECOND2024-07-01 00:00:00"
    assert [row["v"] for row in read(connector)] == [f"quitQUITI{rest}", f"quitQUITi{rest}"]
    named = [line for line in done.stderr.splitlines() if "not in effect" in line]
    assert len(named) == 2
    assert "spark.sql.extensions" in named[0]
    assert "spark.hadoop.parquet.filter.stats.enabled" in named[0]
    assert named[1].endswith("mapreduce.input.pathFilter.class")
    assert "com.example" not in "".join(named)
