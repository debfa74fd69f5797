"""Landed files are read by executors that have pyspark, pyarrow, numpy and pandas, and no more."""

from __future__ import annotations

import json
from pathlib import Path

import fastavro
import pytest

from spark_jobs.contract.request import FileSource
from spark_jobs.contract.result import JobResult
from tests.cluster.merging import ClusterMerges
from tests.conformance.behaviour import Behaviour, insert, matched, not_matched, update
from tests.conformance.check import OPERATION_ID

MERGE = Behaviour(
    "landed files",
    "s",
    (matched(update(v="s.v")), not_matched(insert(id="s.id", v="s.v", req="'r'"))),
)


@pytest.mark.by_turns(2, 0)
def test_csv_with_bad_records(merges: ClusterMerges, tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    landing.mkdir()
    for part in range(4):
        rows = "".join(f'{1000 * part + i},"new\n{i}"\n' for i in range(100, 110))
        (landing / f"{part}.csv").write_text(f"id,v\n{rows}x{part},bad\n")
    aside = tmp_path / "aside"
    source = FileSource(
        "s",
        str(landing),
        "csv",
        {"header": "true"},
        "id BIGINT, v STRING",
        on_bad_rows="quarantine",
        quarantine=str(aside),
    )

    merge = merges.start(MERGE, source=source)
    result = merge.result()

    metrics = result.metrics
    assert (metrics.source_rows, metrics.updated, metrics.inserted) == (40, 10, 30)
    values = {row["id"]: row["v"] for row in merge.harness.state().rows}
    assert all(values[1000 * part + i] == f"new\n{i}" for part in range(4) for i in range(100, 110))
    (file,) = aside.rglob("*.jsonl")
    found = [json.loads(line)["raw"] for line in file.read_text().splitlines()]
    assert sorted(found) == [f"x{part},bad" for part in range(4)]


# tests/landing and tests/engine show the same error without a cluster.
@pytest.mark.extended
def test_avro_where_executors_lack_its_package(merges: ClusterMerges, tmp_path: Path) -> None:
    fields = [{"name": "id", "type": "long"}, {"name": "v", "type": "string"}]
    with (tmp_path / "a.avro").open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "r", "fields": fields}, [])
    source = FileSource("s", str(tmp_path / "a.avro"), "avro", {}, "id BIGINT, v STRING")

    merge = merges.start(MERGE, source=source)
    assert merge.process.wait(timeout=300) != 0

    path = merge.harness.warehouse / "_operations" / f"{OPERATION_ID}.json"
    error = JobResult.from_json(path.read_text()).error
    assert error is not None
    assert error.code == "LIBRARY_MISSING"
    assert "fastavro" in error.message
    assert merge.harness.state().rows == merge.before.rows
