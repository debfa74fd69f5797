"""Failures of the storage, and of what is stored there, as errors with a code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow_provider_merge.storage.locations import is_hdfs, is_local
from spark_jobs.contract.access_rights import CODES, denied
from spark_jobs.contract.locations import Place
from spark_jobs.errors import CatalogError, ErrorCode, InternalError


@contextmanager
def reaching(location: str, called: Place = "warehouse") -> Iterator[None]:
    """Within it, failures of the storage are errors with a code.

    ``called`` is the field of the catalog connection that names the location, or one above it.

    Raises:
        CatalogError: WAREHOUSE_ACCESS_DENIED, WORKSPACE_ACCESS_DENIED.
        InternalError: STORAGE_UNAVAILABLE.
    """
    try:
        yield
    except PermissionError as error:
        if is_local(location):
            raise denied(str(error), called) from None
        if is_hdfs(location):
            raise CatalogError(
                CODES[called],
                f"{location} does not let this worker in",
                "Give the worker's user (or HADOOP_USER_NAME, or its Kerberos ticket) the right.",
            ) from None
        raise CatalogError(
            CODES[called],
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


def unreadable(location: str, problem: str) -> CatalogError:
    """The error for metadata that cannot be understood."""
    return CatalogError(
        ErrorCode.METADATA_UNREADABLE,
        f"{location} {problem}",
        "Check the table with its own tools; the file may be damaged.",
    )
