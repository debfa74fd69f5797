"""Paimon tables on the real S3 server, filled and looked at through the folder that it serves."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.contract.request import CatalogSpec
from tests.conformance.harness import TableState
from tests.conformance.paimon_harness import PaimonHarness
from tests.support.stores import ObjectStore
from tests.support.table_kinds import TableKind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.spi.connector import Connector


class S3Harness(PaimonHarness):
    """Like ``PaimonHarness``, but what is tested sees the warehouse only through the server."""

    def __init__(
        self,
        spark: SparkSession,
        warehouse: Path,
        *,
        partitioned: bool,
        kind: TableKind,
        store: ObjectStore,
    ) -> None:
        assert store.folder is not None
        self._store = store
        self._bucket = f"tests-{uuid.uuid4().hex[:12]}"
        (store.folder / self._bucket).symlink_to(warehouse.parent)
        self._location = f"s3://{self._bucket}/{warehouse.name}"
        super().__init__(spark, warehouse, partitioned=partitioned, kind=kind)

    @property
    def catalog(self) -> CatalogSpec:
        return self._store.catalog(self._location)

    def open(self) -> Connector:
        from spark_jobs.connectors.registry import open_connector

        return open_connector(self.catalog, self._store.credentials)

    def state(self) -> TableState:
        state = super().state()
        return replace(state, operations=state.operations - {"conditional-put"})
