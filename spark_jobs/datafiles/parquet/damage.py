"""Tells files that cannot be read from failures of the storage. Runs on executors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from spark_jobs.avro.container import AvroDamagedError
from spark_jobs.datafiles.parquet.thrift import ThriftError
from spark_jobs.errors import CatalogError, ErrorCode

_LONGEST_TEXT = 500


@contextmanager
def reading_file(path: str) -> Iterator[None]:
    """Turn the errors of a missing or damaged file into DATA_FILE_UNREADABLE.

    Failures of the storage are raised unchanged, since they may be temporary.

    Raises:
        CatalogError: DATA_FILE_UNREADABLE, naming the file.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise _unreadable(path, "it is missing") from error
    except OSError as error:
        # pyarrow raises OSError for damaged content, too, but without an errno.
        is_of_storage = isinstance(error, ConnectionError | TimeoutError | PermissionError)
        if is_of_storage or error.errno is not None or "AWS Error" in str(error):
            raise
        raise _unreadable(path, str(error)) from error
    except MemoryError as error:
        raise _unreadable(path, f"it does not fit into memory: {error}") from error
    except (pa.ArrowException, AvroDamagedError, ThriftError, UnicodeDecodeError) as error:
        raise _unreadable(path, str(error)) from error


def _unreadable(path: str, problem: str) -> CatalogError:
    return CatalogError(
        ErrorCode.DATA_FILE_UNREADABLE,
        f"a file is missing or damaged: {path}: {problem[:_LONGEST_TEXT]}",
        "Look for who removed or changed it; nothing was changed by this statement.",
    )
