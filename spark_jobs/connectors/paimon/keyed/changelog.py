"""Writes what changes do to rows as a changelog, which streams read. Runs on executors.

After Paimon's ``ChangelogResult``: a record -U with the old row, directly before one +U with the
new row; +I for a row that is new, -D for one that is gone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.connectors.paimon.keyed.file_columns import (
    DELETE_KIND,
    INSERT_KIND,
    SEQUENCE_NUMBER,
    UPDATE_AFTER_KIND,
    UPDATE_BEFORE_KIND,
)
from spark_jobs.connectors.paimon.keyed.key_order import equal_to_previous
from spark_jobs.connectors.paimon.keyed.merge_engines import KeyedSchema
from spark_jobs.connectors.paimon.keyed.run_writer import SortedRunWriter
from spark_jobs.datafiles.conform import conform
from spark_jobs.datafiles.parquet.options import Compression

_SIDE = "_SIDE"
_CHANGED, _OLD, _NEW = range(3)

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ChangelogFiles:
    """How a write keeps its changelog.

    ``name_prefix`` begins the names of its files. ``drops_unchanged``: it has no records of a row
    that differs at most in the columns ``ignored``.
    """

    name_prefix: str
    compression: Compression
    drops_unchanged: bool = False
    ignored: tuple[str, ...] = ()


class Changelog:
    """The changelog of one bucket."""

    def __init__(self, schema: KeyedSchema, files: ChangelogFiles, writer: SortedRunWriter) -> None:
        self._schema = schema
        self._files = files
        self.writer = writer
        number = pa.field(SEQUENCE_NUMBER, pa.int64())
        self._fields = pa.schema([*schema.columns, number])

    def write(self, before: pa.Table, changes: pa.Table, after: pa.Table) -> None:
        """Add what ``changes`` did; they made the rows ``before`` the rows ``after``.

        All have the columns of the key and come in its order; ``before`` and ``after`` have all
        columns of the table and ``_SEQUENCE_NUMBER``.

        Raises:
            DataError: VALUE_NOT_STORABLE; names the column.
        """
        if not changes.num_rows:
            return
        changed = self._keys(changes)
        old, new = (self._candidates(rows, changed) for rows in (before, after))
        rows, kinds = self._records(changed, old, new)
        if self._files.drops_unchanged:
            rows, kinds = self._without_unchanged(rows, kinds)
        columns = rows.select(self._schema.columns.names)
        self.writer.write(columns, rows.column(SEQUENCE_NUMBER), pa.array(kinds))

    def _keys(self, rows: pa.Table) -> pa.Table:
        fields = [self._schema.columns.field(name) for name in self._schema.key]
        columns = [
            pa.chunked_array([conform(c, each) for c in rows.column(each.name).chunks], each.type)
            for each in fields
        ]
        return pa.table(columns, names=list(self._schema.key))

    def _candidates(self, rows: pa.Table, changed: pa.Table) -> pa.Table:
        """The rows that have a changed key's value in the first column of the key."""
        arrays = [rows.column(name) for name in self._fields.names]
        first = self._schema.key[0]
        values = pc.unique(changed.column(first))
        found = pc.is_in(rows.column(first), value_set=values)
        return pa.Table.from_arrays(arrays, schema=self._fields).filter(found)

    def _records(
        self, changed: pa.Table, old: pa.Table, new: pa.Table
    ) -> tuple[pa.Table, npt.NDArray[np.int8]]:
        """The records for the changed keys, and their kinds."""
        names = list(self._schema.key)
        sides = np.repeat(
            np.array([_CHANGED, _OLD, _NEW], np.int8),
            [changed.num_rows, old.num_rows, new.num_rows],
        )
        keys = pa.concat_tables([self._keys(rows) for rows in (changed, old, new)])
        by = [(name, "ascending") for name in (*names, _SIDE)]
        order = pc.sort_indices(keys.append_column(_SIDE, pa.array(sides)), by).to_numpy()
        groups = np.cumsum(~equal_to_previous(keys.take(order), names)) - 1
        sides = sides[order]
        changes, was, is_ = (_has(groups, sides == side) for side in (_CHANGED, _OLD, _NEW))
        is_record = changes & (sides != _CHANGED)
        kinds = np.where(
            sides == _OLD,
            np.where(is_, UPDATE_BEFORE_KIND, DELETE_KIND),
            np.where(was, UPDATE_AFTER_KIND, INSERT_KIND),
        )
        places = order[is_record].astype(np.int64) - changed.num_rows
        rows = pa.concat_tables([old, new]).take(pa.array(places))
        return rows, kinds[is_record].astype(np.int8)

    def _without_unchanged(
        self, rows: pa.Table, kinds: npt.NDArray[np.int8]
    ) -> tuple[pa.Table, npt.NDArray[np.int8]]:
        before = np.flatnonzero(kinds == UPDATE_BEFORE_KIND)
        old, new = rows.take(pa.array(before)), rows.take(pa.array(before + 1))
        same = np.ones(len(before), dtype=np.bool_)
        for name in self._schema.columns.names:
            if name not in self._files.ignored:
                same &= _equal(old.column(name), new.column(name))
        keep = np.ones(len(kinds), dtype=np.bool_)
        keep[before[same]] = keep[before[same] + 1] = False
        return rows.filter(pa.array(keep)), kinds[keep]


def _has(groups: npt.NDArray[np.int64], of_side: Mask) -> Mask:
    """For each place, whether its group has a place ``of_side``."""
    group_has_side = np.zeros(int(groups[-1]) + 1, dtype=np.bool_)
    group_has_side[groups[of_side]] = True
    result: Mask = group_has_side[groups]
    return result


def _equal(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Mask:
    """Whether values are equal; NULL equals NULL."""
    if pa.types.is_nested(left.type):
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return np.fromiter((a == b for a, b in pairs), np.bool_, len(left))
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    same: Mask = pc.or_(both_null, pc.fill_null(pc.equal(left, right), False)).to_numpy()
    return same
