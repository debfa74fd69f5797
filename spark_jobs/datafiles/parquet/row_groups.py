"""The row groups of a parquet file, whose columns pyarrow decodes on demand."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.datafiles.key_probe import KeyProbe
from spark_jobs.datafiles.parquet import int96
from spark_jobs.datafiles.parquet.footer import NotSpliceableError, read_footer
from spark_jobs.datafiles.parquet.options import low_cardinality_columns
from spark_jobs.datafiles.parquet.stored_values import as_stored, logical
from spark_jobs.datafiles.recorded_columns import require_recorded


def row_groups(
    path: str, stream: pa.NativeFile, recorded: Collection[pa.Field]
) -> Iterator[RowGroup]:
    """The row groups of the file, set up to decode as little as possible.

    Raises:
        pa.ArrowInvalid: the file does not hold the columns ``recorded`` of its schema.
        NotSupportedError: one of them has INT96 timestamps that cannot be read rightly.
    """
    file, stored_types = _opened(stream, recorded)
    int96.refuse(path, file.schema, [field.name for field in recorded])
    for number in range(file.num_row_groups):
        yield RowGroup(file, number, stored_types)


class RowGroup:
    """One row group. Implements ``file_scan.RowGroup``."""

    def __init__(
        self, file: pq.ParquetFile, number: int, stored_types: Mapping[str, pa.DataType]
    ) -> None:
        self._file = file
        self._number = number
        self._stored_types = stored_types
        self._metadata = file.metadata.row_group(number)
        self.row_count: int = self._metadata.num_rows

    def may_hold(self, name: str, probe: KeyProbe) -> bool:
        """False if the statistics of a column without nested fields exclude all values."""
        (leaf, *_) = self._leaves(name)
        statistics = self._metadata.column(leaf).statistics
        if statistics is None or not statistics.has_min_max:
            return True
        return probe.may_be_within(statistics.min, statistics.max)

    def column(self, name: str) -> pa.ChunkedArray:
        """A column for all rows, as decoded."""
        # By index: in a column name, pyarrow takes dots for paths to nested fields.
        leaves = list(self._leaves(name))
        reader = self._file.reader
        return reader.read_row_group(self._number, column_indices=leaves, use_threads=False)[0]

    def values(self, name: str, decoded: pa.Array) -> pa.Array:
        """Some rows of a column, from those of ``column``."""
        kind = self._stored_types.get(name)
        return decoded if kind is None else logical(decoded, kind)

    def _leaves(self, name: str) -> range:
        start = 0
        for field in self._file.schema_arrow:
            count = _leaf_count(field.type)
            if field.name == name:
                return range(start, start + count)
            start += count
        raise pa.ArrowInvalid(f"it has no column {name}")


def _opened(
    stream: pa.NativeFile, recorded: Collection[pa.Field]
) -> tuple[pq.ParquetFile, Mapping[str, pa.DataType]]:
    """The file, and the types of columns that it decodes as they are stored."""
    try:
        footer = read_footer(stream)
        columns = pa.schema(column.field for column in footer.columns)
        metadata, types = as_stored(footer)
    except NotSpliceableError:
        plain = pq.ParquetFile(stream)
        columns, metadata, types = plain.schema_arrow, plain.metadata, {}
    require_recorded(columns, recorded)
    texts = low_cardinality_columns(metadata, metadata.schema.to_arrow_schema())
    return pq.ParquetFile(stream, metadata=metadata, read_dictionary=texts), types


def _leaf_count(kind: pa.DataType) -> int:
    if isinstance(kind, pa.DictionaryType) or not kind.num_fields:
        return 1
    return sum(_leaf_count(kind.field(i).type) for i in range(kind.num_fields))
