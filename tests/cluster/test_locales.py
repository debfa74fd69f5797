"""Executors whose environment asks for a Turkish Java: English all the same, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource
from spark_jobs.contract.result import JobResult
from tests.cluster.processes import kill_tree
from tests.cluster.standalone import Cluster, Submission


def result_of(cluster: Cluster, folder: Path, **variables: str) -> JobResult:
    warehouse = folder / "warehouse"
    warehouse.mkdir()
    query = SqlSource("query", "SELECT id, lower('I' || id) AS v FROM range(0, 4, 1, 4)")
    catalog = CatalogSpec("paimon", str(warehouse))
    request = JobRequest("query-1", None, catalog, QuerySpec("query"), (query,))
    conf = {f"spark.executorEnv.{name}": value for name, value in variables.items()}
    submission = Submission(folder / "submission", request, cluster.master, conf)
    process = submission.start()
    try:
        process.wait(timeout=300)
    finally:
        if process.poll() is None:
            kill_tree(process)
    stored = warehouse / "_operations/query-1.json"
    assert stored.exists(), submission.log.read_text()[-5000:]
    return JobResult.from_json(stored.read_text())


@pytest.mark.slow
def test_the_job_overrides_options_in_the_environment(cluster: Cluster, tmp_path: Path) -> None:
    query = result_of(cluster, tmp_path, JAVA_TOOL_OPTIONS="-Duser.language=tr").query

    assert query is not None
    assert query.rows is not None
    assert {row[1] for row in query.rows} == {"i0", "i1", "i2", "i3"}


@pytest.mark.slow
def test_what_it_cannot_override_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    error = result_of(cluster, tmp_path, _JAVA_OPTIONS="-Duser.language=tr").error

    assert error is not None
    assert error.code == "NOT_SUPPORTED"
    assert "the locale tr" in error.message
