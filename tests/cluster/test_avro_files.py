"""Avro data files, and executors that have pyspark, pyarrow, numpy and pandas, and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, JobRequest
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import Assignment, UpdateSpec
from tests.cluster.processes import kill_tree
from tests.cluster.standalone import Cluster, Submission
from tests.support.paimon_tables import NAME, append_with_pypaimon, create, read


# tests/connectors/paimon shows the same error without a cluster.
@pytest.mark.extended
def test_executors_lack_the_package(cluster: Cluster, tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    catalog = CatalogSpec("paimon", str(warehouse))
    connector = open_connector(catalog, {})
    table = create(connector, {"id": "int", "v": "int"}, options={"file.format": "avro"})
    append_with_pypaimon(table, [{"id": 1, "v": 1}])
    statement = UpdateSpec("t", (Assignment("v", "2"),), "id = 1")
    request = JobRequest("update-1", NAME, catalog, statement, ())
    submission = Submission(tmp_path / "submission", request, cluster.master)

    process = submission.start()
    try:
        assert process.wait(timeout=300) != 0
    finally:
        if process.poll() is None:
            kill_tree(process)

    error = JobResult.from_json((warehouse / "_operations/update-1.json").read_text()).error
    assert error is not None
    assert error.code == "LIBRARY_MISSING"
    assert "pip install fastavro" in error.remedy
    assert read(connector) == [{"id": 1, "v": 1}]
