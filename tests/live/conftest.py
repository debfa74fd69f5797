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
from pathlib import Path
from typing import Any

import pytest

# This process imports Airflow too; it must not make a home in the user's.
_HOME = tempfile.mkdtemp(prefix="merge-airflow-home-")
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
os.environ["AIRFLOW_HOME"] = _HOME

from tests.live.orders import ROOT, Orders  # noqa: E402
from tests.live.server import Server  # noqa: E402


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def spark_env() -> Path:
    """The folder of the Spark environment."""
    folder = os.environ.get("MERGE_SPARK_ENV")
    assert folder, "MERGE_SPARK_ENV must name the Spark environment"
    return Path(folder)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, spark_env: Path) -> Iterator[Server]:
    """Started once; at the end nothing of it may be left."""
    folder = tmp_path_factory.mktemp("live")
    for name in ("warehouse", "tmp"):
        (folder / name).mkdir()
    paimon = {"conn_type": "paimon", "extra": {"warehouse": str(folder / "warehouse")}}
    variables = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(folder / "tmp"),
        "AIRFLOW__MERGE__SPARK_ENV": str(spark_env),
        "AIRFLOW_CONN_PAIMON_DEFAULT": json.dumps(paimon),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[1]"}),
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
    server: Server, spark_env: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Orders]]:
    """Makes a table and its DAG, named after the test; the logs are shown when the test fails."""
    made: list[Orders] = []

    def make(**dag: Any) -> Orders:
        name = request.node.name.removeprefix("test_")
        table = Orders(server, server.folder / "warehouse", spark_env, name)
        table.create(**dag)
        made.append(table)
        return table

    failures = request.session.testsfailed
    yield make
    if request.session.testsfailed > failures:
        for table in made:
            print(table.story())  # noqa: T201 - pytest shows it with the failure
