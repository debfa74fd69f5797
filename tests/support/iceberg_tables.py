"""Iceberg tables as other writers make them: pyiceberg's metadata, about files that nobody reads.

Sensors, triggers and hooks read metadata alone, so the data files that it names are not there.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType, TimestampType

_PATH_ID = 2147483546
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "ts", TimestampType()),
    NestedField(3, "city", StringType()),
    identifier_field_ids=[1],
)
BY_DAY = PartitionSpec(
    PartitionField(2, 1000, DayTransform(), "ts_day"),
    PartitionField(3, 1001, IdentityTransform(), "city"),
)


@dataclass
class IcebergTable:
    """A table that tests change as other writers do."""

    catalog: Catalog
    identifier: tuple[str, ...]
    branch: str = "main"
    properties: dict[str, str] = field(default_factory=dict)

    @classmethod
    def create(
        cls,
        catalog: Catalog,
        identifier: tuple[str, ...] = ("shop", "orders"),
        spec: PartitionSpec = BY_DAY,
        schema: Schema = SCHEMA,
        **properties: str,
    ) -> IcebergTable:
        """A new table, with its namespace."""
        for depth in range(1, len(identifier)):
            catalog.create_namespace_if_not_exists(identifier[:depth])
        catalog.create_table(identifier, schema, partition_spec=spec, properties=properties)
        return cls(catalog, identifier)

    @property
    def table(self) -> Table:
        """The table as it is now."""
        return self.catalog.load_table(self.identifier)

    def append(self, *partition: Any, rows: int = 1) -> int:
        """Add a file of some rows to a partition, whose values are as manifests have them."""
        return self._commit(self._file(partition, rows), Operation.APPEND)

    def replace(self, path: str, rows: int) -> int:
        """Put another file in the place of one, as a change of rows does."""
        table = self.table
        (gone,) = (task.file for task in table.scan().plan_files() if task.file.file_path == path)
        values = [gone.partition[place] for place in range(len(table.spec().fields))]
        with table.transaction() as changes:
            update = changes.update_snapshot(self.properties, self.branch)
            with update.overwrite() as snapshot:
                snapshot.delete_data_file(gone)
                snapshot.append_data_file(self._file(tuple(values), rows))
        return self.head

    def compact(self) -> int:
        """Publish a snapshot that keeps all rows."""
        return self._commit(None, Operation.REPLACE)

    def mark(
        self, *partition: Any, rows: int, of: str | None = None, by_value: bool = False
    ) -> int:
        """Delete rows of a partition by a file of deletes: of one data file, or of any."""
        file = self._file(partition, rows, of)
        kind = DataFileContent.EQUALITY_DELETES if by_value else DataFileContent.POSITION_DELETES
        file._data[0] = kind
        return self._commit(file, Operation.DELETE)

    def mark_positions(self, positions: Mapping[str, Sequence[int]], *partition: Any) -> int:
        """Delete rows of data files of a partition by one file of deletes, which is written."""
        rows = sorted((path, place) for path, places in positions.items() for place in places)
        only = next(iter(positions)) if len(positions) == 1 else None
        file = self._file(partition, len(rows), only)
        table = pa.table({"file_path": [p for p, _ in rows], "pos": [n for _, n in rows]})
        numbers = dict(zip(table.column_names, (_PATH_ID, _PATH_ID - 1), strict=True))
        fields = [
            each.with_metadata({"PARQUET:field_id": str(numbers[each.name])})
            for each in table.schema
        ]
        with self.table.io.new_output(file.file_path).create() as stream:
            pq.write_table(table.cast(pa.schema(fields)), stream)
        file._data[0] = DataFileContent.POSITION_DELETES
        return self._commit(file, Operation.DELETE)

    def paths(self) -> list[str]:
        """The data files, the oldest first."""
        entries = self.table.inspect.entries().to_pylist()
        files = [(each["sequence_number"], each["data_file"]["file_path"]) for each in entries]
        return [path for _, path in sorted(files)]

    @property
    def head(self) -> int:
        """The newest snapshot's id."""
        snapshot = self.table.metadata.snapshot_by_name(self.branch)
        assert snapshot is not None
        return snapshot.snapshot_id

    def _file(self, partition: tuple[Any, ...], rows: int, of: str | None = None) -> DataFile:
        bounds = {_PATH_ID: of.encode()} if of else {}
        table = self.table
        return DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"{table.location()}/data/{uuid.uuid4()}.parquet",
            file_format=FileFormat.PARQUET,
            partition=Record(*partition),
            record_count=rows,
            file_size_in_bytes=1000,
            column_sizes={},
            value_counts={},
            null_value_counts={},
            nan_value_counts={},
            lower_bounds=bounds,
            upper_bounds=bounds,
            spec_id=table.spec().spec_id,
        )

    def _commit(self, file: DataFile | None, operation: Operation) -> int:
        """Publish a snapshot that adds one file, or none."""
        table = self.table
        metadata, io = table.metadata, table.io
        parent = metadata.snapshot_by_name(self.branch)
        snapshot_id, folder = metadata.new_snapshot_id(), f"{table.location()}/metadata"
        manifests = parent.manifests(io) if parent else []
        if file is not None:
            output = io.new_output(f"{folder}/{uuid.uuid4()}-m0.avro")
            is_data = file.content is DataFileContent.DATA
            kind = ManifestWriterV2 if is_data else _DeletesWriter
            entry = ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED, snapshot_id=snapshot_id, data_file=file
            )
            with kind(table.spec(), table.schema(), output, snapshot_id, "deflate") as writer:
                writer.add(entry)
            manifests = [writer.to_manifest_file(), *manifests]
        number, path = metadata.next_sequence_number(), f"{folder}/snap-{uuid.uuid4()}.avro"
        parent_id = parent.snapshot_id if parent else None
        lists = write_manifest_list(2, io.new_output(path), snapshot_id, parent_id, number, "null")
        with lists as listed:
            listed.add_manifests(manifests)
        snapshot = Snapshot(
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=number,
            manifest_list=path,
            summary=Summary(operation, **self.properties),
            schema_id=metadata.current_schema_id,
        )
        ref = SetSnapshotRefUpdate(ref_name=self.branch, type="branch", snapshot_id=snapshot_id)
        self.catalog.commit_table(table, (), (AddSnapshotUpdate(snapshot=snapshot), ref))
        return snapshot_id


class _DeletesWriter(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}
