"""Inserts what a committed statement left for other tables: once, whichever try gets to it.

The target's snapshot is published first, and names the rows. What is inserted afterwards is found
by an operation id of its own, as every operation is, so that a later try makes up for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.progress_note import catalog_mark
from spark_jobs.contract.request import FileSource, JobRequest, TableName
from spark_jobs.contract.side_outputs import (
    SIDE_ALONE,
    SIDE_OF,
    SideOutput,
    recorded_side_outputs,
    side_operation,
)
from spark_jobs.engine.changes.audit_rows import of_snapshot
from spark_jobs.engine.changes.kept_rows import (
    kept_rows,
    remove_side_folder,
    side_folders,
)
from spark_jobs.engine.job.statement_runs import StatementRuns
from spark_jobs.engine.merge.physical_plan import PlanLimits
from spark_jobs.engine.runtime.back_off import ATTEMPTS, back_off
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.errors import CommitError, ErrorCode, JobError, NotSupportedError, error_of
from spark_jobs.spi.connector import find_table
from spark_jobs.spi.tables import CommittedSnapshot, TableHandle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.engine.runtime.progress import Progress
    from spark_jobs.spi.connector import Connector

_SOURCE: Final = "kept_rows"


@dataclass(frozen=True, slots=True)
class SideJob:
    """What operations of the task of ``request`` left for other tables."""

    request: JobRequest
    spark: SparkSession | None
    connector: Connector
    progress: Progress

    def publish(self, operation_id: str, table: str, commit: CommittedSnapshot) -> None:
        """Insert what the operation left, whose ``commit`` of ``table`` names it.

        Raises:
            CommitError: SIDE_ROWS_LOST, COMMIT_HISTORY_EXPIRED or COMMIT_OUTCOME_UNKNOWN.
            JobError: they could not be inserted; names both tables. A later try goes on there.
        """
        for output in recorded_side_outputs(commit.properties):
            with self.progress.phase(output.kind):
                try:
                    self._insert(operation_id, output, {}, table, commit)
                except JobError as error:
                    raise _unfinished(error, table, commit, output) from error

    def publish_alone(self, outputs: Iterable[SideOutput]) -> None:
        """Insert what the request left, which did nothing else; raises as ``publish``."""
        digest = {SIDE_ALONE: self.request.digest()}
        for output in outputs:
            with self.progress.phase(output.kind):
                self._insert(self.request.operation_id, output, digest)

    def was_alone(self) -> bool:
        """Whether an earlier try of the request has done nothing but ``publish_alone``.

        Raises:
            CommitError: OPERATION_ID_REUSED: that was other work; COMMIT_HISTORY_EXPIRED.
        """
        guards = self.request.guards
        if guards is None or guards.quarantine_table is None:
            return False
        side = find_table(self.connector.metadata, TableName.parse(guards.quarantine_table))
        if side is None:
            return False
        own = side_operation(self.request.operation_id, "quarantine")
        found = self.connector.writes.find_commit(side, own)
        digest = None if found is None else found.properties.get(SIDE_ALONE)
        if digest not in (None, self.request.digest()):
            raise CommitError(
                ErrorCode.OPERATION_ID_REUSED,
                f"operation {self.request.operation_id} has already set rows aside in {side.name}, "
                "but its statement or sources differ",
                "Use a new operation id for new work; in Airflow, clear the task.",
            )
        return digest is not None

    def clear(self, operation_id: str, outputs: Sequence[SideOutput]) -> None:
        """Remove what is kept for an operation whose result is stored: nobody asks for it again.

        Folders of earlier tries are looked for only where there may be any.

        Raises:
            OSError: the storage refused.
        """
        writes = self.connector.writes
        for output in outputs:
            table = self.connector.metadata.load_table(TableName.parse(output.table))
            writes.release_guard(table, side_operation(operation_id, output.kind))
        storage = self.connector.storage
        folders = {output.folder.rpartition("/")[0] for output in outputs}
        if self.request.origin.is_retry:
            folders |= set(side_folders(storage, catalog_mark(self.request.catalog), operation_id))
        for folder in folders:
            remove_side_folder(storage, folder)

    def _insert(
        self,
        operation_id: str,
        output: SideOutput,
        more: Mapping[str, str],
        table: str = "",
        commit: CommittedSnapshot | None = None,
    ) -> None:
        own = side_operation(operation_id, output.kind)
        log = OperationLog(self.connector.storage)
        log.clear_leftovers(own, self.request.origin.try_number)
        for attempt in range(1, ATTEMPTS + 1):
            side = self.connector.metadata.load_table(TableName.parse(output.table))
            if has_rows_of(self.connector, side, own, output.folder):
                return
            side_rows = kept_rows(self.connector.storage, output.folder)
            if side_rows is None:
                raise _lost(output)
            if not side_rows.rows:
                return
            try:
                rows = side_rows.frame(self._session(), self.connector.storage, output.folder)
                if output.kind == "audit" and commit is not None:
                    rows = of_snapshot(rows, table, commit)
                named = {SIDE_OF: output.folder, **more}
                self._attempted(self._request(own, output), rows, side, named, attempt)
            except CommitError as error:
                if error.code is not ErrorCode.COMMIT_CONFLICT or attempt == ATTEMPTS:
                    raise
                self.progress.warn(f"{output.kind}: conflict in attempt {attempt}: {error.message}")
            else:
                self.progress.say(f"{side_rows.rows} rows inserted into {output.table}")
                return
            back_off(attempt)

    def _attempted(
        self,
        request: JobRequest,
        rows: DataFrame,
        side: TableHandle,
        named: Mapping[str, str],
        attempt: int,
    ) -> None:
        log = OperationLog(self.connector.storage)
        runs = StatementRuns(
            request, self._session(), self.connector, self.progress, None, PlanLimits()
        )
        scratch = log.begin(request.operation_id, request.origin.try_number)
        try:
            runs.inserting(side, scratch, rows, named, attempt).run()
        finally:
            log.end(scratch)
            log.forget_running(request.operation_id)

    def _request(self, own: str, output: SideOutput) -> JobRequest:
        """The request that would insert the kept rows; of its task, so that an undo finds it."""
        catalog = self.request.catalog
        folder = f"{catalog.workspace_location}/{output.folder}"
        return JobRequest(
            operation_id=own,
            target=TableName.parse(output.table),
            catalog=catalog,
            statement=InsertIntoSpec(_SOURCE, by_name=True),
            sources=(FileSource(_SOURCE, folder, "parquet"),),
            # The target is published: no number of partitions is too high for what it leaves.
            options=JobOptions(
                session_time_zone=self.request.options.session_time_zone,
                max_new_partitions=max(1, output.rows),
            ),
            origin=self.request.origin,
        )

    def _session(self) -> SparkSession:
        if self.spark is None:
            raise NotSupportedError(
                "The rows of an earlier try cannot be inserted without a Spark session.",
                "Give the task the audit_table that it had.",
            )
        return self.spark


def has_rows_of(connector: Connector, side: TableHandle, own: str, folder: str) -> bool:
    """Whether the operation ``own`` has inserted the rows of ``folder`` into the table ``side``.

    Not those of another folder: then the target's snapshot of that time was rolled back.

    Raises:
        CommitError: COMMIT_HISTORY_EXPIRED.
    """
    found = connector.writes.find_commit(side, own)
    return found is not None and found.properties.get(SIDE_OF) == folder


def _lost(output: SideOutput) -> CommitError:
    return CommitError(
        ErrorCode.SIDE_ROWS_LOST,
        f"{output.rows:,} rows for {output.table} are gone: they were kept in {output.folder} of "
        "the workspace.",
        f"Compare the snapshot with the one before, and insert what is missing in {output.table}; "
        "then mark the task as success. See who removes files there, and whether the connection "
        "has another workspace now.",
    )


def _unfinished(
    error: JobError, table: str, commit: CommittedSnapshot, output: SideOutput
) -> JobError:
    # A conflict of the statement would be tried again here, and the target has its commit.
    is_conflict = error.code is ErrorCode.COMMIT_CONFLICT
    return error_of(
        ErrorCode.COMMIT_OUTCOME_UNKNOWN if is_conflict else error.code,
        f"{table} is published, as snapshot {commit.snapshot_id}, and its {output.kind} in "
        f"{output.table} is not: {error.problem}",
        error.remedy
        if error.code is ErrorCode.SIDE_ROWS_LOST
        else f"{error.remedy} The next try of the task, also after a clear, goes on there.",
        error.places,
    )
