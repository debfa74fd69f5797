"""The result that a job leaves as ``<workspace>/_operations/<operation id>.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_merge.storage.failures import reaching, unreadable
from airflow_provider_merge.storage.files import (
    list_names,
    read_text,
    remove,
    remove_folder,
    write_text,
)
from airflow_provider_merge.storage.locations import is_local
from airflow_provider_merge.storage.warehouse import require_folder
from spark_jobs.contract.locations import Place
from spark_jobs.contract.operation_files import (
    FOLDER,
    dry_run_result_path,
    fence_path,
    is_scratch_of,
    is_unfinished_result_of,
    new_clock_name,
    note_file,
    note_text,
    noted_operations,
    result_path,
    running_path,
)
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult


def result_location(request: JobRequest, *, refused: bool = False) -> str:
    """Path or URI of the request's result.

    ``refused``: where a job stores its failure when an earlier one of the same id ended well; a dry
    run never does.
    """
    workspace = request.catalog.workspace_location
    if request.dry_run:
        return f"{workspace}/{dry_run_result_path(request.operation_id)}"
    return f"{workspace}/{result_path(request.operation_id, refused=refused)}"


def read_result(request: JobRequest, storage_options: Mapping[str, Any]) -> JobResult | None:
    """The result of a job that ended well, of this try or an earlier one; None: there is none.

    Raises:
        CatalogError: METADATA_UNREADABLE, WORKSPACE_ACCESS_DENIED.
        InternalError: STORAGE_UNAVAILABLE.
        RequestError: the stored document cannot be understood, or no file system of the
            workspace's scheme is installed beside Airflow.
    """
    return _read(result_location(request), storage_options)


def read_result_of_try(request: JobRequest, storage_options: Mapping[str, Any]) -> JobResult | None:
    """The result that the job of this very try left; None: it left none.

    Raises:
        JobError: as ``read_result``.
    """
    for refused in (True, False):
        result = _read(result_location(request, refused=refused), storage_options)
        if result is not None and result.try_number == request.origin.try_number:
            return result
    return None


def require_workspace(request: JobRequest, storage_options: Mapping[str, Any]) -> None:
    """Check that the workspace can be reached: else its job could not leave a result.

    Raises:
        CatalogError: WAREHOUSE_NOT_FOUND, WORKSPACE_ACCESS_DENIED.
        InternalError: STORAGE_UNAVAILABLE.
        RequestError: no file system of the workspace's scheme is installed beside Airflow.
    """
    catalog = request.catalog
    called: Place = "warehouse" if catalog.workspace is None else "workspace"
    require_folder(catalog.workspace or catalog.warehouse, storage_options, called)


def require_open(request: JobRequest, storage_options: Mapping[str, Any]) -> None:
    """Check that the key of the workspace's store may write there, by a file that is removed again.

    A local folder is not tried: the rights of this worker's user need not be those of the driver's.

    Raises:
        CatalogError: WORKSPACE_ACCESS_DENIED.
        InternalError: STORAGE_UNAVAILABLE.
    """
    workspace = request.catalog.workspace_location
    if is_local(workspace):
        return
    probe = f"{workspace}/{FOLDER}/{new_clock_name()}"
    with reaching(workspace, "workspace"):
        write_text(probe, "", storage_options)
        remove(probe, storage_options)


def store_result(
    request: JobRequest, result: JobResult, storage_options: Mapping[str, Any]
) -> None:
    """Store the result of a job that did not get to it.

    Raises:
        OSError: the storage refused.
    """
    write_text(result_location(request), result.to_json(), storage_options)


def remove_result(request: JobRequest, storage_options: Mapping[str, Any]) -> None:
    """Remove the result of a job that ended well.

    Raises:
        OSError: the storage refused.
    """
    remove(result_location(request), storage_options)


def remove_leftovers(request: JobRequest, storage_options: Mapping[str, Any]) -> None:
    """Remove the temporary files, among them rows of the source, of jobs that were killed.

    Those of later tries stay. Everything that a dry run stored is temporary, its result too.

    Raises:
        OSError: the storage refused.
    """
    folder = result_location(request).rpartition("/")[0]
    if request.dry_run:
        remove_folder(folder, storage_options)
        return
    for name in list_names(folder, storage_options):
        if is_scratch_of(request.operation_id, name, request.origin.try_number):
            remove_folder(f"{folder}/{name}", storage_options)
        elif is_unfinished_result_of(request.operation_id, name):
            remove(f"{folder}/{name}", storage_options)
    running = running_path(request.operation_id)
    remove(f"{request.catalog.workspace_location}/{running}", storage_options)


def shut_out(request: JobRequest, storage_options: Mapping[str, Any]) -> None:
    """Let no driver of this try, or of an earlier one, begin or publish anything any more.

    A dry run publishes nothing.

    Raises:
        OSError: the storage refused.
    """
    if request.dry_run:
        return
    workspace = request.catalog.workspace_location
    for number in range(request.origin.try_number, 0, -1):
        path = fence_path(request.operation_id, number)
        write_text(f"{workspace}/{path}", "", storage_options)


def note_operation(request: JobRequest, storage_options: Mapping[str, Any]) -> None:
    """Note the task's operation, as its driver would: the driver may begin long after this.

    Raises:
        CatalogError: METADATA_UNREADABLE.
        OSError: the storage refused.
    """
    note = None if request.dry_run else note_file(request.origin)
    if note is None:
        return
    location = f"{request.catalog.workspace_location}/{note}"
    text = read_text(location, storage_options)
    try:
        noted = [] if text is None else noted_operations(text)
    except ValueError as error:
        raise unreadable(location, f"does not name operations: {error}") from error
    if request.operation_id not in noted:
        write_text(location, note_text([*noted, request.operation_id]), storage_options)


def forget_tries(request: JobRequest, storage_options: Mapping[str, Any]) -> None:
    """Remove the note of the task's operations: the task has ended well.

    Raises:
        OSError: the storage refused.
    """
    note = note_file(request.origin)
    if note is not None:
        remove(f"{request.catalog.workspace_location}/{note}", storage_options)


def _read(location: str, storage_options: Mapping[str, Any]) -> JobResult | None:
    with reaching(location, "workspace"):
        text = read_text(location, storage_options)
    return None if text is None else JobResult.from_json(text)
