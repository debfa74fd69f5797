"""Merges without Spark: a real ``Job`` whose change rows were prepared beforehand."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.inserts import ClearingStatement
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.properties import metrics_property, operation_properties
from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin, SqlSource
from spark_jobs.contract.result import JobResult, Metrics
from spark_jobs.contract.statements import (
    DeleteAction,
    MergeCase,
    MergeSpec,
)
from spark_jobs.engine.job import statement_job as job_module
from spark_jobs.engine.job.approval import Approval
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.job.statement_runs import StatementRuns
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi import rows
from spark_jobs.spi.alterations import SchemaChange
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from spark_jobs.spi.writes import Fragment, MergeWrite, Operation
from spark_jobs.storage import warehouse as paimon
from tests.faults.storage import visible_file_system
from tests.support.keyed_changes import KeyedChange, keyed_batches, new_row
from tests.support.paimon_tables import (
    NAME,
    append_with_pypaimon,
    change_rows,
    create,
    inserts,
    merge,
)

Row = dict[str, Any]
OLD: list[Row] = [{"id": 10 * p + i, "v": f"v{i}", "p": p} for p in range(2) for i in range(4)]
OTHER: Row = {"id": 500, "v": "other", "p": 1}
CHANGED = {**OLD[1], "v": "changed"}


@dataclass(frozen=True)
class Work:
    """What a merge does. ``changes``: an UPDATE and a DELETE beside the new row ``new_id``.

    ``marks``: on a table with deletion vectors; ``has_key``: with a primary key; ``evolves``: with
    data evolution, where the DELETE is left out. ``meets_others``: somebody else appends a row
    before its first publication. ``adds``: the column that it adds, unless it is there.
    """

    operation_id: str
    new_id: int
    changes: bool = True
    marks: bool = False
    meets_others: bool = False
    adds: str = ""
    has_key: bool = False
    evolves: bool = False

    @property
    def expected(self) -> list[Row]:
        """The rows afterwards, on a table of OLD."""
        new = self.new_row
        kept = OLD[2:] if self.evolves else OLD[3:]
        return sorted([OLD[0], CHANGED, *kept, new] if self.changes else [*OLD, new], key=repr)

    @property
    def new_row(self) -> Row:
        """The row that it inserts."""
        row = {"id": self.new_id, "v": self.operation_id, "p": 2}
        return {**row, self.adds: "new"} if self.adds else row

    @property
    def rewrite_share(self) -> float | None:
        """As that of a statement."""
        return None

    @property
    def statement(self) -> ClearingStatement | None:
        """A statement that a job runs as it is; None: its change rows are prepared."""
        return None

    def catalog(self, warehouse: Path | str) -> CatalogSpec:
        """The catalog for a job."""
        return CatalogSpec("paimon", str(warehouse))

    def opened(self, warehouse: Path | str) -> Connector:
        """The connector, all of whose changes to the warehouse are visible to audit hooks."""
        return opened(warehouse)

    def append_by_others(self, warehouse: Path) -> None:
        """Another engine appends OTHER, unless it did already."""
        append_by_others(warehouse)

    def batches(self, connector: Connector, table: TableHandle) -> list[pa.RecordBatch]:
        """The change rows as a sink task gets them."""
        del connector
        new = self.new_row
        if not self.changes:
            return [inserts(table, [new])]
        at = {"file": 0}
        if self.has_key:
            changes = [
                KeyedChange(rows.UPDATE, {**CHANGED, **at, "position": 1}),
                KeyedChange(rows.DELETE, {**OLD[2], **at, "position": 2}, case=1),
                new_row(new),
            ]
            return keyed_batches(table, changes)
        if self.marks:
            marked = [{**at, "position": position} for position in (1, 2)]
            return [
                change_rows(table, rows.DELETE, marked, case=1),
                inserts(table, [CHANGED, new]),
            ]
        updated = change_rows(table, rows.UPDATE, [{**at, "position": 1, "v": "changed"}])
        gone = change_rows(table, rows.DELETE, [{**at, "position": 2}], case=1)
        return [updated, *([] if self.evolves else [gone]), inserts(table, [new])]


class PreparedJob(Job):
    """A job that takes its change rows from ``work``; ``between`` runs before the publication."""

    __slots__ = ("between", "work")

    def _changed(
        self,
        runs: StatementRuns,
        table: TableHandle,
        scratch: str,
        attempt: int,
        ended: Sequence[str] = (),
        approval: Approval | None = None,
    ) -> JobResult:
        del runs, scratch, ended, approval
        if self.work.adds and self.work.adds not in table.column_names:
            change = SchemaChange((self.work.adds,), "string")
            table = self.connector.metadata.evolved(table, [change])
        properties = operation_properties(self.request, table.snapshot_id)
        operation = Operation(self.request.operation_id, self.request.digest(), properties)
        writes = self.connector.writes
        files = self.connector.metadata.plan_files(table)
        assigned = (("v",), ()) if self.work.changes else ((),)
        share = self.work.rewrite_share
        write = MergeWrite(operation, files, assigned, (), 2**27, rewrite_share=share)
        handle = writes.begin_merge(table, write)
        sink = handle.sinks.open(f"task{attempt}")
        for batch in self.work.batches(self.connector, table):
            sink.store_merged_rows(batch)
        fragments = [Fragment.from_json(each.to_json()) for each in sink.finish()]
        self.between()
        properties |= metrics_property(Metrics())
        try:
            snapshot = writes.finish_merge(table, handle, fragments, properties)
        except JobError as error:
            if error.code is not ErrorCode.COMMIT_OUTCOME_UNKNOWN:
                writes.abort_merge(table, handle)
            raise
        return JobResult(
            operation_id=self.request.operation_id,
            status="committed",
            target=str(self.request.target),
            request_digest=self.request.digest(),
            base_snapshot_id=table.snapshot_id,
            new_snapshot_id=snapshot.snapshot_id,
            try_number=self.request.origin.try_number,
        )


def opened(warehouse: Path | str) -> Connector:
    """The connector, all of whose changes to the warehouse are visible to audit hooks."""
    with mock.patch.object(paimon.pafs, "LocalFileSystem", visible_file_system):
        return open_connector(CatalogSpec("paimon", str(warehouse)), {})


def run(
    warehouse: Path | str, work: Work, try_number: int, between: Callable[[], None] = lambda: None
) -> JobResult:
    """One try of the work, from the search for an earlier commit to the stored result."""
    cases = (MergeCase("matched", DeleteAction()),)
    request = JobRequest(
        operation_id=work.operation_id,
        target=NAME,
        catalog=work.catalog(warehouse),
        statement=work.statement or MergeSpec("s", "t.id = s.id", cases, "t", "s"),
        sources=() if work.statement else (SqlSource("s", "SELECT 1 AS id"),),
        options=JobOptions(rewrite_share=work.rewrite_share),
        origin=Origin(try_number=try_number),
    )
    if work.statement:
        return Job(request, None, work.opened(warehouse)).run()
    job = PreparedJob(request, None, work.opened(warehouse))
    object.__setattr__(job, "work", work)
    object.__setattr__(job, "between", between)
    # Change rows are prepared for the files as they were: only beside others they fit once more.
    with mock.patch.object(job_module, "ATTEMPTS", 2 if work.meets_others else 1):
        return job.run()


def run_until_done(warehouse: Path, work: Work) -> int:
    """Try again after conflicts, as Airflow does; the number of tries."""
    for number in range(1, 200):
        result = run(warehouse, work, number)
        if result.error is None:
            return number
        assert result.error.code == "COMMIT_CONFLICT", result.error
        time.sleep(0.005 * (number % 5))
    raise AssertionError("200 conflicts")


def append_by_others(warehouse: Path) -> None:
    """Another engine appends OTHER, unless it did already."""
    table = open_connector(CatalogSpec("paimon", str(warehouse)), {}).metadata.load_table(NAME)
    if table.snapshot_id == 1:
        append_with_pypaimon(table, [OTHER])


def new_table(
    warehouse: Path | str, *, marks: bool = False, has_key: bool = False, evolves: bool = False
) -> None:
    """A table with the rows OLD: one file in each of two partitions.

    With a key, the connector writes them, so that all readers see them.
    """
    connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
    options = {"deletion-vectors.enabled": "true"} if marks else {}
    if evolves:
        options |= {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    key = ("p", "id") if has_key else ()
    if has_key:
        options["bucket"] = "1"
    columns = {"id": "int", "v": "string", "p": "int"}
    table = create(connector, columns, ["p"], options, primary_key=key)
    if has_key:
        merge(connector, table, *keyed_batches(table, list(map(new_row, OLD))), operation_id="old")
        connector.writes.release_guard(table, "old")
    else:
        append_with_pypaimon(table, OLD)
