"""Orphan files are found by executors that hold no table library."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.maintenance import RemoveOrphanFilesSpec
from spark_jobs.contract.request import CatalogSpec, JobRequest
from spark_jobs.contract.result import JobResult
from tests.cluster.processes import kill_tree
from tests.cluster.standalone import Cluster, Submission
from tests.support.paimon_tables import NAME, create, overwrite, read
from tests.support.reachable import needed, stored


# tests/connectors shows the search with Spark; a lint rule keeps table libraries from executors.
@pytest.mark.extended
def test_orphans_are_removed(cluster: Cluster, tmp_path: Path) -> None:
    catalog = CatalogSpec("paimon", str(tmp_path / "warehouse"))
    (tmp_path / "warehouse").mkdir()
    connector = open_connector(catalog, {})
    create(connector, {"id": "int", "k": "string"}, ["k"])
    for number in range(1, 6):
        overwrite(connector, number)
    table = tmp_path / "warehouse/shop.db/orders"
    gone = [f"k=x/bucket-0/data-{number}" for number in range(3)] + ["manifest/manifest-lost"]
    old = time.time() - 3 * 86_400
    for name in gone:
        (table / name).touch()
        os.utime(table / name, (old, old))
    request = JobRequest("orphans-1", NAME, catalog, RemoveOrphanFilesSpec())
    submission = Submission(tmp_path / "submission", request, cluster.master)

    process = submission.start()
    try:
        assert process.wait(timeout=900) == 0, submission.log.read_text()[-5000:]
    finally:
        if process.poll() is None:
            kill_tree(process)

    path = tmp_path / "warehouse/_operations/orphans-1.json"
    report = JobResult.from_json(path.read_text()).maintenance
    assert report is not None
    assert report.files == tuple(gone)
    assert stored(table) == needed(table)
    assert read(connector) == [{"id": 5, "k": "x"}]
    assert {task["Task Info"]["Executor ID"] for task in submission.tasks} == {"0", "1"}
