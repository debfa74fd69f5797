"""Tells damaged files, those of another form and failures of the storage apart.

Runs on executors.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.datafiles.parquet.thrift import ThriftError
from spark_jobs.datafiles.recorded_columns import OtherColumnsError
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError
from spark_jobs.formats.avro.container import AvroDamagedError

_LONGEST_TEXT = 500
_DELTA = "DELTA_BINARY_PACKED"
_REWRITE = "Let an engine that reads the file write its rows again, in the types of the table."


@contextmanager
def reading_file(path: str, filesystem: pafs.FileSystem | None = None) -> Iterator[None]:
    """Turn the errors of a missing or damaged file into DATA_FILE_UNREADABLE.

    Failures of the storage are raised unchanged, since they may be temporary. ``filesystem`` has
    the file, if it is parquet: its footer tells whether pages are of a kind that pyarrow misreads.

    Raises:
        CatalogError: DATA_FILE_UNREADABLE, naming the file.
        NotSupportedError: the file is whole, but does not hold the columns of its table, or has a
            feature of its format that pyarrow does not have; names both.
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
        pages = None if filesystem is None else _unknown_pages(filesystem, path)
        if pages is not None:
            raise NotSupportedError(f"Data file {path} has {pages}: {error}.", _REWRITE) from error
        raise _unreadable(path, str(error)) from error
    except MemoryError as error:
        raise _unreadable(path, f"it does not fit into memory: {error}") from error
    except OtherColumnsError as other:
        raise NotSupportedError(f"Data file {path} {other}.", _REWRITE) from other
    except pa.ArrowNotImplementedError as error:
        reason = str(error)[:_LONGEST_TEXT]
        raise NotSupportedError(
            f"Data file {path} cannot be read here: {reason}", _REWRITE
        ) from error
    except (pa.ArrowException, AvroDamagedError, ThriftError, UnicodeDecodeError) as error:
        raise _unreadable(path, str(error)) from error


def _unknown_pages(filesystem: pafs.FileSystem, path: str) -> str | None:
    """The encoding, writer and columns of pages that pyarrow may not decode, by the footer.

    DuckDB stores differences of 32-bit numbers with up to 33 bits; Java reads them.
    """
    try:
        with filesystem.open_input_file(path) as stream:
            metadata = pq.read_metadata(stream)
    except (OSError, pa.ArrowException):
        return None
    if not (metadata.created_by or "").startswith("DuckDB"):
        return None
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    chunks = [chunk for group in groups for chunk in map(group.column, range(group.num_columns))]
    columns = dict.fromkeys(
        column_chunk.path_in_schema
        for column_chunk in chunks
        if column_chunk.physical_type == "INT32" and _DELTA in column_chunk.encodings
    )
    if not columns:
        return None
    return (
        f"{_DELTA} pages of {metadata.created_by} in {', '.join(columns)}, which pyarrow decodes "
        "only if numbers are not far apart"
    )


def _unreadable(path: str, problem: str) -> CatalogError:
    return CatalogError(
        ErrorCode.DATA_FILE_UNREADABLE,
        f"a file is missing or damaged: {path}: {problem[:_LONGEST_TEXT]}",
        "Look for who removed or changed it; nothing was changed by this statement.",
    )
