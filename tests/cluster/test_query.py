"""A query is read and written to files by executors that hold no table library."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource, TableSource
from spark_jobs.contract.result import JobResult
from tests.cluster.processes import kill_tree
from tests.cluster.standalone import Cluster, Submission
from tests.support.paimon_tables import NAME, append, create


# tests/engine shows queries with Spark; a lint rule keeps table libraries from executors.
@pytest.mark.by_turns(2, 0)
def test_rows_are_written_to_files(cluster: Cluster, tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    catalog = CatalogSpec("paimon", str(warehouse))
    connector = open_connector(catalog, {})
    create(connector, {"id": "int", "p": "string"}, ["p"])
    append(connector, [{"id": each, "p": str(each % 2)} for each in range(40)])
    query = SqlSource("query", "SELECT /*+ REPARTITION(2) */ id, p FROM orders WHERE id >= 20")
    statement = QuerySpec("query", output_path=str(tmp_path / "out"))
    request = JobRequest("query-1", None, catalog, statement, (TableSource("orders", NAME), query))
    submission = Submission(tmp_path / "submission", request, cluster.master)

    process = submission.start()
    try:
        assert process.wait(timeout=300) == 0, submission.log.read_text()[-5000:]
    finally:
        if process.poll() is None:
            kill_tree(process)

    report = JobResult.from_json((warehouse / "_operations/query-1.json").read_text()).query
    assert report is not None
    assert report.row_count == 20
    rows = pq.read_table(report.location).sort_by("id").to_pylist()
    assert rows == [{"id": each, "p": str(each % 2)} for each in range(20, 40)]
    assert {task["Task Info"]["Executor ID"] for task in submission.tasks} == {"0", "1"}
