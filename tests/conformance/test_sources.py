"""The kinds of sources: files, tables of the catalog, and queries over both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.contract.request import FileSource, SqlSource, TableSource
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.behaviour import Behaviour, matched, update
from tests.conformance.check import request_of
from tests.conformance.conftest import MakeTable
from tests.conformance.connectors import HARNESSES
from tests.conformance.harness import TARGET
from tests.conformance.tables import ORDERS

UPDATE_V = Behaviour("", "nothing", (matched(update(v="s.v")),))


@pytest.mark.slow
@pytest.mark.parametrize("connector", HARNESSES)
def test_a_query_joins_files_and_the_target_itself(
    connector: str, make_table: MakeTable, tmp_path: Path
) -> None:
    harness = make_table(connector, ORDERS, partitioned=True)
    file = tmp_path / "new rows.csv"
    file.write_text("id,word\n101,x\n222,y\n9,z\n")
    query = "SELECT t.id, concat(t.v, f.word) AS v FROM files f JOIN target t ON t.id = f.id"
    request = replace(
        request_of(UPDATE_V, harness),
        sources=(
            FileSource("files", str(tmp_path / "new rows.csv"), "csv", {"header": "true"}),
            TableSource("target", TARGET),
            SqlSource("s", query),
        ),
    )

    result = Job(request, harness.spark, harness.open()).run()

    assert result.error is None, result.error
    assert (result.metrics.source_rows, result.metrics.updated) == (2, 2)
    values = {row["id"]: row["v"] for row in harness.read()}
    assert (values[101], values[222], values[102]) == ("v101x", "v222y", "v102")
    assert not harness.spark.catalog.tableExists("files")
