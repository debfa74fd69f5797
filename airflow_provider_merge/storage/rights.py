"""Whether this process's user may write in local folders."""

from __future__ import annotations

import os
from pathlib import Path

from airflow_provider_merge.storage.locations import is_local, local_path
from spark_jobs.contract.access_rights import denied, is_refused_write
from spark_jobs.contract.locations import Place
from spark_jobs.contract.unfinished_files import unfinished_name

_PROBE = "probe"


def require_writable(location: str, called: Place) -> None:
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
