"""Where the new files of a table belong, and what they are like. Runs on executors."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa

from spark_jobs.connectors.iceberg.format.row_lineage import COLUMNS
from spark_jobs.connectors.iceberg.format.schema import IcebergType, spark_type
from spark_jobs.connectors.iceberg.format.transforms import (
    FLOATING,
    field_values,
    path_text,
    raw_value,
    transformed,
)
from spark_jobs.datafiles.loose_rows import sortable
from spark_jobs.datafiles.rolling_writer import NewFiles
from spark_jobs.formats.iceberg.transforms import keeps_type
from spark_jobs.spi.rows import RESERVED_PREFIX
from spark_jobs.spi.writes import WriteLayout

_COLUMN = f"{RESERVED_PREFIX}partition_"
_BITS = f"{RESERVED_PREFIX}bits_"

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
        return self.kind.name in FLOATING

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
        """The values of each partition field, as people write them, then those of ``sorted_by``."""
        values = [each.values(batch) for each in self.columns]
        pairs = list(zip(self.columns, values, strict=True))
        named = [field_values(each, column.transform) for column, each in pairs]
        return [*named, *(sortable(each) for column, each in pairs if column.is_floating)]

    @property
    def sorted_by(self) -> Mapping[int, tuple[str, str]]:
        """Columns that keep 0.0 apart from -0.0, with their types, by the number of the field."""
        return {
            number: (f"{_BITS}{number}", column.sort_type)
            for number, column in enumerate(self.columns)
            if column.is_floating
        }


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

    def of_old_rows(self) -> NewFileLayout:
        """The layout of files that store the ids of their rows."""
        return replace(self, files=replace(self.files, schema=COLUMNS.added_to(self.files.schema)))

    def place_columns(self, rows: pa.RecordBatch | pa.Table, stored: pa.Table) -> list[Any]:
        """The values of the partition fields, as they were derived."""
        del stored
        return [rows.column(derived_name(number)) for number in range(len(self.partition))]

    def place(self, values: Sequence[pa.Scalar]) -> Partition:
        """The partition of rows with these values."""
        pairs = zip(self.partition, values, strict=True)
        return tuple(raw_value(value, column.transform) for column, value in pairs)

    def folder(self, place: Partition) -> str:
        """The folder for a new file of a partition."""
        parts = [
            f"{each.name}={path_text(each.kind, each.transform, value)}"
            for each, value in zip(self.partition, place, strict=True)
        ]
        if self.spread is None:
            return "/".join((self.root, *parts))
        kept = parts if self.spread.has_partitions else ()
        return "/".join((self.root, *self.spread.folders(), *kept))
