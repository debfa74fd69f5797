"""Moves the rows of files of older partition specs to partitions of the current one.

Runs on executors. Memory: that of ``SortedRuns``, and one row group that is being written, however
many partitions there are: rows are sorted by partition on the local disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from spark_jobs.connectors.iceberg.write.file_layout import (
    NewFileLayout,
    Partition,
    PartitionColumn,
    PartitionFunction,
    SortFunction,
    derived_name,
)
from spark_jobs.connectors.shared.write.new_rows import NewRowsWriter
from spark_jobs.datafiles.concatenate import InputFile, read_rows
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.sorted_runs import SortedRuns
from spark_jobs.spi.rows import RESERVED_PREFIX
from spark_jobs.spi.writes import DerivedColumns, RowOrder, SortKey

_PLACE = f"{RESERVED_PREFIX}place_"


@dataclass(frozen=True, slots=True)
class _Functions:
    """Computes the columns of several functions. Picklable."""

    functions: tuple[Callable[[pa.RecordBatch], Sequence[pa.Array]], ...]

    def __call__(self, batch: pa.RecordBatch) -> Sequence[pa.Array]:
        return [values for each in self.functions for values in each(batch)]


def move_rows(
    inputs: Iterable[InputFile],
    layout: NewFileLayout,
    order: RowOrder | None,
    new_path: Callable[[str], str],
) -> list[tuple[Partition, WrittenFile]]:
    """Write the rows of ``inputs`` to new files of their partitions, each in ``order``.

    Raises as ``concatenate``.
    """
    writer = NewRowsWriter(layout, new_path)
    files = layout.files
    try:
        with TemporaryDirectory(prefix="move-") as folder:
            by_place = _by_partition(layout.partition, order)
            runs = SortedRuns(by_place, Path(folder), files.row_group_bytes)
            for source in inputs:
                read_rows(files.filesystem, source, files, runs.add_rows)
            for table in runs.rows():
                for batch in table.combine_chunks().to_batches():
                    writer.write(_placed(layout.partition, batch))
        return writer.finish()
    except BaseException:
        writer.close_quietly()
        raise


def _by_partition(columns: tuple[PartitionColumn, ...], order: RowOrder | None) -> RowOrder:
    """Rows of a partition together, in ``order``."""
    names = [f"{_PLACE}{number}" for number in range(len(columns))]
    named = [(name, each.sort_type) for name, each in zip(names, columns, strict=True)]
    inputs = [each.source for each in columns]
    functions: list[Callable[[pa.RecordBatch], Sequence[pa.Array]]] = [SortFunction(columns)]
    if order is not None and order.derived is not None:
        inputs += order.derived.inputs
        named += order.derived.columns
        functions.append(order.derived.function)
    derived = DerivedColumns(
        tuple(dict.fromkeys(inputs)), tuple(named), _Functions(tuple(functions))
    )
    keys = order.keys if order is not None else ()
    return RowOrder((*map(SortKey, names), *keys), derived)


def _placed(columns: tuple[PartitionColumn, ...], batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with the values of their partition, as ``NewFileLayout.place_columns`` finds them."""
    found = PartitionFunction(columns)(batch)
    for number, values in enumerate(found[: len(columns)]):
        batch = batch.append_column(derived_name(number), values)
    return batch
