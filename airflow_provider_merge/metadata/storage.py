"""Small files of a warehouse on the Airflow side: local paths, or URIs through fsspec."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from airflow_provider_merge.exceptions import invalid
from spark_jobs.errors import CatalogError, ErrorCode

MAX_BYTES = 4 * 1024 * 1024


def is_local(location: str) -> bool:
    """True for a plain path and for ``file:`` URIs."""
    return "://" not in location or location.startswith("file:")


def local_path(location: str) -> Path:
    """The path behind a plain path or a ``file:`` URI."""
    return Path(unquote(urlsplit(location).path) if "://" in location else location)


def read_text(location: str, storage_options: Mapping[str, Any]) -> str | None:
    """The text of a file; None where there is none.

    Raises:
        CatalogError: METADATA_UNREADABLE: larger than ``MAX_BYTES``, or not UTF-8.
        RequestError: no file system of the location's scheme is installed beside Airflow.
    """
    try:
        if is_local(location):
            with local_path(location).open("rb") as file:
                content = file.read(MAX_BYTES + 1)
        else:
            with _filesystem(location, storage_options).open(location, "rb") as file:
                content = bytes(file.read(MAX_BYTES + 1))
        if len(content) > MAX_BYTES:
            raise unreadable(location, f"is larger than {MAX_BYTES} bytes")
        return content.decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise unreadable(location, "is not UTF-8 text") from None


def list_names(folder: str, storage_options: Mapping[str, Any]) -> list[str]:
    """The names of a folder's files and folders; empty where there is no such folder.

    Raises:
        RequestError: no file system of the location's scheme is installed beside Airflow.
    """
    try:
        if is_local(folder):
            return [path.name for path in local_path(folder).iterdir()]
        paths = _filesystem(folder, storage_options).ls(folder, detail=False)
        return [str(path).rstrip("/").rpartition("/")[2] for path in paths]
    except FileNotFoundError:
        return []


def write_text(location: str, text: str, storage_options: Mapping[str, Any]) -> None:
    """Make a file, with its folder, or replace it: readers see the whole text or none.

    Raises:
        OSError: the storage refused.
        RequestError: no file system of the location's scheme is installed beside Airflow.
    """
    if is_local(location):
        path = local_path(location)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    else:
        _filesystem(location, storage_options).pipe_file(location, text.encode())


def remove(location: str, storage_options: Mapping[str, Any]) -> None:
    """Remove a file, if it is there.

    Raises:
        OSError: the storage refused.
        RequestError: no file system of the location's scheme is installed beside Airflow.
    """
    try:
        if is_local(location):
            local_path(location).unlink()
        else:
            _filesystem(location, storage_options).rm_file(location)
    except FileNotFoundError:
        return


def remove_folder(location: str, storage_options: Mapping[str, Any]) -> None:
    """Remove a folder with all that is in it, if it is there.

    Raises:
        OSError: the storage refused.
        RequestError: no file system of the location's scheme is installed beside Airflow.
    """
    try:
        if is_local(location):
            shutil.rmtree(local_path(location))
        else:
            _filesystem(location, storage_options).rm(location, recursive=True)
    except FileNotFoundError:
        return


def unreadable(location: str, problem: str) -> CatalogError:
    """The error for metadata that can not be understood."""
    return CatalogError(
        ErrorCode.METADATA_UNREADABLE,
        f"{location} {problem}",
        "Check the table with its own tools; the file may be damaged.",
    )


def _filesystem(location: str, storage_options: Mapping[str, Any]) -> Any:
    import fsspec  # type: ignore[import-untyped]

    scheme = location.partition("://")[0]
    try:
        return fsspec.filesystem(scheme, **storage_options)
    except (ImportError, ValueError) as error:
        raise invalid(
            "warehouse",
            f"Airflow can not open {scheme}://: {error}",
            "Install the fsspec file system of that scheme (for s3: s3fs) beside Airflow.",
        ) from error
