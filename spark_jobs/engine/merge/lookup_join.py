"""Joins the target rows that a task reads with the source rows that have their keys.

The join may find too many pairs, never too few: Spark checks the whole ON condition again. Imported
by executors: nothing here needs a table library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from spark_jobs.engine.merge.source_lookup import SourceLookup
from spark_jobs.spi import rows

if TYPE_CHECKING:
    from spark_jobs.spi.arrow_tasks import ArrowFunction

# A field of the row id: the number of the source row.
SOURCE_ROW: Final = f"{rows.RESERVED_PREFIX}source_row"

# The most rows in a batch for the JVM.
_MOST_ROWS: Final = 16_384


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
        for batch in self.scan(batches):
            codes = lookup.codes([batch.column(index) for index in self.keys])
            for target, source in lookup.pairs(codes, _MOST_ROWS):
                of_target = batch.take(pa.array(target)).columns
                numbers = pa.array(source)
                pair = _with_source_row(of_target[-1], numbers)
                of_source = lookup.rows.take(numbers).columns
                arrays = [*of_target[:-1], pair, *of_source]
                yield pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(len(arrays))])


def _with_source_row(row_id: pa.StructArray, numbers: pa.Array) -> pa.StructArray:
    names = [*(field.name for field in row_id.type), SOURCE_ROW]
    return pa.StructArray.from_arrays([*row_id.flatten(), numbers], names)
