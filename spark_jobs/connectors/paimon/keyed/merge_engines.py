"""Merges the records of each key as Paimon's merge engines do. Runs on executors.

After Paimon's ``MergeFunction`` classes. Records of a key are merged in the order of the sequence
fields, if the table has any, then of their sequence numbers.

A data file has one record per row, sorted by key: ``_KEY_<name>`` for each key column, the sequence
number, the row kind, then the table's columns (Paimon's ``KeyValue``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.connectors.paimon.keyed.aggregates import aggregated
from spark_jobs.connectors.paimon.keyed.file_columns import POSITION, SEQUENCE_NUMBER, VALUE_KIND
from spark_jobs.connectors.paimon.keyed.key_order import equal_to_previous
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError

EngineKind = Literal["deduplicate", "first-row", "partial-update", "aggregation"]

_OF_RECORD: Final = (SEQUENCE_NUMBER, VALUE_KIND, POSITION)
_VISIBLE: Final = np.array([True, False, True, False])
_DEFAULT_FUNCTION: Final = "last_non_null_value"

Indices = npt.NDArray[np.int64]
Levels = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MergeEngine:
    """A merge engine with its options.

    ``sequence_fields`` are columns of the table that order records, NULL first.
    ``functions`` are aggregate functions by column, for the engine ``aggregation``.
    """

    kind: EngineKind
    sequence_fields: tuple[str, ...] = ()
    sequence_descending: bool = False
    functions: Mapping[str, str] = field(default_factory=dict)

    def merged(
        self, records: pa.Table, key: Sequence[str], levels: Levels | None = None
    ) -> pa.Table:
        """One row for each key that has one, in key order.

        ``records`` are all records of their keys, in any order, with the columns ``key``, those of
        ``sequence_fields``, ``_SEQUENCE_NUMBER`` (int64), ``_VALUE_KIND`` (int8) and any others.
        The result has the same columns; ``_SEQUENCE_NUMBER`` is the largest of the key. ``levels``
        of the records, if any: of those above level 0, only the ones of a key's lowest level count.

        Raises:
            CatalogError: DATA_FILE_UNREADABLE: records of a key have equal sequence numbers.
            NotSupportedError: the engine does not define what a delete record means.
        """
        order = self._order(records, key)
        compared = records.select([*key, *self.sequence_fields, SEQUENCE_NUMBER])
        ordered = compared.take(order)
        repeated = equal_to_previous(ordered, key)
        if levels is not None and repeated.any():
            order = order[_counting(levels[order], np.flatnonzero(~repeated))]
            ordered = compared.take(order)
            repeated = equal_to_previous(ordered, key)
        if not repeated.any():
            return self._visible(records.take(order))
        self._require_order(ordered, key, repeated)
        starts = np.flatnonzero(~repeated)
        lasts = np.append(starts[1:], len(repeated)) - 1
        numbers = np.maximum.reduceat(ordered.column(SEQUENCE_NUMBER).to_numpy(), starts)
        chosen = self._chosen(records, order, starts, lasts)
        index = chosen.schema.get_field_index(SEQUENCE_NUMBER)
        return self._visible(chosen.set_column(index, SEQUENCE_NUMBER, pa.array(numbers)))

    def alone(self, records: pa.Table) -> pa.Table:
        """The rows of records of one file, in which no key occurs twice."""
        return self._visible(records)

    def _order(self, records: pa.Table, key: Sequence[str]) -> Indices:
        """The order of records by key, then from old to new."""
        numbers = records.column(SEQUENCE_NUMBER)
        first = records.column(key[0])
        if len(key) == 1 and not self.sequence_fields and pa.types.is_integer(first.type):
            return np.lexsort((numbers.to_numpy(), first.to_numpy())).astype(np.int64)
        direction = "descending" if self.sequence_descending else "ascending"
        by = [(name, "ascending") for name in key]
        by += [(name, direction) for name in self.sequence_fields]
        by.append((SEQUENCE_NUMBER, "ascending"))
        names = list(dict.fromkeys(name for name, _ in by))
        found: Indices = pc.sort_indices(
            records.select(names), sort_keys=by, null_placement="at_start"
        ).to_numpy()
        return found.astype(np.int64)

    def _require_order(
        self, ordered: pa.Table, key: Sequence[str], repeated: npt.NDArray[np.bool_]
    ) -> None:
        fields = [*self.sequence_fields, SEQUENCE_NUMBER]
        tied = repeated.copy()
        for name in fields:
            column = ordered.column(name)
            same = pc.equal(column.slice(1), column.slice(0, max(len(column) - 1, 0)))
            both_null = pc.and_(
                pc.is_null(column.slice(1)), pc.is_null(column.slice(0, max(len(column) - 1, 0)))
            )
            tied[1:] &= pc.or_(pc.fill_null(same, False), both_null).to_numpy()
        if tied.any():
            (row,) = ordered.slice(int(np.flatnonzero(tied)[0]), 1).select(list(key)).to_pylist()
            shown = ", ".join(f"{name} = {value}" for name, value in row.items())
            raise CatalogError(
                ErrorCode.DATA_FILE_UNREADABLE,
                f"several records of the key {shown} have the same sequence number, so engines do "
                "not agree on which one is newer",
                "Write the key again with Paimon's own engines, then compact the table fully.",
            )

    def _chosen(
        self, records: pa.Table, order: Indices, starts: Indices, lasts: Indices
    ) -> pa.Table:
        """The merged row of each key."""
        if self.kind == "deduplicate":
            return records.take(order[lasts])
        ordered = records.take(order)
        self._require_inserts(ordered)
        if self.kind == "first-row":
            return ordered.take(starts)
        columns = [
            ordered.column(name).take(pa.array(lasts))
            if name in _OF_RECORD
            else aggregated(self._function(name), ordered.column(name), starts, lasts)
            for name in ordered.column_names
        ]
        return pa.Table.from_arrays(columns, schema=ordered.schema)

    def _function(self, column: str) -> str:
        if self.kind == "partial-update":
            return _DEFAULT_FUNCTION
        if column in self.sequence_fields:
            return "last_value"
        return self.functions.get(column, _DEFAULT_FUNCTION)

    def _require_inserts(self, records: pa.Table) -> None:
        kinds = records.column(VALUE_KIND).to_numpy()
        if not _VISIBLE[kinds].all():
            raise NotSupportedError(
                f"The table's merge engine {self.kind} does not define what the delete records of "
                "its files mean.",
                "Remove the records with Paimon's own engines.",
            )

    def _visible(self, rows: pa.Table) -> pa.Table:
        """Rows that exist: their newest record inserts or updates them."""
        if self.kind != "deduplicate":
            self._require_inserts(rows)
        is_visible = _VISIBLE[rows.column(VALUE_KIND).to_numpy()]
        return rows if is_visible.all() else rows.filter(pa.array(is_visible))


def _counting(levels: Levels, starts: Indices) -> npt.NDArray[np.bool_]:
    """Which records count where compactions look up older ones (``LookupMergeFunction``).

    Such a compaction has merged the records of higher levels into what it writes, and leaves them.
    """
    no_level = np.iinfo(np.int64).max
    lowest = np.minimum.reduceat(np.where(levels > 0, levels, no_level), starts)
    sizes = np.diff(np.append(starts, len(levels)))
    counting: npt.NDArray[np.bool_] = (levels == 0) | (levels == np.repeat(lowest, sizes))
    return counting


@dataclass(frozen=True, slots=True)
class KeyedSchema:
    """How rows are stored and merged.

    ``columns`` are all columns of the table, in its order, as in data files. ``key`` is the primary
    key without the partition keys, in its order. ``thin``: new files have the key columns only as
    ``_KEY_<name>``. ``looks_up``: compactions look up older records on higher levels.
    """

    columns: pa.Schema
    key: tuple[str, ...]
    engine: MergeEngine
    thin: bool = False
    looks_up: bool = False
