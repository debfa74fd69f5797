"""Real ``airflow dags test``, real spark-submit, a real Paimon table; nothing is faked.

``MERGE_SPARK_ENV`` names the Spark environment (``make`` sets it).
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# This process imports Airflow too; it must not make a home in the user's.
_HOME = tempfile.mkdtemp(prefix="merge-airflow-home-")
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
os.environ["AIRFLOW_HOME"] = _HOME

_ROOT = Path(__file__).resolve().parents[2]

# Runs in the Spark environment: rows and snapshots as pypaimon sees them.
_READER = """
import json, sys
from pathlib import Path
from pypaimon import CatalogFactory
warehouse, name = sys.argv[1:]
table = CatalogFactory.create({"warehouse": warehouse}).get_table(name)
builder = table.new_read_builder()
rows = builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()
folder = Path(warehouse) / (name.split(".")[0] + ".db") / name.split(".")[1] / "snapshot"
snapshots = sorted(int(p.name.split("-")[1]) for p in folder.glob("snapshot-*"))
print(json.dumps({"rows": rows, "snapshots": snapshots}, default=str))
"""


@dataclass
class Lake:
    """A warehouse, and an Airflow beside it."""

    folder: Path
    spark_env: Path

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    def environment(self) -> dict[str, str]:
        paimon = {"conn_type": "paimon", "extra": {"warehouse": str(self.warehouse)}}
        spark = {"conn_type": "spark", "host": "local[2]"}
        return {
            **os.environ,
            "PYTHONPATH": str(_ROOT),
            "AIRFLOW_HOME": str(self.folder / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.folder / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "600",
            "SPARK_CONF_DIR": str(_ROOT / "tests" / "spark_conf"),
            "AIRFLOW__MERGE__SPARK_ENV": str(self.spark_env),
            "AIRFLOW_CONN_PAIMON_DEFAULT": json.dumps(paimon),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(spark),
            "TMPDIR": str(self.folder / "tmp"),
            "LAKE": str(self.folder),
        }

    def airflow(
        self,
        *arguments: str,
        timeout: float = 1800,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run the airflow command; standard error is in its output."""
        return subprocess.run(
            [sys.executable, "-m", "airflow", *arguments],
            env=environment or self.environment(),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=timeout,
        )

    def add_dag(self, dag_id: str, text: str) -> None:
        (self.folder / "dags" / f"{dag_id}.py").write_text(textwrap.dedent(text))

    def read(self, name: str) -> dict[str, Any]:
        """``rows`` and ``snapshots`` (ids) of a table."""
        document: dict[str, Any] = json.loads(self.python(_READER, str(self.warehouse), name))
        return document

    def python(self, code: str, *arguments: str) -> str:
        """Run code in the Spark environment; the last line that it prints."""
        done = subprocess.run(
            [self.spark_env / "bin" / "python", "-c", code, *arguments],
            cwd=_ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=900,
        )
        return done.stdout.splitlines()[-1] if done.stdout else ""

    def results(self, target: str) -> list[dict[str, Any]]:
        """The results under the warehouse of all jobs on one table."""
        files = sorted(self.warehouse.glob("_operations/*.json"))
        results = [json.loads(file.read_text()) for file in files]
        return [each for each in results if each["target"] == target]


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The Airflow database is made once; each test uses its own table."""
    spark_env = os.environ.get("MERGE_SPARK_ENV")
    assert spark_env, "MERGE_SPARK_ENV must name the Spark environment"
    lake = Lake(tmp_path_factory.mktemp("lake"), Path(spark_env))
    for name in ("warehouse", "dags", "tmp"):
        (lake.folder / name).mkdir()
    done = lake.airflow("db", "migrate")
    assert done.returncode == 0, done.stdout
    return lake
