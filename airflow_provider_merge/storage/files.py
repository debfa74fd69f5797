"""Small files on the Airflow side: read whole, written whole, listed and removed."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, BinaryIO

from airflow_provider_merge.storage.failures import unreadable
from airflow_provider_merge.storage.locations import is_hdfs, is_local, local_path
from airflow_provider_merge.storage.remote import remote_files
from spark_jobs.contract.operation_files import unfinished_name

MAX_BYTES = 4 * 1024 * 1024


def read_text(location: str, storage_options: Mapping[str, Any]) -> str | None:
    """The text of a file; None where there is none.

    Raises:
        CatalogError: METADATA_UNREADABLE: larger than ``MAX_BYTES``, not UTF-8, or no regular file.
        RequestError: no file system of the location's scheme is installed beside Airflow.
    """
    content = read_bytes(location, storage_options, MAX_BYTES)
    try:
        return None if content is None else content.decode("utf-8")
    except UnicodeDecodeError:
        raise unreadable(location, "is not UTF-8 text") from None


def read_bytes(location: str, storage_options: Mapping[str, Any], limit: int) -> bytes | None:
    """The content of a file; None where there is none.

    Raises:
        CatalogError: METADATA_UNREADABLE: larger than ``limit`` bytes, or no regular file.
        RequestError: no file system of the location's scheme is installed beside Airflow.
    """
    try:
        if is_local(location):
            with open_local(location) as file:
                content = file.read(limit + 1)
        else:
            with (
                remote_files(location, storage_options) as remote,
                remote.open(location, "rb") as file,
            ):
                content = bytes(file.read(limit + 1))
    except FileNotFoundError:
        return None
    if len(content) > limit:
        raise unreadable(location, f"is larger than {limit} bytes")
    return content


def modified(location: str, storage_options: Mapping[str, Any]) -> datetime | None:
    """When a file last changed, in UTC, as its store says; None where there is none.

    Raises:
        RequestError: no file system of the location's scheme is installed beside Airflow.
    """
    try:
        if is_local(location):
            return datetime.fromtimestamp(local_path(location).stat().st_mtime, UTC)
        with remote_files(location, storage_options) as remote:
            told: datetime = remote.modified(location)
    except FileNotFoundError:
        return None
    return told if told.tzinfo else told.replace(tzinfo=UTC)


def open_local(location: str) -> BinaryIO:
    """Open a local file for reading; a pipe or a device, on which a reader could wait, is refused.

    Raises:
        CatalogError: METADATA_UNREADABLE: no regular file.
        OSError: it cannot be opened.
    """
    # Without O_NONBLOCK, the opening itself would wait for a pipe's writer.
    descriptor = os.open(local_path(location), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISREG(kind):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(f"{location} is a folder")
    raise unreadable(location, "is not a regular file")


def list_names(folder: str, storage_options: Mapping[str, Any]) -> list[str]:
    """The names of a folder's files and folders; empty where there is no such folder.

    Raises:
        RequestError: no file system of the location's scheme is installed beside Airflow.
    """
    try:
        if is_local(folder):
            return [path.name for path in local_path(folder).iterdir()]
        with remote_files(folder, storage_options) as remote:
            paths = remote.ls(folder, detail=False)
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
        temporary = path.with_name(unfinished_name(path.name))
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    else:
        with remote_files(location, storage_options) as remote:
            if not is_hdfs(location):
                # The object appears when all of it is there.
                remote.pipe_file(location, text.encode())
                return
            folder, _, name = location.rpartition("/")
            hidden = f"{folder}/{unfinished_name(name)}"
            remote.pipe_file(hidden, text.encode())
            remote.mv(hidden, location, overwrite=True)


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
            with remote_files(location, storage_options) as remote:
                remote.rm_file(location)
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
            with remote_files(location, storage_options) as remote:
                remote.rm(location, recursive=True)
    except FileNotFoundError:
        return
