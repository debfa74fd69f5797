"""Targets as Iceberg tables, made, filled and read with pyiceberg."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import JobRequest, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.merge.physical_plan import PlanLimits
from tests.oracle.merge import TableColumn
from tests.property.cases import Table
from tests.property.paimon_tables import BUCKET_KEY, DATABASE, arrow_table
from tests.support.iceberg_files import catalog_spec, delete_paths, open_catalog
from tests.support.iceberg_version_3 import give_ids, upgrade

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DELETES = ("-deletes.parquet", ".puffin")


@dataclass(frozen=True)
class IcebergTable:
    """One table; every look at it opens it anew. Without a partition column it gets a transform."""

    spark: SparkSession
    warehouse: Path
    name: str
    columns: tuple[TableColumn, ...]
    rewrite_share: float | None

    @classmethod
    def create(cls, spark: SparkSession, warehouse: Path, name: str, table: Table) -> IcebergTable:
        """A new table with the rows of ``table``, one commit after another."""
        created = cls(spark, warehouse, name, table.columns, table.rewrite_share)
        catalog = open_catalog(warehouse)
        catalog.create_namespace_if_not_exists(DATABASE)
        mode = "merge-on-read" if table.kind.marks_rows else "copy-on-write"
        properties = {
            "format-version": "2",
            "write.parquet.row-group-limit": str(table.row_group_size),
            "write.metadata.metrics.default": "full" if table.statistics else "none",
            **{f"write.{each}.mode": mode for each in ("merge", "update", "delete")},
        }
        made = catalog.create_table(
            (DATABASE, name), arrow_table(table.columns, []).schema, properties=properties
        )
        # Every other table has only files of an older spec, without partitions.
        is_older = len(table.commits) % 2 == 0
        if table.partition and not is_older:
            with made.update_spec() as spec:
                spec.add_identity(table.partition)
        schema = made.schema().as_arrow()
        with made.transaction() as transaction:
            for rows in table.commits:
                transaction.append(arrow_table(table.columns, rows).cast(schema))
        if table.partition and is_older:
            with made.update_spec() as spec:
                spec.add_identity(table.partition)
        elif not table.partition:
            # pyiceberg transforms no values: its own files are of the spec before.
            with made.update_spec() as spec:
                spec.add_field(BUCKET_KEY, "truncate[7]" if is_older else "bucket[3]")
        if table.kind.version == 3:
            upgrade(catalog.load_table((DATABASE, name)))
            # Every other table begins with rows that have no ids yet.
            if len(table.commits) % 2:
                give_ids(catalog_spec(warehouse), TableName(DATABASE, name))
        return created

    def run(self, request: JobRequest, limits: PlanLimits) -> JobResult:
        """Run a job on the table."""
        spec = catalog_spec(self.warehouse)
        options = replace(request.options, rewrite_share=self.rewrite_share)
        request = replace(request, catalog=spec, options=options)
        return Job(request, self.spark, open_connector(spec, {}), limits=limits).run()

    def _open(self) -> Any:
        return open_catalog(self.warehouse).load_table((DATABASE, self.name))

    def rows(self) -> list[dict[str, Any]]:
        """All rows as pyiceberg reads them."""
        found: list[dict[str, Any]] = self._open().scan().to_arrow().to_pylist()
        return found

    def snapshot_id(self) -> int | None:
        """The latest snapshot."""
        snapshot = self._open().current_snapshot()
        return None if snapshot is None else int(snapshot.snapshot_id)

    def parent_id(self) -> int | None:
        """The snapshot before it."""
        snapshot = self._open().current_snapshot()
        return None if snapshot is None else snapshot.parent_snapshot_id

    def files(self) -> set[Path]:
        """All data files in the table's folder, live or not."""
        return self._all_files() - self.index_files()

    def index_files(self) -> set[Path]:
        """All files of position deletes in the table's folder, live or not."""
        return {path for path in self._all_files() if path.name.endswith(_DELETES)}

    def live_index_files(self) -> set[Path]:
        """Those of the latest snapshot."""
        return set(delete_paths(self._open()))

    def _all_files(self) -> set[Path]:
        folder = Path(urlsplit(self._open().location()).path)
        return {path for each in ("*.parquet", "*.puffin") for path in folder.rglob(each)}
