"""One live Airflow for all tests; real spark-submit, real Paimon tables, nothing is faked.

``MERGE_SPARK_ENV`` names the Spark environment (``make`` sets it).
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

# This process imports Airflow too; it must not make a home in the user's.
_HOME = tempfile.mkdtemp(prefix="merge-airflow-home-")
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
os.environ["AIRFLOW_HOME"] = _HOME

from tests.live.browser import Browser, browsing  # noqa: E402
from tests.live.browser import NotInstalledError as BrowserNotInstalledError  # noqa: E402
from tests.live.days import Days  # noqa: E402
from tests.live.lake import Lake, running_lake  # noqa: E402
from tests.live.orders import Orders  # noqa: E402
from tests.live.server import Server  # noqa: E402
from tests.live.spark_python import ROOT, SparkPython, running_spark_python  # noqa: E402
from tests.live.store import Store  # noqa: E402
from tests.support import postgresql  # noqa: E402
from tests.support.gateway import gateway_program_or_skip  # noqa: E402

_SPARK = {
    "conn_type": "spark",
    "host": "local[1]",
    "extra": {"spark-history-url": "http://history.example"},
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.slow)
    # It reads the logs of the others.
    items.sort(key=lambda item: item.path.name == "test_quiet_logs.py")


@pytest.fixture(scope="session")
def spark_env() -> Path:
    """The folder of the Spark environment."""
    folder = os.environ.get("MERGE_SPARK_ENV")
    assert folder, "MERGE_SPARK_ENV must name the Spark environment"
    return Path(folder)


@pytest.fixture(scope="session")
def spark_python(spark_env: Path) -> Iterator[SparkPython]:
    """The Python of that environment, running."""
    with running_spark_python(spark_env) as python:
        yield python


@pytest.fixture(scope="session")
def settings(spark_env: Path) -> dict[str, str]:
    """What servers and their jobs find in the environment."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "SPARK_CONF_DIR": str(ROOT / "tests" / "spark_conf"),
        "AIRFLOW__MERGE__SPARK_ENV": str(spark_env),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(_SPARK),
    }


@pytest.fixture(scope="session")
def database() -> Iterator[str | None]:
    """The address of a PostgreSQL server; None: it is not installed, and Airflow uses SQLite."""
    try:
        programs = postgresql.programs()
    except postgresql.NotInstalledError:
        yield None
        return
    with postgresql.running(programs) as url:
        yield url


@pytest.fixture(scope="session")
def server(
    tmp_path_factory: pytest.TempPathFactory, settings: dict[str, str], database: str | None
) -> Iterator[Server]:
    """Started once; at the end nothing of it may be left."""
    on_it = {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database} if database else {}
    with running_server(tmp_path_factory.mktemp("live"), {**settings, **on_it}) as live:
        yield live


@contextmanager
def running_server(folder: Path, settings: dict[str, str]) -> Iterator[Server]:
    """An Airflow beside a warehouse."""
    for name in ("warehouse", "tmp"):
        (folder / name).mkdir()
    paimon = {"conn_type": "paimon", "extra": {"warehouse": str(folder / "warehouse")}}
    variables = {
        **settings,
        "TMPDIR": str(folder / "tmp"),
        "AIRFLOW_CONN_PAIMON_DEFAULT": json.dumps(paimon),
        "AIRFLOW__MERGE__UI_SAMPLES": "paimon_default",
        # Statements of these tests sleep.
        "AIRFLOW__MERGE__ALLOW_CODE_IN_SQL": "True",
    }
    live = Server(folder, variables)
    try:
        live.start()
        yield live
    finally:
        left = live.stop()
    assert left == []


@pytest.fixture
def orders(
    server: Server, spark_python: SparkPython, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Orders]]:
    """Makes a table and its DAG, named after the test; the logs are shown when the test fails."""
    made: list[Orders] = []

    def make(**dag: Any) -> Orders:
        table = Orders(server, server.folder / "warehouse", spark_python, _name(request))
        table.create(**dag)
        made.append(table)
        return table

    failures = request.session.testsfailed
    yield make
    if request.session.testsfailed > failures:
        for table in made:
            print(table.story(table.dag_id))  # noqa: T201 - pytest shows it with the failure


@pytest.fixture
def days(
    server: Server, spark_python: SparkPython, request: pytest.FixtureRequest
) -> Iterator[Days]:
    """A table of days, not yet made, named after the test; its logs are shown as above."""
    yield from _days(server, spark_python, request)


@pytest.fixture
def days_on_postgresql(database: str | None, days: Days) -> Days:
    """The same; skipped where Airflow uses SQLite."""
    if database is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    return days


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A real S3 server, running."""
    server = Store(gateway_program_or_skip(), tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def lake(tmp_path: Path, spark_python: SparkPython) -> Iterator[Lake]:
    """A REST catalog of Iceberg tables in a store of its own."""
    with running_lake(tmp_path / "store", spark_python) as found:
        yield found


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    """A window of a real browser."""
    try:
        with browsing(tmp_path / "browser") as window:
            yield window
    except BrowserNotInstalledError as error:
        pytest.skip(str(error))


def _days(
    server: Server, spark_python: SparkPython, request: pytest.FixtureRequest
) -> Iterator[Days]:
    failures = request.session.testsfailed
    table = Days(server, server.folder / "warehouse", spark_python, _name(request))
    yield table
    if request.session.testsfailed > failures:
        for dag_id in (table.dag_id, table.form, table.keyed, table.dynamic):
            print(table.story(dag_id))  # noqa: T201 - pytest shows it with the failure


def _name(request: pytest.FixtureRequest) -> str:
    return str(request.node.name).removeprefix("test_")
