"""Reads ORC files with pyarrow, one stripe at a time. Runs on executors.

pyarrow holds timestamps of ORC files in nanoseconds and wraps those outside the years 1677 to 2262
around without an error: whoever reads a column must know that it has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from spark_jobs.datafiles.decoded_rows import BatchSize, DecodedRows
from spark_jobs.datafiles.key_probe import KeyProbe
from spark_jobs.datafiles.recorded_columns import require_recorded

if TYPE_CHECKING:
    from pyarrow.orc import ORCFile


def row_count(stream: pa.NativeFile) -> int:
    """The number of rows of the file."""
    return int(_opened(stream).nrows)


def schema(stream: pa.NativeFile) -> pa.Schema:
    """The columns of the file; the attributes of their types are metadata of the fields."""
    found: pa.Schema = _opened(stream).schema
    return found


def stripes(stream: pa.NativeFile, recorded: Iterable[pa.Field]) -> Iterator[Stripe]:
    """The stripes of the file.

    Raises:
        pa.ArrowInvalid: the file does not hold the columns ``recorded`` of its schema.
    """
    file = _opened(stream)
    require_recorded(file.schema, recorded)
    for number in range(file.nstripes):
        yield Stripe(file, number)


def _opened(stream: pa.NativeFile) -> Any:
    # Imported here, because few tables have such files.
    from pyarrow.orc import ORCFile

    return ORCFile(stream)


class Stripe:
    """One stripe. Implements ``file_scan.RowGroup``."""

    def __init__(self, file: ORCFile, number: int) -> None:
        self._file = file
        self._number = number
        self._names: Sequence[str] = file.schema.names
        self._row_count: int | None = None

    @property
    def row_count(self) -> int:
        """The number of rows."""
        if self._row_count is None:
            self._row_count = self._read([0]).num_rows
        return self._row_count

    def may_hold(self, name: str, probe: KeyProbe) -> bool:
        """True: pyarrow does not read the statistics of stripes."""
        del name, probe
        return True

    def column(self, name: str) -> pa.ChunkedArray:
        """A column for all rows."""
        return pa.chunked_array([self._read([self._index_of(name)]).column(0)])

    def values(self, name: str, decoded: pa.Array) -> pa.Array:
        """The rows as they are decoded."""
        del name
        return decoded

    def parts(self, names: Sequence[str], most: BatchSize) -> Iterator[DecodedRows]:
        """The rows in batches; pyarrow decodes the stripe as a whole."""
        columns = [self._index_of(name) for name in names]
        rows = DecodedRows(pa.Table.from_batches([self._read(columns)]))
        yield from rows.parts(names, most)

    def table(self) -> pa.Table:
        """All columns of all rows."""
        return pa.Table.from_batches([self._file.read_stripe(self._number)])

    def _index_of(self, name: str) -> int:
        if name not in self._names:
            raise pa.ArrowInvalid(f"it has no column {name}")
        return self._names.index(name)

    def _read(self, columns: Sequence[int]) -> pa.RecordBatch:
        return self._file.read_stripe(self._number, columns=list(columns))
