"""Columns that a layout derives from new rows, computed by the connector's function in executors.

Imported by executors: nothing here needs a table library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from spark_jobs.engine.runtime.older_spark import parsed_type
from spark_jobs.spi import rows
from spark_jobs.spi.arrow_tasks import map_in_arrow
from spark_jobs.spi.writes import DerivedColumns


def with_derived_columns(
    changes: DataFrame, derived: DerivedColumns, *, of_all: bool = False
) -> DataFrame:
    """``changes`` followed by the derived columns, which are NULL except in INSERT rows.

    ``of_all``: they are computed for the rows of all operations.
    """
    names = [*changes.columns, *(name for name, _ in derived.columns)]
    types = [field.dataType for field in changes.schema]
    types += [parsed_type(kind) for _, kind in derived.columns]
    schema = StructType([StructField(f"c{i}", kind) for i, kind in enumerate(types)])
    derivation = Derivation(derived, tuple(changes.columns), of_all)
    return map_in_arrow(by_position(changes), derivation, schema).toDF(*names)


def by_position(frame: DataFrame) -> DataFrame:
    """``frame`` with the names ``c0``, ``c1`` …, with which ``mapInArrow`` takes any frame.

    PySpark parses names, and a dot in a name would lead to a field.
    """
    return frame.toDF(*(f"c{index}" for index in range(len(frame.columns))))


@dataclass(frozen=True, slots=True)
class Derivation:
    """A function for ``mapInArrow``: adds the derived columns to change rows. Picklable.

    ``columns`` are the names of the incoming columns. ``of_all``: not only INSERT rows get values.
    """

    derived: DerivedColumns
    columns: tuple[str, ...]
    of_all: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Add the derived columns to each batch, with names by position."""
        for batch in batches:
            added = self._derive(batch.rename_columns(list(self.columns)))
            arrays = [*batch.columns, *added]
            yield pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(len(arrays))])

    def _derive(self, batch: pa.RecordBatch) -> list[pa.Array]:
        if self.of_all:
            return list(self.derived.function(batch.select(list(self.derived.inputs))))
        is_insert = pc.equal(batch.column(rows.OPERATION), rows.INSERT)
        new_rows = batch.select(list(self.derived.inputs)).filter(is_insert)
        values = self.derived.function(new_rows)
        empty = [pa.nulls(batch.num_rows, array.type) for array in values]
        return [
            pc.replace_with_mask(nulls, is_insert, array)
            for nulls, array in zip(empty, values, strict=True)
        ]
