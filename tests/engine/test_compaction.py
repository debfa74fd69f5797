"""Compaction as a job: the same rows in fewer files, group by group, over all tries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.compaction import CompactionReport, CompactSpec
from spark_jobs.contract.request import CatalogSpec, JobRequest
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.job.compaction_job import CompactionJob
from spark_jobs.run import run
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from tests.support.folder_connector.connector import open_folder_connector
from tests.support.paimon_tables import (
    NAME,
    append,
    change_rows,
    create,
    merge,
    read,
)
from tests.support.paimon_vectors import live_indexes

pytestmark = pytest.mark.slow


def opened(warehouse: Path) -> Connector:
    return open_connector(CatalogSpec("paimon", str(warehouse)), {})


def request(warehouse: Path, spec: CompactSpec, **more: Any) -> JobRequest:
    return JobRequest("compact-1", NAME, CatalogSpec("paimon", str(warehouse)), spec, **more)


def report_of(result: JobResult) -> CompactionReport:
    assert result.error is None, result.error
    assert result.compaction is not None
    return result.compaction


def stored_result(warehouse: Path) -> JobResult:
    return JobResult.from_json((warehouse / "_operations/compact-1.json").read_text())


def small_files(
    warehouse: Path, options: Mapping[str, str] | None = None, *, files: int = 6
) -> Connector:
    """A table of two partitions, each with so many files of one row."""
    connector = opened(warehouse)
    create(connector, {"id": "int", "p": "int"}, ["p"], options)
    for number in range(files):
        values = [{"id": 10 * number + p, "p": p} for p in (0, 1)]
        append(connector, values, f"op-{number}")
    return connector


def test_small_files_become_one_in_each_partition(tmp_path: Path, spark: SparkSession) -> None:
    connector = small_files(tmp_path)
    before = read(connector)

    result = run(request(tmp_path, CompactSpec()), spark)

    report = report_of(result)
    assert result.status == "committed"
    assert (report.files_before, report.files_after, report.rows) == (12, 2, 12)
    assert report.partitions_compacted == 2
    assert report.snapshots == (7,) == (result.new_snapshot_id,)
    assert {tuple(each.values.items()) for each in report.partitions} == {
        (("p", "0"),),
        (("p", "1"),),
    }
    assert read(connector) == before
    snapshot = connector.metadata.load_table(NAME).native.snapshot
    assert snapshot.commit_kind == "COMPACT"
    assert (snapshot.total_record_count, snapshot.delta_record_count) == (12, 0)
    assert len(connector.metadata.plan_files(connector.metadata.load_table(NAME))) == 2


def test_vectors_of_compacted_files_leave_the_index(tmp_path: Path, spark: SparkSession) -> None:
    connector = small_files(tmp_path, {"deletion-vectors.enabled": "true"})
    append(connector, [{"id": 1000 + number, "p": 0} for number in range(10)], "ten")
    table = connector.metadata.load_table(NAME)
    ten = next(f.ordinal for f in connector.metadata.plan_files(table) if f.row_count == 10)
    marked = [{"file": ten, "position": position} for position in range(3)]
    merge(connector, table, change_rows(table, rows.DELETE, marked), operation_id="delete")
    before = read(connector)
    now = connector.metadata.load_table(NAME).native.table
    assert len(live_indexes(now)) == 1

    report = report_of(run(request(tmp_path, CompactSpec()), spark))

    assert read(connector) == before
    assert (len(before), report.rows, report.vectors_removed) == (19, 19, 1)
    assert report.files_after == 2
    assert live_indexes(connector.metadata.load_table(NAME).native.table) == set()


def test_runs_of_a_table_with_a_primary_key_are_merged(tmp_path: Path, spark: SparkSession) -> None:
    connector = opened(tmp_path)
    create(connector, {"id": "int", "v": "string"}, options={"bucket": "1"}, primary_key=["id"])
    for number in range(6):
        append(connector, [{"id": key, "v": f"{number}"} for key in range(3)], f"op-{number}")
    before = read(connector)

    report = report_of(run(request(tmp_path, CompactSpec()), spark))

    assert read(connector) == before == [{"id": key, "v": "5"} for key in range(3)]
    assert (report.files_before, report.files_after, report.rows) == (6, 1, 3)
    snapshot = connector.metadata.load_table(NAME).native.snapshot
    assert (snapshot.total_record_count, snapshot.delta_record_count) == (3, -15)


def test_a_damaged_file_is_named_by_its_task(tmp_path: Path, spark: SparkSession) -> None:
    connector = small_files(tmp_path)
    files = connector.metadata.plan_files(connector.metadata.load_table(NAME))
    damaged = Path(next(file.path for file in files if file.partition["p"] == 1))
    damaged.write_bytes(b"PAR1")

    result = run(request(tmp_path, CompactSpec()), spark)

    assert result.error is not None
    assert result.error.code == "DATA_FILE_UNREADABLE"
    assert damaged.name in result.error.message
    assert result.error.message.endswith("Compacted: p=0.")
    assert result.compaction is not None
    assert (result.compaction.partitions_compacted, result.compaction.partitions_failed) == (1, 1)
    assert stored_result(tmp_path) == result


def test_constants_that_only_spark_knows(tmp_path: Path, spark: SparkSession) -> None:
    small_files(tmp_path)

    spec = CompactSpec(partitions=({"p": "coalesce(NULL, 1)"},))
    report = report_of(run(request(tmp_path, spec), spark))

    assert [each.values for each in report.partitions] == [{"p": "1"}]


def test_it_needs_a_session(tmp_path: Path) -> None:
    opened(tmp_path)
    result = run(request(tmp_path, CompactSpec()), None)
    assert result.error is not None
    assert result.error.message == "compact: needs a Spark session"


def test_a_connector_without_compaction_says_so(tmp_path: Path, spark: SparkSession) -> None:
    connector = open_folder_connector(str(tmp_path), 100)
    result = CompactionJob(request(tmp_path, CompactSpec()), spark, connector).run()
    assert result.error is not None
    assert result.error.code == "NOT_SUPPORTED"
