"""How the suite makes, fills and looks at a connector's tables: without this project's code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.contract.statements import CreateTableSpec
from tests.conformance.tables import Row, SeedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.spi.connector import Connector

TARGET = TableName("db", "target")


@dataclass(frozen=True)
class DataFile:
    """A live data file: what identifies it on disk, and its rows in order.

    Rows that a deletion vector marks, ``deleted`` many, are not among ``rows``.
    """

    inode: int
    size: int
    rows: tuple[Row, ...] = field(compare=False)
    deleted: int = 0


@dataclass(frozen=True)
class TableState:
    """A table as others see it.

    ``indexes``: sizes of what marks rows in live index files; ``on_disk``: every data and every
    index file, live or not.
    """

    snapshot_id: int | None
    files: Mapping[str, DataFile]
    indexes: Mapping[str, int]
    rows: Sequence[Row]
    on_disk: frozenset[str]
    operations: frozenset[str]


class Harness(ABC):
    """One connector on one warehouse folder; ``partitioned``: the target is, by ``p``.

    ``marks_rows``: changed rows may stay in their file, marked as deleted; ``moves_updates``: all
    updated rows leave their file. ``can_move``: a copy of the warehouse may be used elsewhere.
    ``index_header``: the bytes of an index file that mark no rows.
    """

    marks_rows = False
    moves_updates = False
    can_move = True
    index_header = 0

    def __init__(self, spark: SparkSession, warehouse: Path, *, partitioned: bool) -> None:
        self.spark = spark
        self.warehouse = warehouse
        self.partitioned = partitioned
        self.connector = self.open()

    @property
    @abstractmethod
    def catalog(self) -> CatalogSpec:
        """The catalog as a request names it."""

    @abstractmethod
    def open(self) -> Connector:
        """The connector on the warehouse, which need not exist."""

    @abstractmethod
    def append(self, rows: Sequence[Row]) -> None:
        """Add rows of one partition to the target, as one file and one commit."""

    @abstractmethod
    def latest_snapshot(self) -> int | None:
        """The id of the target's latest snapshot."""

    @abstractmethod
    def read(self) -> list[Row]:
        """The target's rows."""

    @abstractmethod
    def live_files(self) -> list[Path]:
        """The target's data files in the latest snapshot."""

    def options(self, table: SeedTable) -> Mapping[str, str]:
        """The options of a new target."""
        return {}

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The primary key of a new target."""
        return ()

    def placed_by(self, table: SeedTable) -> str | None:
        """The column of ``table`` that decides the file of a row, beside ``p``."""
        return None

    def deleted_rows(self) -> Mapping[Path, Sequence[int]]:
        """Positions of the rows of live files that deletion vectors mark."""
        return {}

    def live_indexes(self) -> list[Path]:
        """The index files of the latest snapshot: deletion vectors, where keys are."""
        return []

    def marking_bytes(self, index: Path) -> int:
        """The bytes of an index file that mark rows."""
        return index.stat().st_size - self.index_header

    def follows(self, before: int | None, after: int | None) -> bool:
        """Whether the snapshot ``after`` was made right after ``before``."""
        return after == (before or 0) + 1

    def create(self, table: SeedTable) -> None:
        """Make the target and fill it."""
        keys = ("p",) if self.partitioned else ()
        spec = CreateTableSpec(table.columns, keys, self.primary_key, self.options(table))
        self.connector.metadata.create_table(TARGET, spec)
        for rows in table.files:
            self.append(rows)

    def state(self) -> TableState:
        """The target now."""
        deleted = self.deleted_rows() if self.marks_rows else {}
        indexes = self.live_indexes()
        patterns = ("*.parquet", "*.puffin", "index/index-*")
        found = (path for each in patterns for path in self.warehouse.rglob(each))
        return TableState(
            snapshot_id=self.latest_snapshot(),
            files={
                str(path): _data_file(path, deleted.get(path, ())) for path in self.live_files()
            },
            indexes={str(path): self.marking_bytes(path) for path in indexes},
            rows=self.read(),
            on_disk=frozenset(map(str, found)),
            operations=frozenset(
                each.name
                for each in self.warehouse.glob("_operations/*")
                if each.suffix != ".fence"  # of an earlier try; it stays for 30 days
            ),
        )


def _data_file(path: Path, deleted: Sequence[int]) -> DataFile:
    status = path.stat()
    rows = pq.ParquetFile(path).read().to_pylist()
    kept = tuple(row for position, row in enumerate(rows) if position not in deleted)
    return DataFile(status.st_ino, status.st_size, kept, len(deleted))
