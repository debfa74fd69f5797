"""The row groups of a data file, whatever its format, and single rows for error messages.

A stripe of an ORC file counts as a row group, as do some blocks of an Avro file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.datafiles import orc
from spark_jobs.datafiles.avro import row_groups as avro
from spark_jobs.datafiles.decoded_rows import BatchSize
from spark_jobs.datafiles.field_mapping import FieldMapping, recorded_columns
from spark_jobs.datafiles.file_formats import is_avro, is_orc
from spark_jobs.datafiles.key_probe import KeyProbe
from spark_jobs.datafiles.parquet import row_groups as parquet
from spark_jobs.datafiles.parquet.damage import reading_file


class RowGroup(Protocol):
    """Some consecutive rows of a file, whose columns are decoded on demand."""

    @property
    def row_count(self) -> int:
        """The number of rows."""

    def may_hold(self, name: str, probe: KeyProbe) -> bool:
        """False if no row of the column can have one of the probe's values."""

    def column(self, name: str) -> pa.ChunkedArray:
        """A column for all rows, as decoded; raises ``pa.ArrowInvalid`` if there is none."""

    def values(self, name: str, decoded: pa.Array) -> pa.Array:
        """Some rows of a column, from those of ``column``."""

    def parts(self, names: Sequence[str], most: BatchSize) -> Iterator[RowGroup]:
        """All rows in batches with only the columns ``names``, which are decoded one by one.

        The formats differ in what is in memory beside a batch: of parquet the current pages, of ORC
        the stripe.
        """


def row_groups(
    path: str,
    stream: pa.NativeFile,
    recorded: Collection[pa.Field],
    most: BatchSize | None = None,
) -> Iterator[RowGroup]:
    """The row groups of the open file at ``path``, in order.

    ``recorded`` are the columns to read, as the schema of the file has them. ``most``, if given, is
    the size of the ``parts`` in which they will be read.

    Raises:
        pa.ArrowInvalid: the file is damaged, or does not hold these columns of its schema.
        NotSupportedError: one of them has INT96 timestamps that cannot be read rightly.
    """
    if is_orc(path):
        return orc.stripes(stream, recorded)
    if is_avro(path):
        return avro.row_groups(stream, recorded, None if most is None else most.size)
    return parquet.row_groups(path, stream, recorded, most)


def read_row(
    filesystem: pafs.FileSystem,
    path: str,
    position: int,
    columns: Sequence[str],
    mappings: Sequence[FieldMapping] | None = None,
) -> dict[str, Any]:
    """``columns`` of the row at ``position`` (from 0) as Python values.

    ``mappings`` are of a file that does not have the table's columns.

    Raises:
        CatalogError: DATA_FILE_UNREADABLE, also when the file has no such row.
    """
    with reading_file(path, filesystem):
        if mappings is None:
            return _read_row(filesystem, path, position, columns, ())
        wanted = [each for each in mappings if each.field.name in columns]
        recorded = recorded_columns(wanted)
        stored = [field.name for field in recorded]
        row = _read_row(filesystem, path, position, stored, recorded)
        return {each.field.name: _value(each, row) for each in wanted}


def _value(mapping: FieldMapping, row: Mapping[str, Any]) -> Any:
    if mapping.source is None:
        return mapping.missing(1)[0].as_py()
    stored = pa.array([row[mapping.source.name]], mapping.source.type)
    return mapping.values(stored)[0].as_py()


def _read_row(
    filesystem: pafs.FileSystem,
    path: str,
    position: int,
    columns: Sequence[str],
    recorded: Sequence[pa.Field],
) -> dict[str, Any]:
    with filesystem.open_input_file(path) as stream:
        start = 0
        for group in row_groups(path, stream, recorded):
            if position < start + group.row_count:
                return {name: _value_at(group, name, position - start) for name in columns}
            start += group.row_count
    raise pa.ArrowInvalid(f"it has {start} rows, none at position {position}")


def _value_at(group: RowGroup, name: str, position: int) -> Any:
    chunks = group.column(name).slice(position, 1).chunks
    (value,) = pa.concat_arrays([group.values(name, chunk) for chunk in chunks]).to_pylist()
    return value
