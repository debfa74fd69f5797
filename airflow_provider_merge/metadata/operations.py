"""The result that a job leaves as ``<warehouse>/_operations/<operation id>.json``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from airflow_provider_merge.storage.files import (
    list_names,
    read_text,
    remove,
    remove_folder,
    write_text,
)
from airflow_provider_merge.storage.warehouse import require_folder
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.task_notes import note_name


def result_location(request: JobRequest, *, refused: bool = False) -> str:
    """Path or URI of the request's result.

    ``refused``: where a job stores its failure when an earlier one of the same id ended well; a dry
    run never does.
    """
    warehouse = request.catalog.warehouse.rstrip("/")
    if request.dry_run:
        return f"{warehouse}/_dry_run-{request.operation_id}/result.json"
    suffix = ".refused.json" if refused else ".json"
    return f"{warehouse}/_operations/{request.operation_id}{suffix}"


def read_result(request: JobRequest, storage_options: Mapping[str, Any]) -> JobResult | None:
    """The result of a job that ended well, of this try or an earlier one; None: there is none.

    Raises:
        CatalogError: METADATA_UNREADABLE.
        RequestError: the stored document can not be understood, or no file system of the
            warehouse's scheme is installed beside Airflow.
    """
    return _read(result_location(request), storage_options)


def read_result_of_try(request: JobRequest, storage_options: Mapping[str, Any]) -> JobResult | None:
    """The result that the job of this very try left; None: it left none.

    Raises:
        CatalogError, RequestError: as ``read_result``.
    """
    for refused in (True, False):
        result = _read(result_location(request, refused=refused), storage_options)
        if result is not None and result.try_number == request.origin.try_number:
            return result
    return None


def require_warehouse(request: JobRequest, storage_options: Mapping[str, Any]) -> None:
    """Check that the warehouse can be reached: else its job could not leave a result.

    Raises:
        CatalogError: WAREHOUSE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED.
        InternalError: STORAGE_UNAVAILABLE.
        RequestError: no file system of the warehouse's scheme is installed beside Airflow.
    """
    require_folder(request.catalog.warehouse, storage_options)


def store_result(
    request: JobRequest, result: JobResult, storage_options: Mapping[str, Any]
) -> None:
    """Store the result of a job that did not get to it.

    Raises:
        OSError: the storage refused.
    """
    write_text(result_location(request), result.to_json(), storage_options)


def remove_leftovers(request: JobRequest, storage_options: Mapping[str, Any]) -> None:
    """Remove the temporary files, among them rows of the source, of jobs that were killed.

    Everything that a dry run stored is temporary, its result too.

    Raises:
        OSError: the storage refused.
    """
    folder = result_location(request).rpartition("/")[0]
    if request.dry_run:
        remove_folder(folder, storage_options)
        return
    own = re.escape(request.operation_id)
    scratch = re.compile(f"{own}-[0-9a-f]{{32}}")
    half_stored = re.compile(rf"\.{own}(\.refused)?\.json\.[0-9a-f]{{32}}\.tmp")
    for name in list_names(folder, storage_options):
        if scratch.fullmatch(name):
            remove_folder(f"{folder}/{name}", storage_options)
        elif half_stored.fullmatch(name):
            remove(f"{folder}/{name}", storage_options)


def forget_tries(request: JobRequest, storage_options: Mapping[str, Any]) -> None:
    """Remove the note of the task's operations: the task has ended well.

    Raises:
        OSError: the storage refused.
    """
    name = note_name(request.origin)
    if name is not None:
        folder = result_location(request).rpartition("/")[0]
        remove(f"{folder}/{name}", storage_options)


def _read(location: str, storage_options: Mapping[str, Any]) -> JobResult | None:
    text = read_text(location, storage_options)
    return None if text is None else JobResult.from_json(text)
