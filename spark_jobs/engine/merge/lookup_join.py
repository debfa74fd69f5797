"""Joins the target rows that a task reads with the source rows that have their keys.

The join may find too many pairs, never too few: Spark checks the whole ON condition again. Imported
by executors: nothing here needs a table library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.engine.merge.source_lookup import SourceLookup
from spark_jobs.spi import rows

if TYPE_CHECKING:
    from spark_jobs.spi.arrow_tasks import ArrowFunction

# A field of the row id: the number of the source row.
SOURCE_ROW: Final = f"{rows.RESERVED_PREFIX}source_row"

# The most rows in a batch for the JVM, and about their most bytes: a long row may have many pairs,
# and Arrow overruns memory where it copies more than 2 GiB of text.
_MOST_ROWS: Final = 16_384
_MOST_BYTES: Final = 64 * 1024 * 1024
_VALUE_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class LookupJoin:
    """A function for ``map_tasks`` that wraps ``scan``, whose last column is the row id. Picklable.

    ``keys`` are the indices of the target's key columns, in the order of the lookup's.
    """

    scan: ArrowFunction
    keys: tuple[int, ...]
    lookup: SourceLookup

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read target rows and look their keys up.

        Yields:
            The target's columns, the row id with ``SOURCE_ROW`` as its last field, and the source's
            columns, named ``c0``, ``c1`` …; pairs of a target row are neighbours.
        """
        lookup = self.lookup.opened()
        source_bytes = _longest_row(lookup.rows)
        for batch in self.scan(batches):
            codes = lookup.codes([batch.column(index) for index in self.keys])
            pair_bytes = source_bytes + _longest_row(batch)
            most = max(1, min(_MOST_ROWS, _MOST_BYTES // max(pair_bytes, 1)))
            for target, source in lookup.pairs(codes, most):
                of_target = batch.take(pa.array(target)).columns
                numbers = pa.array(source)
                pair = _with_source_row(of_target[-1], numbers)
                of_source = lookup.rows.take(numbers).columns
                arrays = [*of_target[:-1], pair, *of_source]
                yield pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(len(arrays))])


def _with_source_row(row_id: pa.StructArray, numbers: pa.Array) -> pa.StructArray:
    names = [*(field.name for field in row_id.type), SOURCE_ROW]
    return pa.StructArray.from_arrays([*row_id.flatten(), numbers], names)


def _longest_row(batch: pa.RecordBatch) -> int:
    """The most bytes that a row may have."""
    return sum(map(_longest_value, batch.columns))


def _longest_value(column: pa.Array) -> int:
    kind = column.type
    if pa.types.is_struct(kind):
        return sum(map(_longest_value, column.flatten()))
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        elements = [column.keys, column.items] if pa.types.is_map(kind) else [column.values]
        most = int(np.diff(column.offsets.to_numpy()).max(initial=0))
        return most * sum(map(_longest_value, elements))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pc.max(pc.binary_length(column)).as_py() or 0
    return _VALUE_BYTES
