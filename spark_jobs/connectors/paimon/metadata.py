"""Loading and creating tables, and how their rows change. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from spark_jobs.connectors.paimon.format.buckets import BUCKET_COLUMN
from spark_jobs.connectors.paimon.format.locations import on_same_storage
from spark_jobs.connectors.paimon.format.types import is_nullable, to_spark
from spark_jobs.connectors.paimon.library import (
    catalogs,
    new_schemas,
    stored_snapshots,
    table_schema,
)
from spark_jobs.connectors.paimon.library.metadata_checks import reading_metadata
from spark_jobs.connectors.paimon.read.planning import plan_files
from spark_jobs.connectors.paimon.table.file_refusals import (
    refuse_incomplete_index,
    refuse_rescaled,
    refuse_row_changes,
)
from spark_jobs.connectors.paimon.table.former_states import former_snapshot
from spark_jobs.connectors.paimon.table.refusals import (
    refuse_name,
    refuse_new_branch,
    refuse_unreadable,
    refuse_unwritable,
)
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.connectors.paimon.table.table_spec import (
    differences,
    evolved,
    like_schema,
    requested_schema,
)
from spark_jobs.connectors.paimon.write.bucket_choice import bucket_column
from spark_jobs.connectors.shared.table.definitions import create_then_compare
from spark_jobs.contract.inserts import CREATED_BY
from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.contract.table_versions import TableVersion
from spark_jobs.datafiles.row_id import FILE_FIELD, POSITION_FIELD
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError
from spark_jobs.spi.alterations import SchemaChange
from spark_jobs.spi.rows import ROW_ID
from spark_jobs.spi.tables import Column, PlannedFile, RowChangeParadigm, TableHandle
from spark_jobs.spi.writes import InsertedKeys, WriteLayout
from spark_jobs.storage.warehouse import Warehouse


class PaimonMetadata:
    """Implements ``ConnectorMetadata`` for append tables."""

    def __init__(self, catalog: Any, storage: Warehouse, *, has_server: bool = False) -> None:
        self._catalog = catalog
        self._storage = storage
        # Who knows the tags; None: the table's own folders.
        self._server = catalog if has_server else None

    def load_table(self, name: TableName) -> TableHandle:
        """The table with its latest schema, pinned at its latest snapshot."""
        table = self._find(name)
        if table is None:
            raise CatalogError(
                ErrorCode.TABLE_NOT_FOUND,
                f"Table {name} does not exist in the warehouse {self._storage.location}.",
                "Check the name, or create the table first.",
            )
        self._require_reachable(name, table_schema.table_path(table))
        with reading_metadata(f"{name} in {self._storage.location}"):
            return _handle(name, table, stored_snapshots.latest_snapshot(table))

    def load_version(self, name: TableName, at: TableVersion, millis: int | None) -> TableHandle:
        """The table as Paimon reads it by VERSION or TIMESTAMP AS OF; also of branches."""
        table = pinned_table(self.load_table(name)).table
        with reading_metadata(f"{name} in {self._storage.location}"):
            snapshot = former_snapshot(name, table, at, millis, self._server)
            then = table_schema.with_schema(table, snapshot.schema_id)
            return _handle(name, then, snapshot)

    def at_snapshot(self, table: TableHandle, snapshot_id: int | None) -> TableHandle | None:
        """``table`` pinned at a snapshot that it has; None: it has none such."""
        if table.snapshot_id == snapshot_id:
            return table
        pinned = pinned_table(table)
        snapshot = None
        if snapshot_id is not None:
            snapshot = stored_snapshots.find_snapshot(pinned.table, snapshot_id)
            if snapshot is None or snapshot_id > (table.snapshot_id or 0):
                return None
        native, mark = replace(pinned, snapshot=snapshot), _mark(snapshot)
        return replace(table, snapshot_id=snapshot_id, snapshot_mark=mark, native=native)

    def create_table(self, name: TableName, spec: CreateTableSpec) -> bool:
        """Create the table and its database; return False if an equal table exists."""
        refuse_new_branch(name)
        if spec.like is None:
            wanted = requested_schema(spec)
        else:
            other = pinned_table(self.load_table(TableName.parse(spec.like)))
            wanted = like_schema(other.schema, spec)
        refuse_unreadable(name, wanted)
        refuse_unwritable(name, wanted)
        create = partial(new_schemas.create_table, self._catalog, name, wanted)
        return create_then_compare(
            name,
            create if self._find(name) is None else None,
            lambda: differences(wanted, table_schema.schema_of(self._find(name))),
        )

    def require_writable(self, table: TableHandle) -> None:
        """Check options, columns and buckets."""
        target = pinned_table(table)
        refuse_unwritable(table.name, target.schema)
        self._reading(table.name, refuse_rescaled, target, table.name)
        self._reading(table.name, refuse_incomplete_index, target, table.name)

    def require_supported(
        self, table: TableHandle, assigned: frozenset[str], *, deletes: bool
    ) -> None:
        """Check the clauses of a statement on a table with data evolution."""
        refuse_row_changes(pinned_table(table), table.name, assigned, deletes=deletes)

    def evolved(self, table: TableHandle, changes: Sequence[SchemaChange]) -> TableHandle:
        """``table`` with other columns; nothing is stored."""
        target = evolved(table.name, pinned_table(table), changes)
        refuse_unreadable(table.name, target.schema)
        refuse_unwritable(table.name, target.schema)
        columns = tuple(_column(column) for column in target.schema.columns)
        return replace(table, columns=columns, native=target, schema_changes=tuple(changes))

    def row_change_paradigm(self, table: TableHandle) -> RowChangeParadigm:
        """An UPDATE needs only the assigned columns.

        Files are rewritten; or a vector marks the row, and its new version, whose other columns are
        read from the file, is appended; or a new file has the assigned columns of all rows.
        """
        del table
        return RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS

    def merge_row_id_columns(
        self, table: TableHandle, inserted_keys: InsertedKeys
    ) -> tuple[str, ...]:
        """The primary key; all columns if changes are appended as whole records."""
        keyed = pinned_table(table).keyed
        if keyed is not None and keyed.appends(inserted_keys):
            return table.column_names
        return table.key_columns

    def insert_layout(self, table: TableHandle) -> WriteLayout:
        """New rows clustered by partition and bucket; anywhere for a table with neither.

        In tables with a primary key, they are also in the order of the key.
        """
        target = pinned_table(table)
        derived = bucket_column(target, self._storage.filesystem)
        if derived is None:
            keys, joins = table.partition_keys, not target.evolves_columns
            return WriteLayout(keys, keys, joins_files=joins)
        columns = (*table.partition_keys, BUCKET_COLUMN)
        key = () if target.keyed is None else target.keyed.key
        return WriteLayout(columns, (*columns, *key), derived=derived, keeps_clusters=bool(key))

    def update_layout(self, table: TableHandle) -> WriteLayout | None:
        """The changes of one file together, in the order of its rows.

        None for a table with a primary key, whose changes all have the order of the key.
        """
        target = pinned_table(table)
        if target.keyed is not None:
            return None
        file, position = f"{ROW_ID}.{FILE_FIELD}", f"{ROW_ID}.{POSITION_FIELD}"
        order = (file, position)
        # Under data evolution, there is a file for each range with updates, whatever the tasks.
        adds_files = target.marks_rows and not target.evolves_columns
        return WriteLayout((file,), order, file_ordinal=file, adds_files=adds_files)

    def plan_files(self, table: TableHandle) -> tuple[PlannedFile, ...]:
        """All data files of the pinned snapshot, ordered by path."""
        planned: tuple[PlannedFile, ...] = self._reading(table.name, plan_files, table)
        return planned

    def _require_reachable(self, name: TableName, location: str) -> None:
        """Check that the table is on the warehouse's storage; REST servers may use another."""
        if not on_same_storage(self._storage.location, location):
            raise NotSupportedError(
                f"{name} lies at {location}, on other storage than the warehouse "
                f"{self._storage.location} of the catalog connection.",
                "Use a connection whose warehouse is on the table's storage.",
            )

    def _find(self, name: TableName) -> Any | None:
        refuse_name(name)
        self._storage.require()
        return self._reading(name, catalogs.find_table, self._catalog, name)

    def _reading(self, name: TableName, read: Any, *arguments: Any) -> Any:
        """The result of ``read``; its failures mean that metadata is damaged or unavailable."""
        with reading_metadata(f"{name} in {self._storage.location}"):
            return read(*arguments)


def _handle(name: TableName, table: Any, snapshot: Any | None) -> TableHandle:
    schema = table_schema.schema_of(table)
    refuse_unreadable(name, schema)
    return TableHandle(
        name=name,
        columns=tuple(_column(column) for column in schema.columns),
        partition_keys=schema.partition_keys,
        snapshot_id=snapshot.id if snapshot else None,
        key_columns=tuple(schema.primary_keys),
        fixed_columns=schema.partition_keys if schema.evolves_columns else (),
        has_identities=schema.tracks_rows,
        native=PinnedTable(table, snapshot, schema),
        created_by=schema.options.get(CREATED_BY),
        snapshot_mark=_mark(snapshot),
        schema_mark=f"{table.table_schema.id}/{table.table_schema.time_millis}",
    )


def _mark(snapshot: Any | None) -> str:
    return "" if snapshot is None else str(snapshot.delta_manifest_list)


def _column(column: table_schema.PaimonColumn) -> Column:
    spark_type = to_spark(column.type, column.name)
    return Column(
        name=column.name,
        type=spark_type,
        nullable=is_nullable(column.type),
        comment=column.comment,
        default=_default(column.default, spark_type),
    )


def _default(text: str | None, spark_type: str) -> str | None:
    """A default as a Spark SQL expression; Paimon keeps it as text to cast to the column's type."""
    if text is None:
        return None
    plain = text[1:-1] if len(text) >= 2 and text[0] == text[-1] == "'" else text
    if "'" in plain or "\\" in plain:
        # The session's settings decide what a backslash means in a literal, but not in bytes.
        return f"CAST(CAST(X'{plain.encode().hex()}' AS STRING) AS {spark_type})"
    return f"CAST('{plain}' AS {spark_type})"
