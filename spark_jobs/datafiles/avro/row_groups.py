"""The rows of an Avro file, some blocks at a time. Runs on executors.

Blocks are small, often 64 KB, so that several make a row group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from spark_jobs.avro.container import AvroFile
from spark_jobs.avro.decoding import BlockDecoder
from spark_jobs.avro.schemas import AvroSchema
from spark_jobs.datafiles.avro.columns import ColumnBuilders
from spark_jobs.datafiles.key_probe import KeyProbe
from spark_jobs.errors import NotSupportedError

# The limit for one part of a header, and for one block.
_MOST_BYTES: Final = 1024 * 1024 * 1024
_BUFFER_BYTES: Final = 1024 * 1024
# The size in Arrow bytes at which a row group is whole, as in new files.
_GROUP_BYTES: Final = 64 * 1024 * 1024


class RowGroup:
    """Some consecutive rows, decoded. Implements ``row_groups.RowGroup``."""

    def __init__(self, rows: pa.StructArray) -> None:
        self._table = pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)])
        self.row_count: int = len(rows)

    def may_hold(self, name: str, probe: KeyProbe) -> bool:
        """True: Avro files have no statistics."""
        del name, probe
        return True

    def column(self, name: str) -> pa.ChunkedArray:
        """A column for all rows."""
        return self._table.column(name)

    def values(self, name: str, decoded: pa.Array) -> pa.Array:
        """The rows as they are decoded."""
        del name
        return decoded

    def table(self) -> pa.Table:
        """The columns of all rows."""
        return self._table


def row_count(stream: pa.NativeFile) -> int:
    """The number of rows of the file, by its blocks."""
    return sum(block.records for block in _opened(stream)[0].blocks())


def row_groups(stream: pa.NativeFile, recorded: Iterable[pa.Field]) -> Iterator[RowGroup]:
    """The rows of the file with the columns ``recorded``.

    Raises:
        pa.ArrowInvalid: the file does not hold these columns of its schema.
        AvroDamagedError: the file is damaged.
        CatalogError: LIBRARY_MISSING.
    """
    file, schema = _opened(stream)
    build = ColumnBuilders(schema).record(schema.fields, recorded)
    decoder = BlockDecoder(file.schema)
    pending, size = [], 0
    for block in file.blocks():
        pending.append(build(decoder.records(block)))
        size += pending[-1].nbytes
        if size >= _GROUP_BYTES:
            yield RowGroup(pa.concat_arrays(pending))
            pending, size = [], 0
    if pending:
        yield RowGroup(pa.concat_arrays(pending))


def _opened(stream: pa.NativeFile) -> tuple[AvroFile, AvroSchema]:
    # The buffer closes the stream, which cannot be read again.
    buffer = pa.BufferedInputStream(stream, _BUFFER_BYTES)
    try:
        file = AvroFile(buffer, _MOST_BYTES)
        return file, AvroSchema(file.schema)
    except NotSupportedError as error:
        raise pa.ArrowInvalid(error.message) from None
