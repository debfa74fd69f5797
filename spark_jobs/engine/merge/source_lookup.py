"""The source's rows by their join keys, as files that the tasks of the located plan look into.

Rows stay in the source's order; their numbers are sorted by a dense code of their keys. A key of
one column is coded by its place among the distinct values; each further column combines the code so
far with its own, and the combinations that occur are numbered again. Arrow IPC files, which tasks
on the same machine map into memory. Imported by executors: nothing here needs a table library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

Numbers = npt.NDArray[np.int64]

_ROWS = "rows"
_ORDER = "order"
_STARTS = "starts"

# The lookup that was read last. Spark's workers serve one task after another.
_KEPT: dict[str, OpenLookup] = {}


@dataclass(frozen=True, slots=True)
class SourceLookup:
    """The files of a lookup in ``folder``; ``keys`` is the number of key columns. Picklable."""

    filesystem: pafs.FileSystem
    folder: str
    keys: int

    def opened(self) -> OpenLookup:
        """The lookup, mapped into memory, or read once for all tasks of this process."""
        if isinstance(self.filesystem, pafs.LocalFileSystem):
            return self._read_all()
        if self.folder not in _KEPT:
            _KEPT.clear()
            _KEPT[self.folder] = self._read_all()
        return _KEPT[self.folder]

    def _read_all(self) -> OpenLookup:
        numbers = range(self.keys)
        return OpenLookup(
            rows=self._read(_ROWS),
            values=[self._read(f"values-{index}").column(0) for index in numbers],
            combined=[_integers(self._read(f"combined-{index}").column(0)) for index in numbers],
            order=_integers(self._read(_ORDER).column(0)),
            starts=_integers(self._read(_STARTS).column(0)),
        )

    def _read(self, name: str) -> pa.RecordBatch:
        return read_batch(self.filesystem, f"{self.folder}/{name}.arrow")

    def write(self, lookup: OpenLookup) -> None:
        """Store the files; the folder exists."""
        columns = {f"values-{index}": each for index, each in enumerate(lookup.values)}
        columns |= {f"combined-{i}": pa.array(each) for i, each in enumerate(lookup.combined)}
        columns |= {_ORDER: pa.array(lookup.order), _STARTS: pa.array(lookup.starts)}
        batches = {n: pa.RecordBatch.from_arrays([each], ["c0"]) for n, each in columns.items()}
        for name, batch in {**batches, _ROWS: lookup.rows}.items():
            write_batch(self.filesystem, f"{self.folder}/{name}.arrow", batch)


@dataclass(frozen=True, slots=True)
class OpenLookup:
    """Source rows, and which of them have the keys of a code.

    ``values[i]`` are the distinct values of key column ``i``, ascending; ``combined[i]`` are the
    combinations of the code so far and that of column ``i`` that occur, ascending. ``order`` are
    the numbers of the rows without NULL in a key; those of code ``c`` are from ``starts[c]`` to
    before ``starts[c + 1]``.
    """

    rows: pa.RecordBatch
    values: Sequence[pa.Array]
    combined: Sequence[Numbers]
    order: Numbers
    starts: Numbers

    def codes(self, columns: Sequence[pa.Array]) -> Numbers:
        """The code of each target row, given its key columns; -1: no source row has these keys."""
        codes = np.zeros(len(columns[0]), np.int64)
        for values, combined, column in zip(self.values, self.combined, columns, strict=True):
            codes = _found(_paired(codes, values, column), combined)
        return codes

    def pairs(self, codes: Numbers, most: int) -> Iterator[tuple[Numbers, Numbers]]:
        """The matching pairs as numbers of target rows and of source rows, in slices.

        In the order of the target rows; a slice has at most ``most`` pairs.
        """
        targets = np.flatnonzero(codes >= 0)
        first, after = self.starts[codes[targets]], self.starts[codes[targets] + 1]
        ends: Numbers = np.cumsum(after - first, dtype=np.int64)
        total = int(ends[-1]) if len(ends) else 0
        for start in range(0, total, most):
            pairs: Numbers = np.arange(start, min(start + most, total), dtype=np.int64)
            which = np.searchsorted(ends, pairs, side="right")
            yield targets[which], self.order[after[which] - (ends[which] - pairs)]


def make_lookup(keys: Sequence[pa.Array], rows: pa.Table) -> OpenLookup:
    """A lookup of ``rows`` by their ``keys``, which finds none with a NULL in one."""
    are_valid = np.ones(len(keys[0]), np.bool_)
    for key in keys:
        are_valid &= key.is_valid().to_numpy(zero_copy_only=False)
    numbers = np.flatnonzero(are_valid)
    distinct, combined = [], []
    codes: Numbers | None = None
    for key in keys:
        values, own = _ranked(key.take(pa.array(numbers)))
        distinct.append(values)
        if codes is None:
            occurring, codes = np.arange(len(values)), own
        else:
            occurring, codes = np.unique(codes * len(values) + own, return_inverse=True)
        combined.append(occurring)
    assert codes is not None  # noqa: S101
    counts = np.bincount(codes, minlength=len(combined[-1]))
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return OpenLookup(one_batch(rows), distinct, combined, numbers[_order(codes, counts)], starts)


def _order(codes: Numbers, counts: Numbers) -> Numbers:
    """What sorts dense ``codes``, each of which occurs as often as ``counts`` says."""
    if len(codes) > len(counts):
        return np.argsort(codes, kind="stable")
    order: Numbers = np.empty(len(codes), np.int64)
    order[codes] = np.arange(len(codes))
    return order


def _ranked(column: pa.Array) -> tuple[pa.Array, Numbers]:
    """The distinct values in ascending order, and the place of each row's among them."""
    if _is_integral(column.type):
        values, places = np.unique(_as_integers(column), return_inverse=True)
        return pa.array(values).cast(_number_type(column.type)).view(column.type), places
    values = pc.unique(column)
    values = values.take(pc.sort_indices(values))
    return values, _places(values, column)


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """All rows of ``table``."""
    batches = table.combine_chunks().to_batches()
    if len(batches) == 1:
        return batches[0]
    empty = [pa.array([], field.type) for field in table.schema]
    return pa.RecordBatch.from_arrays(empty, schema=table.schema)


def read_batch(filesystem: pafs.FileSystem, path: str) -> pa.RecordBatch:
    """The batch of a file that ``write_batch`` wrote; a local file is mapped into memory."""
    if isinstance(filesystem, pafs.LocalFileSystem):
        return pa.ipc.open_file(pa.memory_map(path)).get_batch(0)
    with filesystem.open_input_file(path) as stream:
        return pa.ipc.open_file(stream).get_batch(0)


def write_batch(filesystem: pafs.FileSystem, path: str, batch: pa.RecordBatch) -> None:
    """Store one batch as an Arrow IPC file."""
    with (
        filesystem.open_output_stream(path) as stream,
        pa.ipc.new_file(stream, batch.schema) as out,
    ):
        out.write_batch(batch)


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Implements ``PartReader``: slices, as offset and length, of one Arrow IPC file. Picklable."""

    filesystem: pafs.FileSystem
    path: str

    def read(self, parts: Sequence[tuple[int, int]]) -> Iterator[pa.RecordBatch]:
        """The rows of the slices."""
        batch = read_batch(self.filesystem, self.path)
        for start, length in parts:
            yield batch.slice(start, length)


def _paired(codes: Numbers, values: pa.Array, column: pa.Array) -> Numbers:
    """The combination of each row's code so far with that of its value; -1 where it has none."""
    own = _places(values, column)
    paired: Numbers = np.where((codes < 0) | (own < 0), -1, codes * len(values) + own)
    return paired


def _places(values: pa.Array, column: pa.Array) -> Numbers:
    """The place of each row among the ascending ``values``; -1: it is not among them."""
    kind = values.type
    if not _is_integral(kind):
        found = pc.fill_null(pc.index_in(column, value_set=values, skip_nulls=True), -1)
        return _integers(found.cast(pa.int64()))
    places = _found(_as_integers(column), _as_integers(values))
    if column.null_count:
        places[column.is_null().to_numpy(zero_copy_only=False)] = -1
    return places


def _found(wanted: Numbers, among: Numbers) -> Numbers:
    """The place of each number among ascending ones; -1: it is not among them."""
    if not len(among):
        return np.full(len(wanted), -1, np.int64)
    places = np.searchsorted(among[:-1], wanted)
    found: Numbers = np.where(among[places] == wanted, places, -1)
    return found


def _is_integral(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_date32(kind))


def _number_type(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if pa.types.is_date32(kind) else kind


def _as_integers(array: pa.Array) -> Numbers:
    """Integers or dates as numbers in the same order, 0 for NULL."""
    if pa.types.is_date32(array.type):
        array = array.view(_number_type(array.type))
    return _integers(pc.fill_null(array, 0) if array.null_count else array)


def _integers(array: pa.Array) -> Numbers:
    numbers: Numbers = array.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return numbers
