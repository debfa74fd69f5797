"""Paimon tables in HDFS, filled and looked at in a local folder that is copied there and back."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from spark_jobs.contract.request import CatalogSpec
from tests.conformance.harness import TableState
from tests.conformance.paimon_harness import PaimonHarness
from tests.judge.hdfs_server import Hdfs
from tests.support.table_kinds import TableKind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.spi.connector import Connector


class HdfsHarness(PaimonHarness):
    """Like ``PaimonHarness``, but what is tested sees only the warehouse in HDFS."""

    def __init__(
        self,
        spark: SparkSession,
        warehouse: Path,
        *,
        partitioned: bool,
        kind: TableKind,
        hdfs: Hdfs,
    ) -> None:
        self._client = hdfs.client()
        self._location = hdfs.new_warehouse()
        self._folder = PurePosixPath(self._location.removeprefix(hdfs.uri))
        for file in warehouse.rglob("*"):
            if file.is_file():
                place = self._folder / file.relative_to(warehouse)
                with self._client.create(str(place)) as copy:
                    copy.write(file.read_bytes())
        super().__init__(spark, warehouse, partitioned=partitioned, kind=kind)

    @property
    def catalog(self) -> CatalogSpec:
        return CatalogSpec("paimon", self._location)

    def open(self) -> Connector:
        from spark_jobs.connectors.registry import open_connector

        return open_connector(self.catalog, {})

    def state(self) -> TableState:
        self._copy_back()
        return super().state()

    def _copy_back(self) -> None:
        """Make the local folder what the warehouse is; what did not change is left alone."""
        found = {
            str(PurePosixPath(status.path).relative_to(self._folder)): status
            for status in self._client.list_status(str(self._folder), True)
            if not status.isdir
        }
        for file in self.warehouse.rglob("*"):
            if file.is_file() and str(file.relative_to(self.warehouse)) not in found:
                file.unlink()
        for name, status in found.items():
            file = self.warehouse / name
            if not file.exists() or file.stat().st_size != status.length:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(bytes(self._client.read(status.path).read()))
