"""Tables of the format in miniature that proves the SPI."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from spark_jobs.contract.request import CatalogSpec
from spark_jobs.spi.connector import Connector
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ROW_GROUP_SIZE, Row
from tests.support.folder_connector import storage
from tests.support.folder_connector.append import append
from tests.support.folder_connector.connector import open_folder_connector


class FolderHarness(Harness):
    """A folder of parquet files with manifests."""

    @property
    def catalog(self) -> CatalogSpec:
        return CatalogSpec("folder", str(self.warehouse))

    @property
    def _folder(self) -> Path:
        return self.warehouse / TARGET.database / TARGET.table

    def open(self) -> Connector:
        return open_folder_connector(str(self.warehouse), ROW_GROUP_SIZE)

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
