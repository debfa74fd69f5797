"""Reading which rows of a data file equality deletes are about. Runs on executors.

Follows the Iceberg specification, "Equality Delete Files": a row is deleted if its values equal
those of one row of a file of deletes in all of its columns; NULL equals NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from spark_jobs.connectors.iceberg.format.file_columns import (
    Constants,
    NameMapping,
    file_mappings,
)
from spark_jobs.connectors.iceberg.format.schema import IcebergField, arrow_field
from spark_jobs.connectors.iceberg.format.stored_columns import stored_columns
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_changes import Positions
from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.key_probe import KeyProbe, Mask
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.runs import distinct

_KEPT_BYTES: Final = 128 * 2**20
_NONE: Final[Positions] = np.zeros(0, dtype=np.int64)
# The keys that this process read last, by files and columns: its tasks need the same ones.
_KEPT: dict[object, _Keys] = {}


class KeyFile(NamedTuple):
    """A file of equality deletes and its number of rows."""

    path: str
    row_count: int


class EqualityDeletes(NamedTuple):
    """Files of deletes by the values of ``columns``."""

    columns: tuple[IcebergField, ...]
    files: tuple[KeyFile, ...]


class DeletesByValue(NamedTuple):
    """The equality deletes for the data file ``path``, and how its columns are found in it."""

    path: str
    names: NameMapping | None
    constants: Constants
    deletes: tuple[EqualityDeletes, ...]


@dataclass(frozen=True, slots=True)
class KeyFiles:
    """Reads files of equality deletes; the process keeps those that it read last, up to 128 MB."""

    filesystem: pafs.FileSystem

    def positions(self, file: DeletesByValue, row_count: int, gone: Positions) -> Positions:
        """The positions of the rows of a file that are deleted, without those ``gone`` anyway.

        Raises:
            CatalogError: DATA_FILE_UNREADABLE.
            NotSupportedError: neither a file nor the table says which column is which.
        """
        deleted_positions = [_NONE]
        for deletes in file.deletes:
            keys = self._keys(deletes, file.names)
            if not keys.rows.num_rows:
                continue
            mappings = self._mappings(deletes.columns, file.path, file.names, file.constants)
            scan = FileScan(self.filesystem, keys.rows.schema, keys.probes, mappings)
            with reading_file(file.path, self.filesystem):
                for positions, rows in scan.rows(file.path, gone, row_count):
                    deleted_positions.append(positions[keys.among(rows)])
        return distinct(*deleted_positions)

    def _keys(self, deletes: EqualityDeletes, names: NameMapping | None) -> _Keys:
        """The rows of all files."""
        if len(deletes.files) == 1:
            return _keeping(deletes, lambda: self._read(deletes.files[0], deletes.columns, names))
        ones = [deletes._replace(files=(file,)) for file in deletes.files]
        return _keeping(
            deletes,
            lambda: _Keys.of(pa.concat_tables(self._keys(each, names).rows for each in ones)),
        )

    def _read(
        self, file: KeyFile, columns: Sequence[IcebergField], names: NameMapping | None
    ) -> _Keys:
        mappings = self._mappings(columns, file.path, names, {})
        schema = pa.schema([arrow_field(each) for each in _named(columns)])
        with reading_file(file.path, self.filesystem):
            missing = next((name for name, each in mappings.items() if each.source is None), None)
            if missing is not None:
                raise pa.ArrowInvalid(f"it has no column {missing}, by whose values it deletes")
            scan = FileScan(self.filesystem, schema, {}, mappings)
            parts = [rows for _, rows in scan.rows(file.path, _NONE, file.row_count)]
        return _Keys.of(pa.concat_tables([schema.empty_table(), *parts]))

    def _mappings(
        self,
        columns: Sequence[IcebergField],
        path: str,
        names: NameMapping | None,
        constants: Constants,
    ) -> Mapping[str, FieldMapping]:
        with reading_file(path), self.filesystem.open_input_file(path) as stream:
            found = stored_columns(path, stream)
            mappings = file_mappings(_named(columns), found, names, constants)
        return {each.field.name: each for each in mappings}


def _keeping(deletes: EqualityDeletes, read: Callable[[], _Keys]) -> _Keys:
    own_keys = _KEPT.pop(deletes, None) or read()
    _KEPT[deletes] = own_keys
    total = 0
    for other, keys in reversed(list(_KEPT.items())):
        total += keys.size
        if total > _KEPT_BYTES and other != deletes:
            _KEPT.pop(other)
    return own_keys


def _named(columns: Sequence[IcebergField]) -> list[IcebergField]:
    """The columns, nullable, with names that differ even if they are of several schemas."""
    return [replace(each, name=f"{each.name} (id {each.id})", required=False) for each in columns]


class _Step(NamedTuple):
    """One column of keys: its distinct ``values``, and which of them follow which rows before.

    ``pairs`` (ascending) are the number of the distinct row before, times the number of values,
    plus the number of the value.
    """

    values: pa.Array
    pairs: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Keys:
    """Distinct ``rows`` of deletes, and the ``steps`` in which others are compared with them.

    ``probes`` find all rows that may be deleted, by column; not all columns have one. There are no
    steps if a probe alone decides.
    """

    rows: pa.Table
    steps: tuple[_Step, ...]
    probes: Mapping[str, KeyProbe]

    @classmethod
    def of(cls, rows: pa.Table) -> _Keys:
        """The keys in ``rows``, which may repeat each other."""
        if rows.num_columns == 1 and _are_numbers(rows.column(0)):
            (name,), values = rows.column_names, _distinct(rows.column(0))
            return cls(pa.table([values], schema=rows.schema), (), {name: KeyProbe(values)})
        if rows.num_columns > 1:
            rows = rows.group_by(rows.column_names).aggregate([]).cast(rows.schema)
        steps = tuple(_steps(rows))
        if rows.num_columns == 1:
            rows = pa.Table.from_arrays([steps[0].values], schema=rows.schema)
        probes = {
            name: KeyProbe(_distinct(step.values))
            for name, step in zip(rows.column_names, steps, strict=True)
            if _are_numbers(step.values)
        }
        return cls(rows, steps, probes)

    @property
    def size(self) -> int:
        """About how many bytes they take."""
        steps = sum(each.pairs.nbytes + int(each.values.nbytes) for each in self.steps)
        return int(self.rows.nbytes) + steps + sum(each.size for each in self.probes.values())

    def among(self, rows: pa.Table) -> Mask:
        """Which of ``rows``, which the probes have found, equal one of the keys."""
        mask = np.ones(rows.num_rows, dtype=bool)
        if not self.steps:
            return mask
        before = np.zeros(rows.num_rows, dtype=np.int64)
        for step, column in zip(self.steps, rows.columns, strict=True):
            numbers = pc.fill_null(pc.index_in(column, value_set=step.values), -1).to_numpy()
            pairs = before * len(step.values) + numbers
            before = np.searchsorted(step.pairs[:-1], pairs)
            mask &= (numbers >= 0) & (step.pairs[before] == pairs)
        return mask


def _steps(rows: pa.Table) -> Iterator[_Step]:
    before = np.zeros(rows.num_rows, dtype=np.int64)
    for column in rows.columns:
        values = pc.unique(column)
        numbers = pc.index_in(column, value_set=values).to_numpy()
        pairs, before = np.unique(before * len(values) + numbers, return_inverse=True)
        yield _Step(values, pairs)


def _are_numbers(values: pa.Array | pa.ChunkedArray) -> bool:
    """Whether a probe can find them: there are some, none is NULL, and they are ordered numbers."""
    is_number = pa.types.is_integer(values.type) or pa.types.is_date32(values.type)
    return bool(len(values) and not values.null_count and is_number)


def _distinct(numbers: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The distinct numbers, ascending."""
    plain = numbers.cast(pa.int32()) if pa.types.is_date32(numbers.type) else numbers
    return pa.array(distinct(plain.to_numpy())).cast(numbers.type)
