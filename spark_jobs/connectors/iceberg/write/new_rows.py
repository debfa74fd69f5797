"""Writes new rows of a table into files of their partitions. Runs on executors."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from spark_jobs.connectors.iceberg.format.schema import IcebergType, spark_type
from spark_jobs.connectors.iceberg.format.transforms import (
    field_values,
    keeps_type,
    path_text,
    raw_value,
    transformed,
)
from spark_jobs.datafiles.conform import conform
from spark_jobs.datafiles.loose_rows import sortable
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.rolling_writer import NewFiles, RollingWriter
from spark_jobs.datafiles.runs import codes_of, runs_of_equal
from spark_jobs.spi.rows import RESERVED_PREFIX
from spark_jobs.spi.writes import WriteLayout

_COLUMN = f"{RESERVED_PREFIX}partition_"

Partition = tuple[Any, ...]


class PartitionColumn(NamedTuple):
    """A field of the partition spec or the sort order of new rows, and its source column."""

    field_id: int
    name: str
    transform: str
    source: str
    kind: IcebergType

    @property
    def is_floating(self) -> bool:
        """Whether its source column is FLOAT or DOUBLE."""
        return self.kind.name in ("float", "double")

    @property
    def sort_type(self) -> str:
        """The Spark type of its values as ``SortFunction`` makes them, in DDL form."""
        kept = "BIGINT" if self.is_floating else spark_type(self.kind)
        return kept if keeps_type(self.transform) else "INT"

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """Those of its rows, as Avro holds them."""
        return transformed(batch.column(self.source), self.kind, self.transform)


def derived_name(number: int) -> str:
    """The column with the values of partition field ``number``, beside change rows."""
    return f"{_COLUMN}{number}"


@dataclass(frozen=True, slots=True)
class PartitionFunction:
    """Computes the partition values of rows; for ``DerivedColumns``. Picklable."""

    columns: tuple[PartitionColumn, ...]

    def __call__(self, batch: pa.RecordBatch) -> Sequence[pa.Array]:
        """The values of each partition field, as people write them."""
        return [field_values(each.values(batch), each.transform) for each in self.columns]


@dataclass(frozen=True, slots=True)
class SortFunction:
    """Computes what rows are sorted by; for ``DerivedColumns``. Picklable."""

    columns: tuple[PartitionColumn, ...]

    def __call__(self, batch: pa.RecordBatch) -> Sequence[pa.Array]:
        """The values of each field."""
        return [sortable(each.values(batch)) for each in self.columns]


@dataclass(frozen=True, slots=True)
class Spread:
    """Folders for a store that divides its work by the names of files.

    Follows Iceberg's ``ObjectStoreLocationProvider``, but by chance: nobody looks a file up by its
    folder. ``context`` are folders that tell the table's files from those of others in the same
    place. ``has_partitions``: partitions have folders, too.
    """

    context: tuple[str, ...]
    has_partitions: bool

    def folders(self) -> Sequence[str]:
        """The folders of a new file."""
        bits = f"{secrets.randbits(20):020b}"
        return (bits[:4], bits[4:8], bits[8:12], bits[12:], *self.context)


@dataclass(frozen=True, slots=True)
class NewFileLayout:
    """The properties and folders of a table's new files, and how their rows come.

    ``root`` is the folder of all.
    """

    files: NewFiles
    root: str
    partition: tuple[PartitionColumn, ...]
    rows: WriteLayout
    spread: Spread | None = None

    def folder(self, partition: Partition) -> str:
        """The folder for a new file of a partition."""
        parts = [
            f"{each.name}={path_text(each.kind, each.transform, value)}"
            for each, value in zip(self.partition, partition, strict=True)
        ]
        if self.spread is None:
            return "/".join((self.root, *parts))
        kept = parts if self.spread.has_partitions else ()
        return "/".join((self.root, *self.spread.folders(), *kept))


class NewRowsWriter:
    """Writes rows that arrive clustered by partition, and sorted if the table has a sort order."""

    def __init__(self, layout: NewFileLayout, new_path: Callable[[str], str]) -> None:
        self._layout = layout
        self._writer: RollingWriter[Partition, WrittenFile] = RollingWriter(
            layout.files, lambda place: layout.files.open(new_path(layout.folder(place)))
        )

    def write(self, rows: pa.RecordBatch) -> None:
        """Take rows with all columns of the table, in any order, and those of their partition.

        Raises:
            DataError: NOT_NULL_VIOLATION or VALUE_NOT_STORABLE; names the column.
        """
        schema = self._layout.files.schema
        columns = [conform(rows.column(field.name), field) for field in schema]
        table = pa.Table.from_arrays(columns, schema=schema)
        names = [derived_name(number) for number in range(len(self._layout.partition))]
        values = [rows.column(name) for name in names]
        codes = [codes_of(pa.chunked_array([each])) for each in values]
        for start, end in runs_of_equal(table.num_rows, codes):
            place = tuple(
                raw_value(each[start], column.transform)
                for column, each in zip(self._layout.partition, values, strict=True)
            )
            self._writer.write(place, table.slice(start, end - start))

    def end_file(self) -> None:
        """Close the open file: further rows go to another one."""
        self._writer.end_file()

    def finish(self) -> list[tuple[Partition, WrittenFile]]:
        """Close the open file and return all written files with their partition."""
        return self._writer.finish()

    def close_quietly(self) -> None:
        """Abandon the open file."""
        self._writer.close_quietly()
