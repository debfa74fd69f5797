"""The wheel, and an Airflow environment in which nothing else of this project is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OURS = ("airflow_provider_merge", "_airflow_provider_merge", "spark_jobs")


def build_wheel(folder: Path) -> Path:
    """The wheel as a release would build it, from the sources as they are."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    done = subprocess.run(
        [*command, str(ROOT)], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@dataclass(frozen=True)
class Installation:
    """An environment with Airflow and the installed wheel, and folders of a user's own."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "env" / "bin" / "python"

    @property
    def dags(self) -> Path:
        return self.folder / "dags"

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    def environment(self) -> dict[str, str]:
        """No path leads to the sources."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "AIRFLOW"))}
        paimon = {"conn_type": "paimon", "extra": {"warehouse": str(self.warehouse)}}
        return kept | {
            "PATH": f"{self.python.parent}{os.pathsep}{os.defpath}",
            "AIRFLOW_HOME": str(self.folder / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "600",
            "AIRFLOW__MERGE__SPARK_ENV": os.environ["MERGE_SPARK_ENV"],
            "AIRFLOW_CONN_PAIMON_DEFAULT": json.dumps(paimon),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[1]"}),
        }

    def run(self, *arguments: str) -> str:
        """The output of a Python command, run in the user's folder; it must end well."""
        done = subprocess.run(
            [str(self.python), *arguments],
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=1200,
        )
        assert done.returncode == 0, done.stdout[-8000:]
        return done.stdout


@pytest.fixture(scope="session")
def installation(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The locked packages are linked into a new environment, without this project's own install."""
    made = Installation(tmp_path_factory.mktemp("user"))
    for folder in (made.dags, made.warehouse):
        folder.mkdir()
    venv.create(made.folder / "env", symlinks=True)
    locked = Path(sysconfig.get_path("purelib"))
    target = made.folder / "env" / locked.relative_to(sys.prefix)
    for entry in locked.iterdir():
        if not entry.name.startswith((*OURS, "__pycache__")):
            (target / entry.name).symlink_to(entry)
    command = [ROOT / ".ci" / "uv", "pip", "install", "--quiet", "--offline", "--no-deps"]
    subprocess.run(
        [*command, "--python", made.python, wheel],
        env=os.environ | {"PYTHON": sys.executable},
        check=True,
        timeout=600,
    )
    return made
