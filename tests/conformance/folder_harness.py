"""Tables of the format in miniature that proves the SPI."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from spark_jobs.contract.request import CatalogSpec
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import RowChangeParadigm
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ROW_GROUP_SIZE, Row
from tests.support.folder_connector import storage
from tests.support.folder_connector.append import append
from tests.support.folder_connector.connector import open_folder_connector

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FolderHarness(Harness):
    """A folder of parquet files with manifests; ``moves_updates`` as in ``Harness``."""

    def __init__(
        self,
        spark: SparkSession,
        warehouse: Path,
        *,
        partitioned: bool,
        moves_updates: bool = False,
    ) -> None:
        self.moves_updates = moves_updates
        super().__init__(spark, warehouse, partitioned=partitioned)

    @property
    def catalog(self) -> CatalogSpec:
        return CatalogSpec("folder", str(self.warehouse))

    @property
    def _folder(self) -> Path:
        return self.warehouse / TARGET.database / TARGET.table

    def open(self) -> Connector:
        paradigm = (
            RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW
            if self.moves_updates
            else RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS
        )
        return open_folder_connector(str(self.warehouse), ROW_GROUP_SIZE, paradigm)

    def append(self, rows: Sequence[Row]) -> None:
        append(self.spark, self._folder, rows, ROW_GROUP_SIZE)

    def latest_snapshot(self) -> int | None:
        return storage.latest_snapshot(self._folder)

    def read(self) -> list[Row]:
        files = self.live_files()
        return [row for path in files for row in pq.ParquetFile(path).read().to_pylist()]

    def live_files(self) -> list[Path]:
        names = storage.read_manifest(self._folder, self.latest_snapshot())["files"]
        return [self._folder / name for name in names]
