"""A table, and MERGEs of change events into it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spark_jobs.contract.cdc import CdcSource, OperationValues, SequenceColumn
from spark_jobs.contract.event_clauses import event_cases, event_on
from spark_jobs.contract.request import JobRequest, SqlSource
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import ColumnSpec, MergeSpec
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import SeedTable

_KEPT = ColumnSpec("lsn", "BIGINT")
TABLE = SeedTable(
    "cdc",
    (ColumnSpec("id", "BIGINT"), ColumnSpec("v", "STRING"), _KEPT),
    (
        (
            {"id": 1, "v": "one", "lsn": 10},
            {"id": 2, "v": "two", "lsn": 20},
            {"id": 3, "v": "before any event", "lsn": None},
        ),
    ),
)
OPERATIONS = OperationValues(("c",), ("u",), ("d",), truncate=("t",), ignore=("m",))
SOURCE = CdcSource("s", "events", ("id",), OPERATIONS, (SequenceColumn("lsn", "lsn"),))


def _request(harness: Harness, source: CdcSource, *inner: Any, **more: Any) -> JobRequest:
    evolves = more.pop("schema_evolution", False)
    cases, on = event_cases(source, "t", "s"), event_on(source, "t", "s")
    statement = MergeSpec("s", on, cases, "t", "s", schema_evolution=evolves)
    request = JobRequest("cdc", TARGET, harness.catalog, statement, (*inner, source))
    return replace(request, **more)


def run(harness: Harness, source: CdcSource, *inner: Any, **more: Any) -> JobResult:
    request = _request(harness, source, *inner, **more)
    return Job(request, harness.spark, harness.open()).run()


def events_of(*rows: str, columns: str = "op, id, v, lsn") -> SqlSource:
    return SqlSource("events", f"SELECT * FROM VALUES {', '.join(rows)} AS x ({columns})")


def rows_of(harness: Harness) -> list[tuple[Any, ...]]:
    rows = [tuple(row.values()) for row in harness.read()]
    return sorted(rows, key=lambda row: (row[0], str(row)))
