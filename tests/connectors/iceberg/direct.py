"""Writes of this project without Spark and engine."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from spark_jobs.contract.properties import OPERATION_ID, STATEMENT
from spark_jobs.contract.request import TableName
from spark_jobs.spi.alterations import SchemaChange
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.sinks import MergeHandle
from spark_jobs.spi.tables import CommittedSnapshot, PlannedFile, TableHandle
from spark_jobs.spi.writes import Fragment, MergeWrite, Operation, ReadSet, whole_table
from tests.connectors.iceberg.plain_tables import NAME
from tests.support.iceberg_changes import deleted, inserted, updated


@dataclass
class DirectWrite:
    """A write of a table that has begun on its latest snapshot; ``reads``: it needs all files.

    ``changes`` are those of the table's columns that it stores.
    """

    connector: Connector
    operation_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    read_set: ReadSet = whole_table
    isolation: Any = "serializable"
    statement: str = "merge"
    rewrite_share: float | None = None
    reads: bool = True
    name: TableName = NAME
    changes: Sequence[SchemaChange] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.table: TableHandle = self.connector.metadata.load_table(self.name)
        if self.changes:
            self.table = self.connector.metadata.evolved(self.table, self.changes)
        self.connector.metadata.require_writable(self.table)
        self.files = self.connector.metadata.plan_files(self.table)
        write = MergeWrite(
            Operation(self.operation_id, "digest", {STATEMENT: self.statement}),
            self.files if self.reads else (),
            ((), ("s",)),
            ("id",),
            2**26,
            isolation=self.isolation,
            read_set=self.read_set,
            rewrite_share=self.rewrite_share,
        )
        self.handle: MergeHandle = self.connector.writes.begin_merge(self.table, write)
        self.fragments: list[Fragment] = []

    def insert(self, *new: dict[str, Any]) -> DirectWrite:
        """Store new rows, each of which has all columns."""
        return self._store(inserted(self.connector, self.table, new))

    def delete(self, file: int, *positions: int) -> DirectWrite:
        """Delete rows of a file."""
        return self._store(deleted(file, *positions))

    def update(self, file: int, position: int, s: str) -> DirectWrite:
        """Set the column ``s`` of a row of a file."""
        return self._store(updated(file, position, s=s))

    def _store(self, batch: pa.RecordBatch) -> DirectWrite:
        sink = self.handle.sinks.open(uuid.uuid4().hex)
        sink.store_merged_rows(batch)
        self.fragments += sink.finish()
        return self

    def publish(self) -> CommittedSnapshot:
        """Publish what was stored."""
        properties = {OPERATION_ID: self.operation_id, **self.properties}
        return self.connector.writes.finish_merge(
            self.table, self.handle, self.fragments, properties
        )

    def abort(self) -> None:
        """Give the write up."""
        self.connector.writes.abort_merge(self.table, self.handle)


def ids_of(catalog: Any) -> list[int]:
    """The ids in the table, as pyiceberg reads them."""
    found = catalog.library().load_table(("db", "t")).scan().to_arrow()
    return sorted(found.column("id").to_pylist())


def found(connector: Connector, operation_id: str) -> CommittedSnapshot | None:
    """The commit of an operation, as a later try looks for it."""
    return connector.writes.find_commit(connector.metadata.load_table(NAME), operation_id)


def ids_in(low: int, high: int) -> ReadSet:
    """The read set of a statement that looks for ids in a range."""

    def read_set(files: Sequence[Any]) -> Sequence[Any]:
        return [each for each in files if _may_have_ids(each, low, high)]

    return read_set


def _may_have_ids(file: PlannedFile, low: int, high: int) -> bool:
    known = file.known("id")
    if known.minimum is None or known.maximum is None:
        return known.null_count != file.row_count
    return bool(known.minimum <= high and known.maximum >= low)
