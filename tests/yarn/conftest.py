"""One YARN for all tests, with an Airflow and a warehouse beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

# Before anything imports airflow: it sets Airflow's home.
from tests.airflow.conftest import airflow_db, dag_file
from tests.judge.yarn_server import Yarn, yarn
from tests.yarn.cluster import Cluster

__all__ = ["airflow_db", "dag_file", "yarn"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.slow)
            # Of the server inside ``dag.test()``, about its own HTTP library.
            item.add_marker(pytest.mark.filterwarnings("ignore:Using `httpx` with"))


@pytest.fixture(scope="session")
def cluster(yarn: Yarn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """What tests need of YARN, in this process's environment."""
    cluster = Cluster(yarn, tmp_path_factory.mktemp("cluster"))
    cluster.warehouse.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in cluster.variables().items():
            patch.setenv(name, value)
        yield cluster
