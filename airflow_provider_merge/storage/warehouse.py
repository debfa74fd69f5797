"""Whether a warehouse is there and can be reached."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from airflow_provider_merge.storage.failures import reaching
from airflow_provider_merge.storage.locations import is_hdfs, is_local, local_path
from airflow_provider_merge.storage.remote import remote_files
from spark_jobs.contract.locations import Place
from spark_jobs.errors import CatalogError, ErrorCode, InternalError


def require_folder(
    warehouse: str, storage_options: Mapping[str, Any], called: Place = "warehouse"
) -> None:
    """Check that a warehouse can be reached: a folder, or the bucket of a URI.

    ``called`` is the field of the catalog connection that names it.

    Raises:
        CatalogError: WAREHOUSE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED, WORKSPACE_ACCESS_DENIED.
        InternalError: STORAGE_UNAVAILABLE.
        RequestError: no file system of the warehouse's scheme is installed beside Airflow.
    """
    if is_hdfs(warehouse):
        _require_folder_in_hdfs(warehouse, storage_options, called)
    elif not is_local(warehouse):
        require_bucket(warehouse, storage_options, called)
    elif not _is_local_folder(warehouse, called):
        raise CatalogError(
            ErrorCode.WAREHOUSE_NOT_FOUND,
            f"the {called} {warehouse} is not a folder that this worker can see",
            f"Create it, or correct the {called} of the catalog connection.",
        )


def _is_local_folder(location: str, called: Place) -> bool:
    with reaching(location, called):
        return local_path(location).is_dir()


def _require_folder_in_hdfs(
    warehouse: str, storage_options: Mapping[str, Any], called: Place
) -> None:
    found = None
    with (
        reaching(warehouse, called),
        suppress(FileNotFoundError),
        remote_files(warehouse, storage_options) as remote,
    ):
        found = remote.info(warehouse)["type"]
    if found == "directory":
        return
    raise CatalogError(
        ErrorCode.WAREHOUSE_NOT_FOUND,
        f"there is no folder {warehouse}",
        f"Create it, or correct the {called} of the catalog connection.",
    )


def require_bucket(
    location: str, storage_options: Mapping[str, Any], called: Place = "warehouse"
) -> None:
    """Check that the bucket, or the host, of a location that is not local can be reached.

    Raises:
        CatalogError: WAREHOUSE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED, WORKSPACE_ACCESS_DENIED.
        InternalError: STORAGE_UNAVAILABLE.
        RequestError: no file system of the location's scheme is installed beside Airflow.
    """
    scheme, _, rest = location.partition("://")
    bucket = f"{scheme}://{rest.partition('/')[0]}"
    try:
        with reaching(bucket, called), remote_files(bucket, storage_options) as remote:
            remote.info(bucket)
    except InternalError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        raise CatalogError(
            ErrorCode.WAREHOUSE_NOT_FOUND,
            f"there is no bucket {bucket}",
            f"Correct {called} or endpoint of the catalog connection, or create the bucket.",
        ) from None
