"""Paimon tables, made and read with pypaimon itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.connectors.paimon.read.scan import PaimonScan, Reader
from spark_jobs.contract.request import CatalogSpec
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ROW_GROUP_SIZE, Row, SeedTable
from tests.support.paimon_vectors import live_indexes, vectors
from tests.support.table_kinds import APPEND_COW, TableKind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.spi.connector import Connector


class PaimonHarness(Harness):
    """Tables of a filesystem catalog, with statistics as Java writers make them.

    ``reader``: what reads data files.
    """

    index_header = 1

    def __init__(
        self,
        spark: SparkSession,
        warehouse: Path,
        *,
        partitioned: bool,
        kind: TableKind = APPEND_COW,
        reader: Reader = "auto",
    ) -> None:
        self.kind = kind
        self.reader = reader
        super().__init__(spark, warehouse, partitioned=partitioned)
        self.marks_rows = kind.marks_rows

    def placed_by(self, table: SeedTable) -> str | None:
        return None if self.kind.buckets is None else table.bucket_key

    def options(self, table: SeedTable) -> Mapping[str, str]:
        return {"metadata.stats-mode": "full", **self.kind.options(table.bucket_key)}

    @property
    def primary_key(self) -> tuple[str, ...]:
        if not self.kind.has_key:
            return ()
        return ("p", "id") if self.partitioned else ("id",)

    @property
    def catalog(self) -> CatalogSpec:
        return CatalogSpec("paimon", str(self.warehouse))

    def open(self) -> Connector:
        from spark_jobs.connectors.registry import open_connector

        connector = open_connector(self.catalog, {})
        scan = PaimonScan(connector.storage.filesystem, self.reader)
        return replace(connector, scan=scan)

    def _table(self) -> Any:
        from pypaimon import CatalogFactory

        return CatalogFactory.create({"warehouse": str(self.warehouse)}).get_table(str(TARGET))

    def append(self, rows: Sequence[Row]) -> None:
        from pypaimon.schema.data_types import PyarrowFieldParser

        from tests.support.paimon_appends import appends_to_null_partitions, as_compacted

        table = self._table()
        schema = PyarrowFieldParser.from_paimon_schema(table.fields)
        builder = table.new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        # pypaimon has no option for it.
        small_groups = partial(pq.write_table, row_group_size=ROW_GROUP_SIZE)
        with mock.patch.object(pq, "write_table", small_groups), appends_to_null_partitions():
            write.write_arrow(pa.Table.from_pylist(list(rows), schema=schema))
            messages = write.prepare_commit()
            if self.kind.has_key:
                as_compacted(messages)
            commit.commit(messages)
        write.close()
        commit.close()

    def latest_snapshot(self) -> int | None:
        snapshots = self.warehouse.glob(f"{TARGET.database}.db/{TARGET.table}/snapshot/snapshot-*")
        return max((int(path.name.split("-")[1]) for path in snapshots), default=None)

    def read(self) -> list[Row]:
        builder = self._table().new_read_builder()
        splits = builder.new_scan().plan().splits()
        if not splits:
            return []
        rows: list[Row] = builder.new_read().to_arrow(splits).to_pylist()
        return rows

    def live_files(self) -> list[Path]:
        splits = self._table().new_read_builder().new_scan().plan().splits()
        return [Path(path) for split in splits for path in split.file_paths]

    def deleted_rows(self) -> Mapping[Path, Sequence[int]]:
        from pypaimon.deletionvectors.deletion_vector import DeletionVector

        table = self._table()
        return {
            path: list(DeletionVector.read(table.file_io, vector).bit_map())
            for path, vector in vectors(table)
        }

    def live_indexes(self) -> list[Path]:
        return sorted(live_indexes(self._table()))
