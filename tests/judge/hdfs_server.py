"""Apache's own HDFS, NameNode and DataNodes in one process, as Hadoop tests its own clients with.

A suite takes the fixture with ``from tests.judge.hdfs_server import hdfs`` in its ``conftest.py``;
``python -m tests.judge.hdfs_server`` serves those that have no PySpark, whose Hadoop it runs on.
"""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contract.request import CatalogSpec
from tests.judge.serving import serving
from tests.judge.toolchain import Jar, JudgeMissingError, Toolchain, prepare

_ROOT = Path(__file__).resolve().parents[2]
_OPTIONS = ("-Xmx640m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC")
# Of the version that PySpark brings the other parts of.
_JARS = (
    Jar(
        "org.apache.hadoop:hadoop-client-minicluster:3.4.2",
        "ae2406c544825b7734b8aad4f87eff60d9ec422284f0b16c2856032083b63c77",
    ),
)


@dataclass(frozen=True, slots=True)
class Hdfs:
    """A running HDFS; ``uri`` is ``hdfs://host:port``."""

    uri: str

    @property
    def authority(self) -> str:
        """How paths begin."""
        return self.uri.removeprefix("hdfs://")

    def client(self, **config: str) -> Any:
        """A client of its own."""
        from hdfs_native import Client

        return Client(self.uri, config)

    def new_warehouse(self) -> str:
        """The location of a new, empty warehouse."""
        folder = f"/tests-{uuid.uuid4().hex[:12]}/warehouse"
        self.client().mkdirs(folder, create_parent=True)
        return f"{self.uri}{folder}"

    def new_catalog(self) -> CatalogSpec:
        """A catalog in a warehouse of its own."""
        return CatalogSpec("paimon", self.new_warehouse())


def hdfs_toolchain() -> Toolchain:
    """What the server runs on.

    Raises:
        JudgeMissingError: there is no JDK, or a jar cannot be fetched.
    """
    return prepare(("HdfsServer",), _JARS)


@contextmanager
def hdfs_server(toolchain: Toolchain) -> Iterator[Hdfs]:
    """A new, empty HDFS."""
    with tempfile.TemporaryDirectory() as folder:
        command = [toolchain.java, *_OPTIONS, "-cp", toolchain.classpath, "HdfsServer", folder]
        with serving(command) as uri:
            yield Hdfs(uri)


@pytest.fixture(scope="session")
def hdfs() -> Iterator[Hdfs]:
    """HDFS in a process of its own; skips where that cannot run, with the reason."""
    try:
        toolchain = hdfs_toolchain()
    except JudgeMissingError as missing:
        pytest.skip(f"no HDFS: {missing}")
    with hdfs_server(toolchain) as server:
        yield server


@pytest.fixture(scope="session")
def hdfs_beside_airflow() -> Iterator[Hdfs]:
    """The same for tests in Airflow's environment; the Spark environment runs it."""
    python = Path(os.environ.get("MERGE_SPARK_ENV", _ROOT / ".venv-spark"), "bin", "python")
    try:
        with serving([str(python), "-m", "tests.judge.hdfs_server"]) as uri:
            yield Hdfs(uri)
    except JudgeMissingError as missing:
        pytest.skip(f"no HDFS: {missing}")


def main() -> int:
    """Serve until standard input ends."""
    try:
        toolchain = hdfs_toolchain()
    except JudgeMissingError as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    with hdfs_server(toolchain) as server:
        sys.stdout.write(f"{server.uri}\n")
        sys.stdout.flush()
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
