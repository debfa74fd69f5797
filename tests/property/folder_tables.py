"""Targets of the folder connector, written and read without the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from spark_jobs.contract.request import CatalogSpec, JobRequest
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.merge.physical_plan import PlanLimits
from tests.oracle.expressions import Row
from tests.oracle.merge import TableColumn
from tests.property.cases import Table
from tests.support.folder_connector import storage
from tests.support.folder_connector.append import append
from tests.support.folder_connector.connector import open_folder_connector

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class FolderTable:
    """One table; it has no deletion vectors, so no index files."""

    spark: SparkSession
    warehouse: Path
    database: str
    name: str
    columns: tuple[TableColumn, ...]
    row_group_size: int

    @classmethod
    def create(
        cls, spark: SparkSession, warehouse: Path, database: str, name: str, table: Table
    ) -> FolderTable:
        """A new table with the rows of ``table``: a commit for each partition of each of its."""
        created = cls(spark, warehouse, database, name, table.columns, table.row_group_size)
        columns = tuple(ColumnSpec(each.name, each.type, each.nullable) for each in table.columns)
        spec = CreateTableSpec(columns, (table.partition,) if table.partition else ())
        storage.write_schema(created.folder, spec)
        for rows in table.commits:
            for part in _parts(rows, table.partition):
                append(spark, created.folder, part, table.row_group_size)
        return created

    @property
    def folder(self) -> Path:
        """Where the table is."""
        return self.warehouse / self.database / self.name

    def run(self, request: JobRequest, limits: PlanLimits) -> JobResult:
        """Run a job on the table."""
        connector = open_folder_connector(str(self.warehouse), self.row_group_size)
        request = replace(request, catalog=CatalogSpec("folder", str(self.warehouse)))
        return Job(request, self.spark, connector, limits=limits).run()

    def rows(self) -> list[dict[str, Any]]:
        """All rows."""
        names = storage.read_manifest(self.folder, self.snapshot_id())["files"]
        return [row for name in names for row in pq.read_table(self.folder / name).to_pylist()]

    def snapshot_id(self) -> int | None:
        """The latest snapshot."""
        return storage.latest_snapshot(self.folder)

    def parent_id(self) -> int | None:
        """The snapshot before it."""
        return (self.snapshot_id() or 0) - 1 or None

    def files(self) -> set[Path]:
        """All data files in the table's folder, live or not."""
        return set(self.folder.rglob("*.parquet"))

    def index_files(self) -> set[Path]:
        """None."""
        return set()

    live_index_files = index_files


def _parts(rows: Sequence[Row], partition: str | None) -> list[list[Row]]:
    if partition is None:
        return [list(rows)]
    ordered = sorted(rows, key=lambda row: repr(row[partition]))
    return [list(part) for _, part in groupby(ordered, key=lambda row: row[partition])]
