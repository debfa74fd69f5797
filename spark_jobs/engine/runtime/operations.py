"""The memory of operations: result files in the workspace.

Modelled on the idempotent commits of table formats: an operation that committed is found again by
its id, so that a retry returns its result instead of applying the statement twice.
"""

from __future__ import annotations

import contextlib
import zlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import pyarrow.fs as pafs

from spark_jobs.contract.access_rights import writing_workspace
from spark_jobs.contract.operation_files import (
    FOLDER,
    RESULTS_KEPT,
    dry_run_result_path,
    is_memory,
    is_scratch_of,
    is_unfinished_result_of,
    new_scratch_folder,
    result_path,
    running_path,
)
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import ErrorInfo, JobResult, Metrics, Status
from spark_jobs.engine.runtime.lease import Lease
from spark_jobs.engine.runtime.permission import Fence
from spark_jobs.engine.runtime.progress import log
from spark_jobs.errors import CommitError, ErrorCode, JobError
from spark_jobs.storage.clock import StoreClock
from spark_jobs.storage.files import has_folders, read_file, remove_folder, replace_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_jobs.spi.storage import WarehouseStorage

# Of the result of a failure; object stores are not full.
_ROOM: Final = b"\n" * 32_768
_NOTHING: Final = Metrics()
# The maximum that one run removes, because it has a statement to run.
_MOST_OUTDATED: Final = 1_000
# Listing 100,000 results takes seconds, so one of as many operations looks for outdated ones.
_OPERATIONS_PER_SWEEP: Final = 64


@dataclass(frozen=True, slots=True)
class OperationLog:
    """The results of operations in the workspace."""

    storage: WarehouseStorage

    def hand_over(self, result: JobResult) -> None:
        """Store the result of a dry run for its caller, who also removes its folder."""
        path = f"{self.storage.root}/{dry_run_result_path(result.operation_id)}"
        replace_file(self.storage.filesystem, path, result.to_json().encode())

    def read(self, operation_id: str) -> JobResult | None:
        """The stored result of an operation; None if there is none or it cannot be read."""
        try:
            content = read_file(self.storage.filesystem, self._path(operation_id))
            return JobResult.from_json(content.decode())
        except (FileNotFoundError, JobError, UnicodeDecodeError):
            return None

    def is_unfinished(self, operation_id: str) -> bool:
        """Whether an operation is running or was killed, or has failed, as far as is known here."""
        stored = self.read(operation_id)
        return self._is_running(operation_id) if stored is None else stored.error is not None

    def store(self, result: JobResult) -> None:
        """Store ``result``, whole or not at all: its operation has ended.

        A failure never replaces the result of an earlier successful run: it is stored beside it, as
        ``<operation_id>.refused.json``. If the storage refuses, that is only logged: the table
        knows what was committed.
        """
        earlier = self.read(result.operation_id)
        refused = result.error is not None and earlier is not None and earlier.error is None
        path = self._path(result.operation_id, refused=refused)
        try:
            self._write(path, result)
        except OSError:
            # The note of the run has kept room for it on a full disk.
            self.forget_running(result.operation_id)
            try:
                self._write(path, result)
            except OSError as error:
                log.warning("the result could not be stored in %s: %s", path, error)
        self.forget_running(result.operation_id)

    def _write(self, path: str, result: JobResult) -> None:
        replace_file(self.storage.filesystem, path, result.to_json().encode())

    def forget_running(self, operation_id: str) -> None:
        """Remove the note that an operation is running."""
        with contextlib.suppress(OSError):  # the note of a run that ended only costs a listing
            self.storage.filesystem.delete_file(self._running(operation_id))

    def enter(self, request: JobRequest) -> Fence:
        """Begin a try of an operation: earlier ones are given up, and what they left is removed.

        Raises:
            CatalogError: WORKSPACE_ACCESS_DENIED.
            CommitError: RUN_GIVEN_UP: this one was.
            InternalError: STORAGE_UNAVAILABLE.
        """
        fence = Fence.of(request, self.storage)
        fence.enter()
        with writing_workspace():
            self.clear_leftovers(request.operation_id, fence.try_number)
        return fence

    def begin(self, operation_id: str, try_number: int) -> str:
        """A scratch folder for a new run, with a lease; the operation is noted as running.

        Raises:
            CatalogError: WORKSPACE_ACCESS_DENIED.
            CommitError: RUN_GIVEN_UP.
        """
        self.note_running(operation_id)
        scratch = new_scratch_folder(operation_id, try_number)
        with writing_workspace():
            self.lease(scratch).take()
        return scratch

    def note_running(self, operation_id: str) -> None:
        """Note an operation as running; raises as ``begin``."""
        note = running_note(self.storage.filesystem)
        with writing_workspace():
            replace_file(self.storage.filesystem, self._running(operation_id), note)

    def lease(self, scratch: str) -> Lease:
        """The lease of the run whose temporary files are in ``scratch``."""
        return Lease(self.storage.filesystem, f"{self.storage.root}/{scratch}")

    def clear(self, scratch: str) -> None:
        """End the lease of a run, and remove its temporary files."""
        lease = self.lease(scratch)
        lease.end()
        remove_folder(self.storage.filesystem, lease.scratch)

    def end(self, scratch: str) -> None:
        """``clear`` for a run whose outcome is known: a failure is only logged.

        A search for orphan files removes what is left.
        """
        try:
            self.clear(scratch)
        except OSError as error:
            log.warning("the temporary files in %s are left: %s", scratch, error)

    def clear_leftovers(self, operation_id: str, try_number: int | None) -> None:
        """Remove the temporary files of runs of this operation that were killed.

        ``try_number``: not those of later tries; None: those of all. A given-up run that is still
        alive fails because its lease is gone. The folder of all operations is listed only if there
        may be such runs: a second try says so, or the note of a run whose result was never stored.
        Now and then, it is listed for outdated results of any operation, too.
        """
        if try_number != 1 or self._is_running(operation_id) or _sweeps(operation_id):
            self._clear_listed(operation_id, try_number)

    def _is_running(self, operation_id: str) -> bool:
        note = self.storage.filesystem.get_file_info(self._running(operation_id))
        return bool(note.type == pafs.FileType.File)

    def _clear_listed(self, operation_id: str, try_number: int | None) -> None:
        folder = pafs.FileSelector(f"{self.storage.root}/{FOLDER}", allow_not_found=True)
        infos = self.storage.filesystem.get_file_info(folder)
        for info in infos:
            name = info.base_name
            is_folder = info.type == pafs.FileType.Directory
            if is_folder and is_scratch_of(operation_id, name, try_number):
                self.lease(f"{FOLDER}/{name}").end()
                self.end(f"{FOLDER}/{name}")
            elif is_unfinished_result_of(operation_id, name):
                with contextlib.suppress(FileNotFoundError):
                    self.storage.filesystem.delete_file(info.path)
        self._remove_outdated(infos)

    def _remove_outdated(self, found: Sequence[pafs.FileInfo]) -> None:
        # This machine's clock only tells whether it is worth asking the store's.
        if not _outdated(found, datetime.now(UTC)):
            return
        clock = StoreClock(self.storage.filesystem, f"{self.storage.root}/{FOLDER}")
        try:
            outdated = _outdated(found, clock.now())
        except JobError as error:
            log.warning("outdated results are left: %s", error.message)
            return
        for path in outdated[:_MOST_OUTDATED]:
            # Other jobs may remove it too, or own a file that this job may not remove.
            with contextlib.suppress(OSError):
                self.storage.filesystem.delete_file(path)

    def _running(self, operation_id: str) -> str:
        return f"{self.storage.root}/{running_path(operation_id)}"

    def _path(self, operation_id: str, *, refused: bool = False) -> str:
        return f"{self.storage.root}/{result_path(operation_id, refused=refused)}"

    def earlier(self, request: JobRequest) -> JobResult | None:
        """The stored result of an earlier try that succeeded; a dry run has none.

        Raises:
            CommitError: OPERATION_ID_REUSED: it is of other work.
        """
        stored = None if request.dry_run else self.read(request.operation_id)
        if stored is None or stored.error is not None:
            return None
        require_same_work(request, stored)
        return stored

    @staticmethod
    def failed(request: JobRequest, error: JobError, metrics: Metrics = _NOTHING) -> JobResult:
        """The result of a request that failed."""
        result = OperationLog.ended(request, "failed", metrics)
        return replace(result, error=ErrorInfo.of(error))

    @staticmethod
    def ended(request: JobRequest, status: Status, metrics: Metrics) -> JobResult:
        """The result of a request that ended with ``status``."""
        return JobResult(
            operation_id=request.operation_id,
            status=status,
            target=str(request.target or ""),
            request_digest=request.digest(),
            metrics=metrics,
            try_number=request.origin.try_number,
            retries=request.origin.retries,
        )


def running_note(filesystem: pafs.FileSystem, text: str = "") -> bytes:
    """What is in the note of a running operation: ``text``, and room for the result."""
    return text.encode() + (_ROOM if has_folders(filesystem) else b"")


def _outdated(found: Sequence[pafs.FileInfo], now: datetime) -> list[str]:
    """The paths of results, notes and probes that no retry needs any more."""
    limit = now - RESULTS_KEPT
    return [
        info.path
        for info in found
        if is_memory(info.base_name) and info.mtime and info.mtime < limit
    ]


def _sweeps(operation_id: str) -> bool:
    """Whether this operation is one of those that look for outdated results."""
    return zlib.crc32(operation_id.encode()) % _OPERATIONS_PER_SWEEP == 0


def require_same_work(request: JobRequest, earlier: JobResult) -> None:
    """Check that ``earlier`` is an earlier try of the same work.

    Raises:
        CommitError: OPERATION_ID_REUSED.
    """
    differences = [
        text
        for differs, text in (
            (earlier.request_digest != request.digest(), "its statement or sources differ"),
            (earlier.retries != request.origin.retries, "its number of retries differs"),
            (
                earlier.try_number >= request.origin.try_number,
                f"it was try {earlier.try_number}, this is try {request.origin.try_number}",
            ),
        )
        if differs
    ]
    if differences:
        raise CommitError(
            ErrorCode.OPERATION_ID_REUSED,
            f"operation {request.operation_id} has already been done on {request.table}, "
            f"but {' and '.join(differences)}",
            "Use a new operation id for new work; in Airflow, clear the task.",
        )
