"""Applies change rows: to merged rows of a section, or as records of level 0. Runs on executors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.connectors.paimon.keyed.file_columns import (
    DELETE_KIND,
    INSERT_KIND,
    POSITION,
    SEQUENCE_NUMBER,
    UPDATE_AFTER_KIND,
    VALUE_KIND,
)
from spark_jobs.connectors.paimon.keyed.key_order import equal_to_previous
from spark_jobs.connectors.paimon.keyed.merge_engines import KeyedSchema
from spark_jobs.connectors.paimon.keyed.run_writer import SortedRunWriter
from spark_jobs.contract.sql_text import sql_conditions
from spark_jobs.datafiles.conform import conform
from spark_jobs.datafiles.file_changes import replace_rows
from spark_jobs.datafiles.row_id import POSITION_FIELD
from spark_jobs.errors import DataError, ErrorCode, InternalError
from spark_jobs.spi import rows
from spark_jobs.spi.writes import InsertedKeys

_NAMED_KEYS = 3
_KINDS = {
    rows.INSERT: INSERT_KIND,
    rows.UPDATE: UPDATE_AFTER_KIND,
    rows.DELETE: DELETE_KIND,
}


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Merges change rows into stored rows; both in key order.

    ``assigned_columns`` is indexed by case number. ``newest`` is the sequence number of new rows:
    at most the largest of the bucket, so that a record that another writer adds later wins.
    """

    schema: KeyedSchema
    partition_keys: tuple[str, ...]
    assigned_columns: Sequence[Sequence[str]]
    inserted_keys: InsertedKeys
    newest: int

    def no_rows(self) -> pa.Table:
        """Stored rows without any."""
        fields = [pa.field(SEQUENCE_NUMBER, pa.int64()), pa.field(POSITION, pa.int64())]
        return pa.schema([*self.schema.columns, *fields]).empty_table()

    def merged(self, stored: pa.Table, changes: pa.Table) -> pa.Table:
        """The rows after ``changes``: the table's columns and their sequence numbers.

        ``stored`` has the table's columns, ``_SEQUENCE_NUMBER`` and ``_POSITION``.

        Raises:
            DataError: DUPLICATE_KEY_INSERT; NOT_NULL_VIOLATION or VALUE_NOT_STORABLE.
        """
        if not changes.num_rows:
            return stored.drop_columns([POSITION])
        is_insert = changes.column(rows.OPERATION).to_numpy() == rows.INSERT
        remaining = self._without_deleted(stored, changes.filter(pa.array(~is_insert)))
        if not is_insert.any():
            return remaining
        return self._with_inserted(remaining, changes.filter(pa.array(is_insert)))

    def _without_deleted(self, stored: pa.Table, changes: pa.Table) -> pa.Table:
        """The stored rows with their updates and without deleted ones."""
        places = _places(stored, changes)
        stored = stored.drop_columns([POSITION])
        if not len(places):
            return stored
        operations = changes.column(rows.OPERATION).to_numpy()
        updated = self._updated(stored, changes, operations == rows.UPDATE, places)
        keep = np.ones(stored.num_rows, dtype=np.bool_)
        keep[places[operations == rows.DELETE]] = False
        return updated if keep.all() else updated.filter(pa.array(keep))

    def _updated(
        self,
        stored: pa.Table,
        changes: pa.Table,
        is_update: npt.NDArray[np.bool_],
        places: npt.NDArray[np.int64],
    ) -> pa.Table:
        cases = changes.column(rows.CASE_NUMBER).to_numpy()
        for index, field in enumerate(self.schema.columns):
            assigning = [i for i, names in enumerate(self.assigned_columns) if field.name in names]
            changed = np.flatnonzero(is_update & np.isin(cases, assigning))
            if len(changed):
                values = _conformed(changes.column(field.name).take(pa.array(changed)), field)
                column = replace_rows(stored.column(field.name), places[changed], values)
                stored = stored.set_column(index, field, column)
        return stored

    def _with_inserted(self, kept: pa.Table, inserts: pa.Table) -> pa.Table:
        """The stored rows and new ones, in key order."""
        columns = [_conformed(inserts.column(field.name), field) for field in self.schema.columns]
        numbers = pa.array(np.full(inserts.num_rows, self.newest, np.int64))
        new = pa.Table.from_arrays([*columns, numbers], schema=kept.schema)
        if not kept.num_rows and self.inserted_keys is not InsertedKeys.UPSERTED:
            return new
        both = pa.concat_tables([kept, new])
        order = pc.sort_indices(both, [(name, "ascending") for name in self.schema.key])
        ordered = both.take(order)
        repeated = equal_to_previous(ordered, self.schema.key)
        if not repeated.any():
            return ordered
        if self.inserted_keys is not InsertedKeys.UPSERTED:
            raise self._duplicates(ordered, repeated, inserts)
        return self._upserted(ordered, order.to_numpy() >= kept.num_rows)

    def _upserted(self, ordered: pa.Table, is_new: npt.NDArray[np.bool_]) -> pa.Table:
        """Rows of equal keys merged as the table's engine does; new ones are the newer records."""
        stored_numbers = ordered.column(SEQUENCE_NUMBER).to_numpy()
        numbers = np.where(is_new, self.newest + 1 + np.arange(ordered.num_rows), stored_numbers)
        kinds = pa.array(np.full(ordered.num_rows, INSERT_KIND, np.int8))
        records = ordered.set_column(
            ordered.schema.get_field_index(SEQUENCE_NUMBER), SEQUENCE_NUMBER, pa.array(numbers)
        ).append_column(VALUE_KIND, kinds)
        merged = self.schema.engine.merged(records, self.schema.key)
        capped = np.minimum(merged.column(SEQUENCE_NUMBER).to_numpy(), self.newest)
        return merged.set_column(
            merged.schema.get_field_index(SEQUENCE_NUMBER), SEQUENCE_NUMBER, pa.array(capped)
        ).select(ordered.schema.names)

    def _duplicates(
        self, ordered: pa.Table, repeated: npt.NDArray[np.bool_], inserts: pa.Table
    ) -> DataError:
        names = [*self.partition_keys, *self.schema.key]
        found = ordered.select(names).take(pa.array(np.flatnonzero(repeated)[:_NAMED_KEYS]))
        shown = "; ".join(sql_conditions(row) for row in found.to_pylist())
        clauses = sorted(
            {int(case) + 1 for case in pc.unique(inserts.column(rows.CASE_NUMBER)).to_pylist()}
        )
        by = ", ".join(map(str, clauses))
        return DataError(
            ErrorCode.DUPLICATE_KEY_INSERT,
            f"clause {by} would insert a row whose key the table has: {shown}",
            "Compare all key columns in ON, or insert other keys.",
        )

    def touched(self, changes: pa.Table) -> int:
        """The number of stored rows that ``changes`` update or delete."""
        operations = changes.column(rows.OPERATION).to_numpy()
        return int(np.count_nonzero(operations != rows.INSERT))


def _places(stored: pa.Table, changes: pa.Table) -> npt.NDArray[np.int64]:
    """The index in ``stored`` of each changed row, found by its position."""
    if not changes.num_rows:
        return np.zeros(0, dtype=np.int64)
    wanted = pc.struct_field(changes.column(rows.ROW_ID), POSITION_FIELD).to_numpy()
    positions = stored.column(POSITION).to_numpy()
    order = np.argsort(positions, kind="stable")
    places = np.searchsorted(positions, wanted, sorter=order)
    indexes = order[np.minimum(places, len(order) - 1)] if len(order) else places
    if not len(order) or bool((positions[indexes] != wanted).any()):
        raise InternalError(
            ErrorCode.INTERNAL_ERROR,
            "A changed row is not where it was read.",
            "This is a defect: report it with the statement.",
        )
    result: npt.NDArray[np.int64] = indexes
    return result


def _conformed(values: pa.ChunkedArray, field: pa.Field) -> pa.Array:
    chunks = values.chunks or [pa.nulls(0, values.type)]
    return pa.concat_arrays([conform(chunk, field) for chunk in chunks])


class BucketAppender:
    """Writes one record per key; ``first`` is the sequence number of the first."""

    def __init__(self, schema: KeyedSchema, first: int, writer: SortedRunWriter) -> None:
        self._schema = schema
        self._next = first
        self._writer = writer

    def apply(self, changes: pa.Table) -> None:
        """Take the next changes with all columns, in key order; all those of a key together.

        Raises:
            DataError: NOT_NULL_VIOLATION or VALUE_NOT_STORABLE; names the column.
        """
        # Where a row is deleted and inserted anew, only the new row counts.
        is_last = np.append(~equal_to_previous(changes, self._schema.key)[1:], [True])
        records = changes.filter(pa.array(is_last))
        operations = records.column(rows.OPERATION).to_numpy()
        kinds = np.zeros(records.num_rows, np.int8)
        for operation, kind in _KINDS.items():
            kinds[operations == operation] = kind
        numbers = self._next + np.arange(records.num_rows, dtype=np.int64)
        self._next += records.num_rows
        columns = records.select(self._schema.columns.names)
        self._writer.write(columns, pa.array(numbers), pa.array(kinds))

    def finish(self) -> None:
        """Nothing is pending."""
