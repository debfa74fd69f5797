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
    """A live data file: what identifies it on disk, and its rows in order."""

    inode: int
    size: int
    rows: tuple[Row, ...] = field(compare=False)


@dataclass(frozen=True)
class TableState:
    """A table as others see it. ``on_disk``: every data file, live or not."""

    snapshot_id: int | None
    files: Mapping[str, DataFile]
    rows: Sequence[Row]
    on_disk: frozenset[str]
    operations: frozenset[str]


class Harness(ABC):
    """One connector on one warehouse folder; ``partitioned``: the target is, by ``p``."""

    table_options: Mapping[str, str] = {}

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

    def create(self, table: SeedTable) -> None:
        """Make the target and fill it."""
        keys = ("p",) if self.partitioned else ()
        spec = CreateTableSpec(table.columns, keys, table_options=self.table_options)
        self.connector.metadata.create_table(TARGET, spec)
        for rows in table.files:
            self.append(rows)

    def state(self) -> TableState:
        """The target now."""
        live = self.live_files()
        return TableState(
            snapshot_id=self.latest_snapshot(),
            files={str(path): _data_file(path) for path in live},
            rows=self.read(),
            on_disk=frozenset(str(path) for path in self.warehouse.rglob("*.parquet")),
            operations=frozenset(each.name for each in self.warehouse.glob("_operations/*")),
        )


def _data_file(path: Path) -> DataFile:
    status = path.stat()
    rows = pq.ParquetFile(path).read().to_pylist()
    return DataFile(status.st_ino, status.st_size, tuple(rows))
