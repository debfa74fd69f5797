"""An Airflow of its own (SQLite, temporary home), connections from the environment, a fake
submitter.

The only fake stands at this project's own seam (``Submitter``); DAG files, rendering, serialisation
and task runs are Airflow's.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Before anything imports airflow: it reads its home once.
HOME = Path(tempfile.mkdtemp(prefix="merge-airflow-home-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
(HOME / "dags").mkdir()
os.environ.update(
    AIRFLOW_HOME=str(HOME),
    AIRFLOW__CORE__DAGS_FOLDER=str(HOME / "dags"),
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__CORE__UNIT_TEST_MODE="False",
)

import pytest  # noqa: E402

from airflow_provider_merge.operators._shared.spark_job import SparkJobOperator  # noqa: E402
from airflow_provider_merge.operators._shared.table_operator import TableOperator  # noqa: E402
from airflow_provider_merge.operators.query import QueryOperator  # noqa: E402
from tests.airflow.metric_backends import collected, received, without_backend  # noqa: E402
from tests.airflow.support import PASSWORD, DagFile, FakeSubmitter, connection  # noqa: E402

__all__ = ["collected", "received", "without_backend"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave alone what the server inside ``dag.test()`` warns about its own HTTP library."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.filterwarnings("ignore:Using `httpx` with"))


@pytest.fixture(scope="session")
def airflow_db() -> None:
    """The metadata database, migrated once."""
    command = [sys.executable, "-m", "airflow", "db", "migrate"]
    subprocess.run(command, check=True, capture_output=True, timeout=900)


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty warehouse, and the connections paimon_default and spark_default."""
    folder = tmp_path / "warehouse"
    folder.mkdir()
    extra = {"warehouse": str(folder), "options": {"custom.secret-key": PASSWORD}}
    connection(monkeypatch, "paimon_default", conn_type="paimon", extra=extra)
    connection(monkeypatch, "spark_default", conn_type="spark", host="local[1]")
    return folder


@pytest.fixture
def iceberg_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An empty catalog in SQLite, as other writers open it, and the connection iceberg_default."""
    from pyiceberg.catalog.sql import SqlCatalog

    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", str(tmp_path / "warehouse")
    extra = {"type": "sql", "warehouse": warehouse}
    connection(monkeypatch, "iceberg_default", conn_type="iceberg", host=uri, extra=extra)
    with SqlCatalog("iceberg_default", uri=uri, warehouse=warehouse) as catalog:
        yield catalog


@pytest.fixture
def submitter(monkeypatch: pytest.MonkeyPatch) -> FakeSubmitter:
    """Takes the place of Spark behind every operator, and of the tables that its jobs change."""
    fake = FakeSubmitter()
    for operator in (TableOperator, QueryOperator):
        monkeypatch.setattr(operator, "require_valid", lambda *_: None)
    monkeypatch.setattr(SparkJobOperator, "get_submitter", lambda _: fake)
    return fake


@pytest.fixture
def dag_file() -> Callable[..., DagFile]:
    """Writes the body of a ``with DAG(…)`` block into a file of the DAG folder."""
    return lambda body, **options: DagFile.write(HOME / "dags", body, **options)


@pytest.fixture(scope="session")
def all_callers(airflow_db: None) -> Iterator[dict[str, Any]]:
    """Users of the pages about tables, by role."""
    from tests.airflow.tables_ui_client import callers

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", "tests " * 20)
        yield callers()


@pytest.fixture
def users(all_callers: dict[str, Any]) -> dict[str, Any]:
    """The same, of a server that has read no table yet."""
    from airflow_provider_merge.ui.routes import Service

    all_callers[""].client.app.state.service = Service()
    return all_callers
