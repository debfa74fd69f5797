"""Distinguishes damaged metadata from temporary failures of storage and servers. Driver only."""

from __future__ import annotations

from spark_jobs.connectors.paimon.library.rest_catalog import server_error
from spark_jobs.errors import JobError
from spark_jobs.storage.file_errors import causes, file_error


def metadata_error(place: str, error: Exception) -> JobError:
    """The job's error for a failure to read the metadata of ``place``, a table or its directory.

    METADATA_UNREADABLE, or STORAGE_UNAVAILABLE if the storage or catalog failed temporarily.
    Refusals of a catalog's server have their own codes.
    """
    for each in causes(error):
        refused = server_error(each)
        if refused is not None:
            return refused
    return file_error(place, error)
