"""Whether a driver on this worker, which runs as this process's user, may write where it must."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from airflow_provider_merge.hooks.catalog import CatalogHook
from airflow_provider_merge.storage.locations import is_local, local_path
from spark_jobs.contract.access_rights import denied, is_refused_write
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.inserts import PartitionStatement
from spark_jobs.contract.locations import Place
from spark_jobs.contract.operation_files import FOLDER, unfinished_name
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.statements import RowStatement
from spark_jobs.errors import JobError

_PROBE = "probe"


def require_rights(asked: Sequence[tuple[JobRequest, CatalogHook]]) -> None:
    """Check the local folders in which the driver makes files, whatever the statements find.

    Only tasks know in which folders of a table they write.

    Raises:
        CatalogError: WORKSPACE_ACCESS_DENIED, WAREHOUSE_ACCESS_DENIED.
    """
    for request, hook in asked:
        require_workspace_rights(request)
        if is_local(request.catalog.workspace_location) and _publishes(request):
            for folder in _published_folders(request, hook):
                _require_writable(folder, "warehouse")


def require_workspace_rights(request: JobRequest) -> None:
    """Check the workspace alone.

    Raises:
        CatalogError: WORKSPACE_ACCESS_DENIED.
    """
    workspace = request.catalog.workspace_location
    # A dry run makes a folder of its own.
    _require_writable(workspace if request.dry_run else f"{workspace}/{FOLDER}", "workspace")


def _publishes(request: JobRequest) -> bool:
    """Whether the job makes files in the table for certain, unless another statement fails."""
    # What an earlier try has committed needs no right any more.
    if request.dry_run or request.origin.try_number > 1:
        return False
    return isinstance(request.statement, RowStatement | PartitionStatement | CompactSpec)


def _published_folders(request: JobRequest, hook: CatalogHook) -> Sequence[str]:
    try:
        return hook.table(request.table).published_folders
    except (JobError, OSError):
        return ()  # the job tells, or an earlier statement makes the table


def _require_writable(location: str, called: Place) -> None:
    """Check that files can be made in a local folder, or in that which it would be made in.

    Who has the right writes nothing here. A refusal is believed only after a try: some file systems
    know more rights than they tell. What is not local is not looked at.

    Raises:
        CatalogError: WAREHOUSE_ACCESS_DENIED, WORKSPACE_ACCESS_DENIED.
    """
    if not is_local(location):
        return
    folder = _existing(local_path(location))
    if os.access(folder, os.W_OK | os.X_OK):
        return
    try:
        probe = folder / unfinished_name(_PROBE)
        probe.touch()
        probe.unlink()
    except OSError as error:
        if is_refused_write(error):
            raise denied(f"write in {folder}: {error.strerror}", called) from error


def _existing(folder: Path) -> Path:
    """The folder, or the closest one above it that exists, as far as this user can see."""
    return next((each for each in (folder, *folder.parents) if os.path.lexists(each)), folder)
