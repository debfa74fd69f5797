"""Iceberg's own server of REST catalogs, with which it tests its clients, in a process of its own.

It keeps its catalog in a file of SQLite and the tables in a folder. A suite takes the fixture with
``from tests.judge.iceberg_server import iceberg_rest`` in its ``conftest.py``; the tests of
Airflow's environment, which has no PySpark on whose Hadoop it runs, take
``iceberg_rest_beside_airflow``.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.judge.serving import serving
from tests.judge.toolchain import Jar, JudgeMissingError, Toolchain, prepare

CLIENT = "tests"
_ROOT = Path(__file__).resolve().parents[2]
_MAIN = "org.apache.iceberg.rest.IcebergServer"
_SECRET = "not-a-secret-of-anybody"
_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC")
# Hadoop's settings: what the server stores in a bucket goes to the folder behind it.
_BUCKET = """
<configuration>
  <property>
    <name>fs.s3.impl</name>
    <value>org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme</value>
  </property>
  <property>
    <name>fs.viewfs.mounttable.{name}.linkMergeSlash</name>
    <value>file://{folder}</value>
  </property>
</configuration>
"""
_JARS = (
    Jar(
        "org.apache.iceberg:iceberg-open-api:1.11.0:jar:test-fixtures",
        "b0aa8636d88c24976d552ac9b3075a1315dc1ccd4fa6ed95b365901842664316",
    ),
    Jar(
        "org.apache.iceberg:iceberg-core:1.11.0",
        "53b9eb7a8c34fb9958ea7d9a4d19ba5bc96f592d0f05e8625b0778c70b1f0090",
    ),
    Jar(
        "org.apache.iceberg:iceberg-common:1.11.0",
        "b2835d00db7c92bdfa728123ad7cdcb488e2f2805c1c51fb9ae94e8bd203bd7d",
    ),
    Jar(
        "org.apache.iceberg:iceberg-bundled-guava:1.11.0",
        "396d48d93ef5735f2ddef0cf9b3d6968ebd67b64b5cfe753d41c429d3f46a2a1",
    ),
    Jar(
        "org.apache.httpcomponents.core5:httpcore5:5.4",
        "cec2981fa7f520efb63f0787c24f10af2679e31f9f75c448c4dde40a3ae8100d",
    ),
    Jar(
        "com.github.ben-manes.caffeine:caffeine:2.9.3",
        "1e0a7bbef1dd791653143f3f05d0e489934bf5481e58a87c9e619cd46b68729b",
    ),
    Jar(
        "org.apache.iceberg:iceberg-core:1.11.0:jar:tests",
        "4284719a5f0eb7db01e9f784a0ed4ca8bacf7d6f9951924143afc083428d8be3",
    ),
    Jar(
        "org.apache.iceberg:iceberg-api:1.11.0",
        "f00675a12ceb6d833bb9c22024823a3e7afdedf7abcefe34719f45b0d211995a",
    ),
    Jar(
        "org.xerial:sqlite-jdbc:3.50.3.0",
        "a3f53a2aa15ae9425a9e793bbe9c8e5288febeb4b65ef5c1a4e80d4c2045cf08",
    ),
    Jar(
        "org.eclipse.jetty.ee10:jetty-ee10-servlet:12.1.3",
        "4973457f7b084b329b75d63b8f8aa2121806f92d910229ec9f52e6fa9f15ee40",
    ),
    Jar(
        "jakarta.servlet:jakarta.servlet-api:6.0.0",
        "c034eb1afb158987dbb53a5fea0cadf611c8dae8daadd59c44d9d5ab70129cef",
    ),
    Jar(
        "org.eclipse.jetty:jetty-security:12.1.3",
        "f205c15bf00300986477465d9960ade58e7ed6b922d2ee9c8d58551302788837",
    ),
    Jar(
        "org.eclipse.jetty:jetty-server:12.1.3",
        "8ecd7b83eaa17f2f86b36c2f88df1a510c428acad691778112f6f7f24015e367",
    ),
    Jar(
        "org.eclipse.jetty:jetty-http:12.1.3",
        "f577c514e73577cbd1e4505fbf9cb329592adc146eaf6e292f797577444cf722",
    ),
    Jar(
        "org.eclipse.jetty:jetty-io:12.1.3",
        "bb96db1fc7493403084d41b196b5a0cda94859d396d51511ac19dfb18048c3eb",
    ),
    Jar(
        "org.eclipse.jetty:jetty-session:12.1.3",
        "5bcb8b35324288a5d92b0a9026093b52acda36916b75583f551779ab570436ca",
    ),
    Jar(
        "org.eclipse.jetty:jetty-util:12.1.3",
        "3bbda3723925c060f3a2f202ce13fc0fa5f7dadc3992f1e8ad592bf31d01e4eb",
    ),
)


@dataclass(frozen=True, slots=True)
class IcebergRest:
    """A running server, whose tables lie in ``folder``.

    It accepts ``secret`` as a bearer token, and of the client ``CLIENT``.
    """

    uri: str
    folder: Path
    secret: str = field(repr=False)

    @property
    def properties(self) -> dict[str, str]:
        """How pyiceberg opens the catalog."""
        return {"type": "rest", "uri": self.uri, "token": self.secret}


def iceberg_toolchain() -> Toolchain:
    """What the server runs on.

    Raises:
        JudgeMissingError: there is no JDK, or a jar cannot be fetched.
    """
    return prepare(("IcebergServer",), _JARS)


@contextmanager
def iceberg_rest_catalog(toolchain: Toolchain, bucket: Path | None = None) -> Iterator[IcebergRest]:
    """A new, empty catalog; with ``bucket``, the folder behind a bucket, its tables lie there."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "warehouse") if bucket is None else bucket
        warehouse = str(folder)
        if bucket is not None:
            warehouse = f"s3://{bucket.name}/tables"
            Path(name, "core-site.xml").write_text(_BUCKET.format(name=bucket.name, folder=bucket))
        classpath = f"{name}{os.pathsep}{toolchain.classpath}"
        java = [toolchain.java, *_OPTIONS, "-cp", classpath, _MAIN]
        with serving([*java, name, warehouse], first_line=_SECRET) as uri:
            yield IcebergRest(uri, folder, _SECRET)


@pytest.fixture(scope="session")
def iceberg_rest() -> Iterator[IcebergRest]:
    """A catalog on a server of its own; skips where that cannot run, with the reason."""
    try:
        toolchain = iceberg_toolchain()
    except JudgeMissingError as missing:
        pytest.skip(f"no REST catalog of Iceberg's: {missing}")
    with iceberg_rest_catalog(toolchain) as catalog:
        yield catalog


@pytest.fixture(scope="session")
def iceberg_rest_beside_airflow() -> Iterator[IcebergRest]:
    """The same for tests in Airflow's environment; the Spark environment runs it."""
    with iceberg_rest_or_skip() as catalog:
        yield catalog


@contextmanager
def iceberg_rest_or_skip(*bucket: Path) -> Iterator[IcebergRest]:
    """As ``iceberg_rest_catalog``, run by the Spark environment."""
    python = Path(os.environ.get("MERGE_SPARK_ENV", _ROOT / ".venv-spark"), "bin", "python")
    command = [str(python), "-m", "tests.judge.iceberg_server", *map(str, bucket)]
    try:
        with serving(command) as said:
            uri, _, folder = said.partition(" ")
            yield IcebergRest(uri, Path(folder), _SECRET)
    except JudgeMissingError as missing:
        pytest.skip(f"no REST catalog of Iceberg's: {missing}")


def main() -> int:
    """Serve until standard input ends."""
    try:
        toolchain = iceberg_toolchain()
    except JudgeMissingError as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    with iceberg_rest_catalog(toolchain, *map(Path, sys.argv[1:])) as catalog:
        sys.stdout.write(f"{catalog.uri} {catalog.folder}\n")
        sys.stdout.flush()
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
