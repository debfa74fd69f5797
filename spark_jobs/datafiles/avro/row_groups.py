"""The rows of an Avro file, some blocks at a time. Runs on executors.

Blocks are small, often 64 KB, so that several make a row group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from spark_jobs.avro import open_avro
from spark_jobs.datafiles.avro.columns import ColumnBuilders
from spark_jobs.datafiles.decoded_rows import DecodedRows
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.avro.container import AvroFile
from spark_jobs.formats.avro.decoding import stored_values
from spark_jobs.formats.avro.schemas import AvroSchema

# The limit for one part of a header, and for one block.
_MOST_BYTES: Final = 1024 * 1024 * 1024
_BUFFER_BYTES: Final = 1024 * 1024
# The size in Arrow bytes at which a row group is whole, as in new files.
_GROUP_BYTES: Final = 64 * 1024 * 1024


def row_count(stream: pa.NativeFile) -> int:
    """The number of rows of the file, by its blocks."""
    return sum(block.records for block in _opened(stream)[0].blocks())


def schema(stream: pa.NativeFile) -> Any:
    """The schema of the file, as JSON data; that of a record.

    Raises:
        pa.ArrowInvalid: it is that of other values.
        AvroDamagedError: the file is damaged.
    """
    return _opened(stream)[0].schema


def row_groups(
    stream: pa.NativeFile, recorded: Iterable[pa.Field], group_bytes: int | None = None
) -> Iterator[DecodedRows]:
    """The rows of the file with the columns ``recorded``.

    A row group has at least ``group_bytes`` in Arrow form, unless it is the last one; None: as many
    as those of new files.

    Raises:
        pa.ArrowInvalid: the file does not hold these columns of its schema.
        AvroDamagedError: the file is damaged.
        CatalogError: LIBRARY_MISSING.
    """
    file, schema = _opened(stream)
    build = ColumnBuilders(schema).record(schema.fields, recorded)
    decoder = stored_values(file.schema)
    least = _GROUP_BYTES if group_bytes is None else group_bytes
    pending, size = [], 0
    for block in file.blocks():
        pending.append(build(decoder.records(block)))
        size += pending[-1].nbytes
        if size >= least:
            yield _group(pending)
            pending, size = [], 0
    if pending:
        yield _group(pending)


def _group(blocks: list[pa.StructArray]) -> DecodedRows:
    rows = pa.concat_arrays(blocks)
    blocks.clear()
    return DecodedRows(pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)]))


def _opened(stream: pa.NativeFile) -> tuple[AvroFile, AvroSchema]:
    # The buffer closes the stream, which cannot be read again.
    buffer = pa.BufferedInputStream(stream, _BUFFER_BYTES)
    try:
        file = open_avro(buffer, _MOST_BYTES)
        return file, AvroSchema(file.schema)
    except NotSupportedError as error:
        raise pa.ArrowInvalid(error.message) from None
