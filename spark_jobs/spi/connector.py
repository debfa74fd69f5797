"""The interfaces that a table format implements. Driver and executor halves are separate.

Modelled on Trino's ``ConnectorMetadata``, ``ConnectorMergeSink`` and ``ConnectorPageSink``, reduced
to what MERGE needs: DELETE and UPDATE are merges without a source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.contract.table_versions import TableVersion
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError
from spark_jobs.spi.alterations import ConnectorAlterations, SchemaChange
from spark_jobs.spi.arrow_rows import ArrowRows
from spark_jobs.spi.branches import ConnectorBranches
from spark_jobs.spi.changes import ConnectorChanges
from spark_jobs.spi.compaction import ConnectorCompaction
from spark_jobs.spi.evidence import DynamicFilter
from spark_jobs.spi.maintenance import ConnectorMaintenance
from spark_jobs.spi.marks import TableHistory
from spark_jobs.spi.sinks import MergeHandle
from spark_jobs.spi.storage import FileLocation, WarehouseStorage
from spark_jobs.spi.tables import CommittedSnapshot, PlannedFile, RowChangeParadigm, TableHandle
from spark_jobs.spi.undo import ConnectorUndo
from spark_jobs.spi.writes import Fragment, InsertedKeys, MergeWrite, Repacking, WriteLayout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ConnectorMetadata(Protocol):
    """Tables, their pinned snapshots, and how their rows change. Driver only.

    A read-only connector inherits the defaults of ``require_writable`` and the methods after it.
    """

    def load_table(self, name: TableName) -> TableHandle:
        """The table, pinned at its latest snapshot.

        Raises:
            CatalogError: WAREHOUSE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED, TABLE_NOT_FOUND,
                METADATA_UNREADABLE.
            NotSupportedError: its rows cannot be read correctly here; gives the reason.
        """
        ...

    def at_snapshot(self, table: TableHandle, snapshot_id: int | None) -> TableHandle | None:
        """``table`` with its columns, pinned at a snapshot of its history; None: it has none such.

        With None for ``snapshot_id``: as it was before its first snapshot.
        """
        return table if table.snapshot_id == snapshot_id else None

    def load_version(self, name: TableName, at: TableVersion, millis: int | None) -> TableHandle:
        """The table at a former state, with the columns that it had then; only to be read.

        ``millis``: the time that ``at`` means, since 1970, if it means one.

        Raises:
            CatalogError: as ``load_table``; SNAPSHOT_NOT_FOUND, TAG_NOT_FOUND.
        """
        raise NotSupportedError(
            f"{at.field}: former states of {name} cannot be read: its connector has none.",
            "Read the table as it is.",
        )

    def create_table(self, name: TableName, spec: CreateTableSpec) -> bool:
        """Create the table and its database; return False if an equal table exists.

        Raises:
            CatalogError: TABLE_DIFFERS, listing every difference; as ``load_table``.
            RequestError: REQUEST_INVALID: no column of that name or key can be in a table.
            NotSupportedError: the format does not support a type or an option.
        """
        ...

    def plan_files(self, table: TableHandle) -> tuple[PlannedFile, ...]:
        """All data files of the pinned snapshot; ``ordinal`` is the index in this tuple.

        Raises:
            NotSupportedError: a file cannot be read correctly here (another format, an older
                schema); gives the reason.
        """
        ...

    def require_writable(self, table: TableHandle) -> None:
        """Check that this table's rows can be changed; called before the methods below.

        Raises:
            NotSupportedError: they cannot be changed; gives the reason.
        """
        raise no_merge(table)

    def require_supported(
        self, table: TableHandle, assigned: frozenset[str], *, deletes: bool
    ) -> None:
        """Check what the clauses of a statement do with rows of the table.

        ``assigned`` are the columns that they update; ``deletes``: rows may be deleted.

        Raises:
            NotSupportedError: the connector cannot store that; gives the reason.
        """
        del table, assigned, deletes

    def evolved(self, table: TableHandle, changes: Sequence[SchemaChange]) -> TableHandle:
        """``table`` with other columns; nothing is stored before the write is published.

        Raises:
            NotSupportedError: the format does not allow a change; names the column.
        """
        raise NotSupportedError(
            f"schema_evolution: columns of {table.name} cannot be added by a statement.",
            "Alter the table with the engine that made it.",
        )

    def row_change_paradigm(self, table: TableHandle) -> RowChangeParadigm:
        """How the connector changes this table's rows."""
        raise no_merge(table)

    def insert_layout(self, table: TableHandle) -> WriteLayout:
        """The layout in which INSERT rows must reach the sink."""
        raise no_merge(table)

    def update_layout(self, table: TableHandle) -> WriteLayout | None:
        """The layout in which UPDATE and DELETE rows must reach the sink.

        None: rows of all operations reach it in the insert layout.
        """
        raise no_merge(table)

    def merge_row_id_columns(
        self, table: TableHandle, inserted_keys: InsertedKeys
    ) -> tuple[str, ...]:
        """The table columns that accompany the row id of UPDATE and DELETE rows.

        They have the target row's values, unless the UPDATE assigns others.
        """
        return ()


class ConnectorScan(Protocol):
    """Reads target rows through Spark. Driver only.

    ``arrow_row_id`` is the Spark type, in DDL form, of the row id, which is the last column of
    ``arrow_rows``; None if those have no row id.
    """

    arrow_row_id: str | None

    def arrow_rows(
        self,
        spark: SparkSession | None,
        table: TableHandle,
        files: Sequence[PlannedFile],
        columns: Sequence[str],
        dynamic_filter: DynamicFilter | None = None,
        tasks_per_core: int = 2,
    ) -> ArrowRows | None:
        """The rows of ``files`` as of the pinned snapshot; None if only ``read`` can read them.

        The connector may leave out rows that ``dynamic_filter`` excludes. Without a session, the
        caller runs ``function`` itself.
        """
        ...

    def read(
        self,
        spark: SparkSession,
        table: TableHandle,
        files: Sequence[PlannedFile],
        columns: Sequence[str],
        dynamic_filter: DynamicFilter | None = None,
    ) -> DataFrame:
        """The rows of ``files`` as of the pinned snapshot.

        Columns: ``columns`` in that order, with the table's names and types, then
        ``__merge_row_id``, a struct that is opaque to the engine except in ``WriteLayout``. The
        connector may leave out rows that ``dynamic_filter`` excludes, which is faster.

        Raises, when its tasks run:
            CatalogError: DATA_FILE_UNREADABLE, METADATA_UNREADABLE.
            NotSupportedError: a file cannot be read correctly here; gives the reason.
        """
        ...

    def count_rows(self, table: TableHandle, files: Sequence[PlannedFile]) -> int:
        """The number of rows of ``files`` without an exact count, read on the driver."""
        raise NotImplementedError


class ConnectorMergeWrites(Protocol):
    """The lifecycle of a write. Driver only."""

    def begin_merge(self, table: TableHandle, write: MergeWrite) -> MergeHandle:
        """Prepare the write and guard the base snapshot against expiry; write no data file yet.

        In a dry run, neither this method nor the sinks store anything.
        """
        raise no_merge(table)

    def drop_files(
        self, table: TableHandle, handle: MergeHandle, files: Sequence[PlannedFile]
    ) -> list[Fragment]:
        """Fragments that remove whole ``files`` without reading them; nothing is removed yet."""
        raise no_merge(table)

    def repacking(
        self, table: TableHandle, handle: MergeHandle, fragments: Sequence[Fragment]
    ) -> Repacking | None:
        """The new files of the write that are too many for their size; None: there are none."""
        del table, handle, fragments
        return None

    def discard(self, handle: MergeHandle, fragments: Sequence[Fragment]) -> None:
        """Remove the new files of fragments that will not be published."""
        del handle, fragments

    def changed_partitions(
        self, table: TableHandle, fragments: Sequence[Fragment]
    ) -> Sequence[Mapping[str, Any]]:
        """The partitions of the fragments' files as Python values by column; may repeat."""
        raise no_merge(table)

    def finish_merge(
        self,
        table: TableHandle,
        handle: MergeHandle,
        fragments: Sequence[Fragment],
        properties: Mapping[str, str],
    ) -> CommittedSnapshot:
        """Publish all fragments as one atomic snapshot that records ``properties``.

        ``published_properties`` adds the metrics of publishing to them. The schema of an evolved
        table is stored with it or just before; if no snapshot follows, the error says so.

        Raises:
            CommitError: COMMIT_CONFLICT (nothing was published) or COMMIT_OUTCOME_UNKNOWN.
            InternalError: STORAGE_UNAVAILABLE (nothing was published).
            JobError: raised by ``MergeWrite.require_wanted`` (nothing was published).
        """
        raise no_merge(table)

    def store_schema(self, table: TableHandle) -> None:
        """Store the schema of an evolved table for which there is no snapshot to publish.

        Raises:
            CommitError: COMMIT_CONFLICT: another writer changed the schema; COMMIT_OUTCOME_UNKNOWN.
            InternalError: STORAGE_UNAVAILABLE.
        """
        raise no_merge(table)

    def abort_merge(self, table: TableHandle, handle: MergeHandle) -> None:
        """Remove the guard and every file of a write that was certainly not published.

        The guard stays if another try of the operation has committed, or may have. The driver does
        not know of all files: sink tasks that succeeded before another one failed wrote some too.
        """
        raise no_merge(table)

    def release_guard(self, table: TableHandle, operation_id: str) -> None:
        """Let the base snapshot of a finished operation, whose result is stored, expire."""
        ...

    def find_commit(self, table: TableHandle, operation_id: str) -> CommittedSnapshot | None:
        """The snapshot that this operation committed earlier; None if it certainly committed none.

        Raises:
            CommitError: COMMIT_HISTORY_EXPIRED: snapshots since the recorded base have expired.
        """
        ...

    def recall(self, table: TableHandle, snapshot_id: int) -> CommittedSnapshot | None:
        """The snapshot of this id in the history of the table; None: it is not part of it.

        Raises:
            CommitError: COMMIT_HISTORY_EXPIRED: it may have been, and has expired.
        """
        ...

    def history(self, table: TableHandle) -> TableHistory:
        """What the snapshots up to the pinned one record: where marks are found.

        Raises:
            NotSupportedError: the connector keeps no marks.
        """
        raise NotSupportedError(
            f"{table.name}: its connector finds no marks, so it has no incremental sources.",
            "Read the source with file_source or table_source.",
        )


class NoMergeWrites(ConnectorMergeWrites):
    """The writes of a read-only connector, in which no operation has ever committed."""

    def release_guard(self, table: TableHandle, operation_id: str) -> None:
        """Do nothing: no guard is ever set."""

    def find_commit(self, table: TableHandle, operation_id: str) -> CommittedSnapshot | None:
        """Always None."""
        return None

    def recall(self, table: TableHandle, snapshot_id: int) -> CommittedSnapshot | None:
        """Always None."""
        return None


def no_merge(table: TableHandle) -> NotSupportedError:
    """The error for a write to a table of a read-only connector."""
    return NotSupportedError(
        f"Rows of {table.name} cannot be changed: its connector only reads tables.",
        "Change the table with the engine that made it.",
    )


@dataclass(frozen=True, slots=True)
class Connector:
    """Everything that the engine sees of a table format, opened on one catalog.

    A read-only connector omits ``writes``. ``storage`` is the catalog's workspace. ``locate``
    finds the files of a URI with the catalog's keys; it returns None for storage that it does not
    know. ``maintenance``, ``compaction``, ``branches``, ``alterations``, ``undo`` and ``changes``
    are None if the connector offers none.
    """

    metadata: ConnectorMetadata
    scan: ConnectorScan
    storage: WarehouseStorage
    writes: ConnectorMergeWrites = field(default_factory=NoMergeWrites)
    locate: Callable[[str], FileLocation | None] = lambda _uri: None
    maintenance: ConnectorMaintenance | None = None
    compaction: ConnectorCompaction | None = None
    branches: ConnectorBranches | None = None
    alterations: ConnectorAlterations | None = None
    undo: ConnectorUndo | None = None
    changes: ConnectorChanges | None = None


def find_table(metadata: ConnectorMetadata, name: TableName) -> TableHandle | None:
    """The table as ``load_table`` has it; None: there is none. Raises as ``load_table``."""
    try:
        return metadata.load_table(name)
    except CatalogError as error:
        if error.code is ErrorCode.TABLE_NOT_FOUND:
            return None
        raise
