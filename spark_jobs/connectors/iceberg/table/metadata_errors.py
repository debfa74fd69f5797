"""Failures to read a table's metadata as errors of the job. Driver only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from spark_jobs.connectors.iceberg.table.manifests import EncryptedError
from spark_jobs.errors import JobError, NotSupportedError
from spark_jobs.storage.file_errors import file_error


@contextmanager
def reading_metadata(place: str) -> Iterator[None]:
    """Turn every failure to read metadata of ``place`` within this context into a ``JobError``.

    Raises:
        CatalogError: METADATA_UNREADABLE.
        InternalError: STORAGE_UNAVAILABLE.
        NotSupportedError: a file is encrypted.
    """
    try:
        yield
    except JobError:
        raise
    except EncryptedError:
        raise NotSupportedError(
            f"{place} has encrypted files, which cannot be read.",
            "Use the engine that has the table's keys.",
        ) from None
    except Exception as error:
        raise file_error(place, error) from error
