"""Real tables of both formats whose data files other writers made."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow.parquet as pq

from spark_jobs.connectors.paimon.library import data_files, table_schema
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.spi.connector import Connector

# As Spark with Iceberg names it, if it reads the tables of the folder.
_CATALOG = "ice"
_NAMESPACE = "db"
_MARKED = {
    "paimon": {"deletion-vectors.enabled": "true"},
    "iceberg": {f"write.{each}.mode": "merge-on-read" for each in ("merge", "update", "delete")},
}


@dataclass(frozen=True)
class ForeignTable:
    """A table in a folder of its own; ``marks`` rows as deleted or rewrites files."""

    folder: Path
    format: Literal["paimon", "iceberg"]
    marks: bool
    name: TableName = field(default_factory=lambda: TableName(_NAMESPACE, "t"))

    @property
    def catalog(self) -> CatalogSpec:
        """The catalog, as a request names it."""
        if self.format == "paimon":
            return CatalogSpec("paimon", str(self.folder))
        options = {
            "type": "sql",
            "uri": f"sqlite:///{self.folder}/catalog.db",
            "warehouse": f"file://{self.folder}/warehouse",
            "catalog-name": _CATALOG,
        }
        return CatalogSpec("iceberg", f"{self.folder}/warehouse", options)

    def connector(self) -> Connector:
        """The connector to the table."""
        return open_connector(self.catalog, {})

    def create(self, columns: Mapping[str, str], options: Mapping[str, str] | None = None) -> None:
        """Make the table with columns of these Spark types."""
        (self.folder / "warehouse").mkdir(parents=True, exist_ok=True)
        if self.format == "iceberg":
            self.library().create_namespace_if_not_exists(_NAMESPACE)
        marks = _MARKED[self.format] if self.marks else {}
        spec = CreateTableSpec(
            tuple(ColumnSpec(name, kind) for name, kind in columns.items()),
            table_options={**marks, **(options or {})},
        )
        assert self.connector().metadata.create_table(self.name, spec)

    def put(self, files: Sequence[Path]) -> None:
        """Commit copies of files as data files, without bounds."""
        if self.format == "paimon":
            self._put_in_paimon(files)
        else:
            self._put_in_iceberg(files)

    def library(self) -> Any:
        """pyiceberg's catalog."""
        from pyiceberg.catalog.sql import SqlCatalog

        options = self.catalog.options
        return SqlCatalog(_CATALOG, uri=options["uri"], warehouse=options["warehouse"])

    def live_files(self) -> list[Path]:
        """The data files of the latest snapshot."""
        connector = self.connector()
        files = connector.metadata.plan_files(connector.metadata.load_table(self.name))
        return [Path(each.path) for each in files]

    def _put_in_paimon(self, files: Sequence[Path]) -> None:
        from pypaimon.write.commit_message import CommitMessage

        table = self.connector().metadata.load_table(self.name).native.table
        folder = Path(table_schema.bucket_directory(table, (), 0))
        folder.mkdir(parents=True, exist_ok=True)
        described = []
        for file in files:
            path = folder / f"data-{uuid.uuid4()}-0.parquet"
            shutil.copyfile(file, path)
            described.append(
                data_files.new_data_file(table, str(path), path.stat().st_size, _rows(file), {})
            )
        commit = table.new_batch_write_builder().new_commit()
        commit.commit([CommitMessage((), 0, described)])
        commit.close()

    def _put_in_iceberg(self, files: Sequence[Path]) -> None:
        from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
        from pyiceberg.table import TableProperties
        from pyiceberg.typedef import Record

        table = self.library().load_table((_NAMESPACE, self.name.table))
        folder = self.folder / "outside"
        folder.mkdir(exist_ok=True)
        mapping = table.schema().name_mapping.model_dump_json()
        with table.transaction() as transaction:
            if TableProperties.DEFAULT_NAME_MAPPING not in table.properties:
                transaction.set_properties({TableProperties.DEFAULT_NAME_MAPPING: mapping})
            with transaction.update_snapshot().fast_append() as append:
                for file in files:
                    path = folder / f"{uuid.uuid4()}.parquet"
                    shutil.copyfile(file, path)
                    append.append_data_file(
                        DataFile.from_args(
                            content=DataFileContent.DATA,
                            file_path=f"file://{path}",
                            file_format=FileFormat.PARQUET,
                            partition=Record(),
                            record_count=_rows(file),
                            file_size_in_bytes=path.stat().st_size,
                            sort_order_id=None,
                            spec_id=table.spec().spec_id,
                            equality_ids=None,
                            key_metadata=None,
                        )
                    )


def _rows(file: Path) -> int:
    return int(pq.read_metadata(file).num_rows)
