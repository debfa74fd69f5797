"""What is known of a source of files without reading them."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path
from typing import Final

from airflow_provider_merge.sql.schemas import columns_of_schema
from airflow_provider_merge.storage.locations import local_path
from spark_jobs.contract.locations import FILE_SCHEME, scheme_of
from spark_jobs.contract.request import FileSource
from spark_jobs.errors import CatalogError, ErrorCode

# Hadoop's globs; Python's glob does not know the last three.
_GLOB: Final = re.compile(r"[*?\[{\\]")
_OTHER_GLOB: Final = re.compile(r"[{\\]|\[\^")
_MOST_FOLDERS: Final = 1_000


def require_files(source: FileSource, label: str) -> None:
    """Check that there are local files of a source; files elsewhere are not looked for.

    Raises:
        CatalogError: SOURCE_NOT_FOUND.
    """
    paths = _matches(source.path)
    if paths is None:
        return
    if not paths:
        what = "no file matches" if _GLOB.search(source.path) else "there is no file or folder"
        raise _missing(label, f"{what} {source.path}")
    if not source.is_incremental and not any(map(_may_hold_files, paths)):
        raise _missing(label, f"{source.path} holds no files")


def file_columns(source: FileSource) -> dict[str, str] | None:
    """The columns that a source is read with, name → type; None: the files tell them.

    Folders such as ``day=2026-01-31`` are columns, too.
    """
    paths = _matches(source.path)
    if not source.schema or not paths:
        return None
    if not all(path.is_file() or _has_plain_folders(path) for path in paths):
        return None
    return columns_of_schema(source.schema)


def _matches(location: str) -> list[Path] | None:
    """The files and folders of a local path or glob; None: it is not local, or not understood."""
    is_local = scheme_of(location) == FILE_SCHEME and (location.startswith(("/", "file:")))
    if not is_local or _OTHER_GLOB.search(location):
        return None
    path = local_path(location)
    if not _GLOB.search(location):
        return [path] if path.exists() else []
    # Hadoop's patterns match hidden names, too.
    found = glob.glob(str(path), include_hidden=True)  # noqa: PTH207 - its pattern is absolute
    return [Path(each) for each in found]


def _may_hold_files(path: Path) -> bool:
    """Whether Spark finds files there; it ignores most whose names start with _ or a dot."""
    if path.is_file():
        return True
    for number, (_, _, files) in enumerate(os.walk(path)):
        if number == _MOST_FOLDERS or any(map(_may_be_data, files)):
            return True
    return False


def _may_be_data(name: str) -> bool:
    return not name.startswith(("_", ".")) or "=" in name


def _has_plain_folders(path: Path) -> bool:
    for number, (_, folders, _) in enumerate(os.walk(path)):
        if number == _MOST_FOLDERS or any("=" in name for name in folders):
            return False
    return True


def _missing(label: str, problem: str) -> CatalogError:
    return CatalogError(
        ErrorCode.SOURCE_NOT_FOUND,
        f"{label}: {problem}",
        "Correct the path; a file that comes late is found by a retry.",
    )
