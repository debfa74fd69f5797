"""Small files of a warehouse on the Airflow side: local paths, or URIs through fsspec."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from airflow_provider_merge.exceptions import invalid
from spark_jobs.contract.hdfs_options import PACKAGE as HDFS_PACKAGE
from spark_jobs.contract.hdfs_options import SCHEME as HDFS
from spark_jobs.contract.locations import Place
from spark_jobs.contract.unfinished_files import unfinished_name
from spark_jobs.errors import CatalogError, ErrorCode, InternalError

MAX_BYTES = 4 * 1024 * 1024


def is_local(location: str) -> bool:
    """True for a plain path, which is absolute, and for ``file:`` URIs."""
    return location.startswith(("/", "file:")) or "://" not in location


def local_path(location: str) -> Path:
    """The path behind a plain path or a ``file:`` URI; only in a URI anything is encoded."""
    is_uri = location.startswith("file:")
    return Path(unquote(urlsplit(location).path) if is_uri else location)


def child(folder: str, name: str) -> str:
    """The location of ``name``, in which nothing is encoded, in ``folder``."""
    part = quote(name, safe="") if folder.startswith("file:") else name
    return f"{folder.rstrip('/')}/{part}"


def read_text(location: str, storage_options: Mapping[str, Any]) -> str | None:
    """The text of a file; None where there is none.

    Raises:
        CatalogError: METADATA_UNREADABLE: larger than ``MAX_BYTES``, or not UTF-8.
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
        CatalogError: METADATA_UNREADABLE: larger than ``limit`` bytes.
        RequestError: no file system of the location's scheme is installed beside Airflow.
    """
    try:
        if is_local(location):
            with local_path(location).open("rb") as file:
                content = file.read(limit + 1)
        else:
            with _remote(location, storage_options) as remote, remote.open(location, "rb") as file:
                content = bytes(file.read(limit + 1))
    except FileNotFoundError:
        return None
    if len(content) > limit:
        raise unreadable(location, f"is larger than {limit} bytes")
    return content


def list_names(folder: str, storage_options: Mapping[str, Any]) -> list[str]:
    """The names of a folder's files and folders; empty where there is no such folder.

    Raises:
        RequestError: no file system of the location's scheme is installed beside Airflow.
    """
    try:
        if is_local(folder):
            return [path.name for path in local_path(folder).iterdir()]
        with _remote(folder, storage_options) as remote:
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
        with _remote(location, storage_options) as remote:
            if not _is_hdfs(location):
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
            with _remote(location, storage_options) as remote:
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
            with _remote(location, storage_options) as remote:
                remote.rm(location, recursive=True)
    except FileNotFoundError:
        return


def unreadable(location: str, problem: str) -> CatalogError:
    """The error for metadata that can not be understood."""
    return CatalogError(
        ErrorCode.METADATA_UNREADABLE,
        f"{location} {problem}",
        "Check the table with its own tools; the file may be damaged.",
    )


def require_folder(
    warehouse: str, storage_options: Mapping[str, Any], called: Place = "warehouse"
) -> None:
    """Check that a warehouse can be reached: a folder, or the bucket of a URI.

    ``called`` is the field of the catalog connection that names it.

    Raises:
        CatalogError: WAREHOUSE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED.
        InternalError: STORAGE_UNAVAILABLE.
        RequestError: no file system of the warehouse's scheme is installed beside Airflow.
    """
    if _is_hdfs(warehouse):
        _require_folder_in_hdfs(warehouse, storage_options, called)
    elif not is_local(warehouse):
        require_bucket(warehouse, storage_options, called)
    elif not local_path(warehouse).is_dir():
        raise CatalogError(
            ErrorCode.WAREHOUSE_NOT_FOUND,
            f"the {called} {warehouse} is not a folder that this worker can see",
            f"Create it, or correct the {called} of the catalog connection.",
        )


def _require_folder_in_hdfs(
    warehouse: str, storage_options: Mapping[str, Any], called: Place
) -> None:
    found = None
    with (
        reaching(warehouse),
        suppress(FileNotFoundError),
        _remote(warehouse, storage_options) as remote,
    ):
        found = remote.info(warehouse)["type"]
    if found == "directory":
        return
    raise CatalogError(
        ErrorCode.WAREHOUSE_NOT_FOUND,
        f"there is no folder {warehouse}",
        f"Create it, or correct the {called} of the catalog connection.",
    )


@contextmanager
def reaching(location: str) -> Iterator[None]:
    """Within it, failures of the storage are errors with a code.

    Raises:
        CatalogError: WAREHOUSE_ACCESS_DENIED.
        InternalError: STORAGE_UNAVAILABLE.
    """
    try:
        yield
    except PermissionError:
        if _is_hdfs(location):
            raise CatalogError(
                ErrorCode.WAREHOUSE_ACCESS_DENIED,
                f"{location} does not let this worker in",
                "Give the worker's user (or HADOOP_USER_NAME, or its Kerberos ticket) the right.",
            ) from None
        raise CatalogError(
            ErrorCode.WAREHOUSE_ACCESS_DENIED,
            f"{location} does not let this worker in",
            "Correct access key (login) and secret key (password) of the catalog connection; where "
            "it has none, give this machine a role.",
        ) from None
    except OSError as error:
        raise InternalError(
            ErrorCode.STORAGE_UNAVAILABLE,
            str(error),
            "Check endpoint and region of the catalog connection, and the network from here.",
        ) from error


def require_bucket(
    location: str, storage_options: Mapping[str, Any], called: Place = "warehouse"
) -> None:
    """Check that the bucket, or the host, of a location that is not local can be reached.

    Raises:
        CatalogError: WAREHOUSE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED.
        InternalError: STORAGE_UNAVAILABLE.
        RequestError: no file system of the location's scheme is installed beside Airflow.
    """
    scheme, _, rest = location.partition("://")
    bucket = f"{scheme}://{rest.partition('/')[0]}"
    try:
        with reaching(bucket), _remote(bucket, storage_options) as remote:
            remote.info(bucket)
    except InternalError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        raise CatalogError(
            ErrorCode.WAREHOUSE_NOT_FOUND,
            f"there is no bucket {bucket}",
            f"Correct {called} or endpoint of the catalog connection, or create the bucket.",
        ) from None


@contextmanager
def _remote(location: str, storage_options: Mapping[str, Any]) -> Iterator[Any]:
    """The file system of a location, all of whose failures are OSErrors.

    Raises:
        RequestError: no file system of the location's scheme is installed beside Airflow.
    """
    filesystem = _filesystem(location, storage_options)
    try:
        yield filesystem
    except OSError:
        raise
    except Exception as error:
        if "AccessControlException" in str(error):
            raise PermissionError(f"{location} may not be read or written") from error
        # A client's own exceptions; their texts may tell more than the place.
        raise OSError(f"{location} can not be reached ({type(error).__name__})") from error


def _filesystem(location: str, storage_options: Mapping[str, Any]) -> Any:
    import fsspec  # type: ignore[import-untyped]

    scheme = location.partition("://")[0]
    try:
        if scheme == HDFS:
            _require_hdfs_client(fsspec.get_filesystem_class(scheme))
        return fsspec.filesystem(scheme, **storage_options)
    except (ImportError, ValueError) as error:
        raise invalid(
            "warehouse",
            f"Airflow can not open {scheme}://: {error}",
            "Install the fsspec file system of that scheme (for s3: s3fs) beside Airflow.",
        ) from error


def _require_hdfs_client(found: type) -> None:
    """Refuse fsspec's own file system, which needs Java and Hadoop's native library."""
    if not found.__module__.startswith("hdfs_native"):
        raise invalid(
            "warehouse",
            "Airflow can not open hdfs://: the package hdfs-native is not installed beside it",
            f'Install it: pip install "{HDFS_PACKAGE}". The driver and the executors need it too.',
        )


def _is_hdfs(location: str) -> bool:
    return location.startswith(f"{HDFS}://")
