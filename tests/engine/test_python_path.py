"""Where a job's Python takes PySpark from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

HOME = Path(pyspark.__file__).parent
LIBRARIES = HOME / "python" / "lib"
ROOT = Path(__file__).resolve().parents[2]
CODE = """
from spark_jobs.python_path import forget_archives
{before}
forget_archives()
import pyspark, py4j
print(pyspark.__file__)
print(py4j.__file__)
"""


def found(home: Path | None, before: str = "") -> list[str]:
    """From where PySpark and py4j are imported, with Spark's archives first on the path."""
    archives = [LIBRARIES / "pyspark.zip", *LIBRARIES.glob("py4j-*-src.zip")]
    variables = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    variables["PYTHONPATH"] = os.pathsep.join(map(str, [*archives, ROOT]))
    if home is not None:
        variables["SPARK_HOME"] = str(home)
    command = [sys.executable, "-c", CODE.format(before=before)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    (home / "bin").symlink_to(HOME / "bin")
    return home


def test_the_installed_package_of_the_same_spark(linked: Path) -> None:
    for home in (HOME, linked):
        paths = found(home)
        assert Path(paths[0]).parent == HOME
        assert ".zip" not in paths[1]


def test_what_was_imported_from_an_archive_is_imported_again() -> None:
    assert ".zip" not in "".join(found(HOME, before="import pyspark"))


def test_the_archives_of_another_spark_stay(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for home in (tmp_path, None):
        assert all(".zip" in path for path in found(home))
