"""Files that cannot be read: told apart from storage that fails. Runs on executors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from spark_jobs.datafiles.parquet.thrift import ThriftError
from spark_jobs.errors import CatalogError, ErrorCode

_LONGEST_TEXT = 500


@contextmanager
def reading_file(path: str) -> Iterator[None]:
    """Within it, what a missing or damaged file brings about is DATA_FILE_UNREADABLE.

    Failures of the storage come out as they are: they may pass.

    Raises:
        CatalogError: DATA_FILE_UNREADABLE, naming the file.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise _unreadable(path, "it is missing") from error
    except OSError as error:
        # pyarrow says of damaged content, too, that it is an OSError, but without a number.
        is_of_storage = isinstance(error, ConnectionError | TimeoutError | PermissionError)
        if is_of_storage or error.errno is not None or "AWS Error" in str(error):
            raise
        raise _unreadable(path, str(error)) from error
    except MemoryError as error:
        raise _unreadable(path, f"it does not fit into memory: {error}") from error
    except (pa.ArrowException, ThriftError, UnicodeDecodeError) as error:
        raise _unreadable(path, str(error)) from error


def _unreadable(path: str, problem: str) -> CatalogError:
    return CatalogError(
        ErrorCode.DATA_FILE_UNREADABLE,
        f"a file is missing or damaged: {path}: {problem[:_LONGEST_TEXT]}",
        "Look for who removed or changed it; nothing was changed by this statement.",
    )
