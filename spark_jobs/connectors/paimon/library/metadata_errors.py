"""Tells damaged metadata from storage and servers that failed for now. Driver only."""

from __future__ import annotations

from spark_jobs.connectors.paimon.library.rest_catalog import server_error
from spark_jobs.errors import JobError
from spark_jobs.storage.file_errors import causes, file_error


def metadata_error(place: str, error: Exception) -> JobError:
    """What a failure of reading the metadata of ``place`` (a table or its directory) means.

    METADATA_UNREADABLE, unless storage or catalog failed for now: STORAGE_UNAVAILABLE; what a
    catalog's server refuses has its own codes.
    """
    for each in causes(error):
        refused = server_error(each)
        if refused is not None:
            return refused
    return file_error(place, error)
