"""Commits of earlier operations of a task run that ended before their task learned of the commit.

Clearing a task asks for its work again. But a user who clears a failed or stopped task does not
know that its job had already published.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spark_jobs.contract.operation_files import note_file, note_text, noted_operations
from spark_jobs.contract.properties import result_of_snapshot
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.errors import CatalogError, CommitError, ErrorCode
from spark_jobs.spi.tables import CommittedSnapshot, TableHandle
from spark_jobs.storage.files import read_file, replace_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_jobs.spi.connector import Connector

_REMEDY = (
    "Look at the table's rows. With after_ended_try='skip' that commit becomes the task's result, "
    "with 'run' the statement is done once more; or mark the task as success."
)


@dataclass(frozen=True, slots=True)
class EndedTries:
    """The operations noted for the task run of ``request``, except its own."""

    request: JobRequest
    connector: Connector
    operation_ids: tuple[str, ...]

    @classmethod
    def of(cls, request: JobRequest, connector: Connector) -> EndedTries:
        """Read the operations noted so far, and note the request's own.

        Raises:
            CatalogError: METADATA_UNREADABLE.
            CommitError: RUN_GIVEN_UP: a later operation of the task run has been noted.
        """
        note = note_file(request.origin)
        if note is None:
            return cls(request, connector, ())
        storage = connector.storage
        path = f"{storage.root}/{note}"
        noted = _noted(connector, path)
        if request.operation_id in noted[:-1]:
            raise _given_up(request)
        ended = [each for each in noted if each != request.operation_id]
        if request.operation_id not in noted:
            text = note_text([*ended, request.operation_id])
            replace_file(storage.filesystem, path, text.encode())
        return cls(request, connector, tuple(ended))

    def commits(self, table: TableHandle) -> list[JobResult]:
        """What these operations committed to ``table``; any that still run can no longer publish.

        Raises:
            CommitError: COMMIT_HISTORY_EXPIRED: it is unknown whether one committed, and
                ``after_ended_try`` is not ``run``.
        """
        results = []
        log = OperationLog(self.connector.storage)
        for operation_id in self.operation_ids:
            log.clear_leftovers(operation_id, None)
            commit = self._commit(table, operation_id)
            if commit is not None:
                target, properties = str(self.request.table), commit.properties
                results.append(result_of_snapshot(target, commit.snapshot_id, properties))
        return results

    def _commit(self, table: TableHandle, operation_id: str) -> CommittedSnapshot | None:
        try:
            return self.connector.writes.find_commit(table, operation_id)
        except CommitError:
            if self.request.after_ended_try == "run":
                return None
            raise

    def taken(self, commits: Sequence[JobResult]) -> JobResult | None:
        """The result of the request if the last of ``commits`` stands for it, else None.

        Raises:
            CommitError: ENDED_TRY_COMMITTED: a user has to decide.
        """
        then = self.request.after_ended_try
        if not commits or then == "run":
            return None
        last = commits[-1]
        if then == "fail":
            raise CommitError(ErrorCode.ENDED_TRY_COMMITTED, _told(commits), _REMEDY)
        if last.request_digest != self.request.digest():
            problem = "Since then its statement or its sources were changed, so it is not skipped."
            raise CommitError(ErrorCode.ENDED_TRY_COMMITTED, f"{_told(commits)} {problem}", _REMEDY)
        origin = self.request.origin
        return replace(
            last,
            operation_id=self.request.operation_id,
            try_number=origin.try_number,
            retries=origin.retries,
            warnings=(f"{_told(commits)} The statement was not run again.",),
        )


def warnings_of(commits: Sequence[JobResult]) -> tuple[str, ...]:
    """The warnings for a statement that runs again after ``commits``."""
    return (f"{_told(commits)} The statement was run once more.",) if commits else ()


def _given_up(request: JobRequest) -> CommitError:
    return CommitError(
        ErrorCode.RUN_GIVEN_UP,
        f"Operation {request.operation_id} was given up: its task was cleared, and a later "
        "operation of the task has begun.",
        "Look at the task's later tries.",
    )


def _told(commits: Sequence[JobResult]) -> str:
    return " ".join(
        f"Operation {commit.operation_id} of this task was ended, but had committed snapshot "
        f"{commit.new_snapshot_id} of {commit.target} ({commit.metrics.inserted} rows inserted, "
        f"{commit.metrics.updated} updated, {commit.metrics.deleted} deleted)."
        for commit in commits
    )


def _noted(connector: Connector, path: str) -> list[str]:
    try:
        return noted_operations(read_file(connector.storage.filesystem, path).decode())
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise CatalogError(
            ErrorCode.METADATA_UNREADABLE,
            f"{path}, which names earlier operations of the task, is not readable: {error}",
            "Look at the table's rows for what they did; then delete the file.",
        ) from error
