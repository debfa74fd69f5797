"""Temporary files, including source rows, of jobs that were killed and never tried again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow.fs as pafs

from spark_jobs.contract.durations import parse_limit
from spark_jobs.contract.operation_files import ABANDONED_AFTER, FOLDER, is_dry_run, is_scratch
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.errors import ErrorCode, InternalError
from spark_jobs.storage.clock import StoreClock

if TYPE_CHECKING:
    from spark_jobs.contract.maintenance import MaintenanceReport
    from spark_jobs.spi.storage import WarehouseStorage


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Scratch folders of abandoned runs: sizes in bytes, by path relative to the workspace."""

    storage: WarehouseStorage
    folders: Mapping[str, int]

    def remove(self) -> None:
        """End the runs' leases, in case a run is still alive, and remove the folders.

        Raises:
            InternalError: STORAGE_UNAVAILABLE; some folders may be left.
        """
        log = OperationLog(self.storage)
        for folder in self.folders:
            try:
                log.clear(folder)
            except OSError as error:
                raise _unavailable(folder, error) from error

    def added_to(self, report: MaintenanceReport) -> MaintenanceReport:
        """``report``, of a search for orphan files, with these folders added."""
        return replace(
            report,
            leftovers=len(self.folders),
            bytes_removed=report.bytes_removed + sum(self.folders.values()),
        )


def leftovers_of(
    storage: WarehouseStorage,
    older_than: str,
    clock: Callable[[], datetime] | None = None,
    more: Iterable[str] = (),
) -> Leftovers:
    """The scratch folders in the workspace into which nothing was stored after a limit.

    ``older_than``: as in ``RemoveOrphanFilesSpec``; ``clock`` None: that of the workspace's store.
    ``more``: other folders that nobody needs any more, if they are as old.

    Folders that may belong to a running job are not among them, however late the limit is.

    Raises:
        InternalError: STORAGE_UNAVAILABLE.
    """
    try:
        folders = [*_scratch_folders(storage), *more]
        if not folders:
            return Leftovers(storage, {})
        now = (clock or StoreClock(storage.filesystem, f"{storage.root}/{FOLDER}").now)()
        before = min(parse_limit(older_than, now), now - ABANDONED_AFTER)
        sizes = {folder: _abandoned_size(storage, folder, before) for folder in folders}
    except OSError as error:
        raise _unavailable(FOLDER, error) from error
    found = {folder: size for folder, size in sizes.items() if size is not None}
    return Leftovers(storage, found)


def _scratch_folders(storage: WarehouseStorage) -> list[str]:
    """The folders of runs, killed or not, and of dry runs; relative to the workspace."""
    operations = _subfolders(storage, f"{storage.root}/{FOLDER}")
    runs = [f"{FOLDER}/{name}" for name in operations if is_scratch(name)]
    others = _subfolders(storage, storage.root)
    return runs + [name for name in others if is_dry_run(name)]


def _abandoned_size(storage: WarehouseStorage, folder: str, before: datetime) -> int | None:
    """Bytes in a folder; None if anything was stored in it after ``before``."""
    path = f"{storage.root}/{folder}"
    inside = pafs.FileSelector(path, recursive=True, allow_not_found=True)
    infos = storage.filesystem.get_file_info(inside)
    # Object stores keep no times of folders; an empty folder there has lost its lease.
    times = [each.mtime for each in (storage.filesystem.get_file_info(path), *infos) if each.mtime]
    if max(times, default=before) > before:
        return None
    return sum(each.size or 0 for each in infos if each.type == pafs.FileType.File)


def _subfolders(storage: WarehouseStorage, folder: str) -> list[str]:
    infos = storage.filesystem.get_file_info(pafs.FileSelector(folder, allow_not_found=True))
    return sorted(each.base_name for each in infos if each.type == pafs.FileType.Directory)


def _unavailable(folder: str, error: OSError) -> InternalError:
    return InternalError(
        ErrorCode.STORAGE_UNAVAILABLE,
        f"Temporary files below {folder} could not be looked at or removed: {error}",
        "Check the storage and the right to delete there, then run it again: it goes on there.",
    )
