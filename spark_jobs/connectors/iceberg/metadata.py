"""Loading tables. Driver only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from spark_jobs.connectors.iceberg.format.schema import IcebergField, opaque_type, spark_type
from spark_jobs.connectors.iceberg.library.catalogs import IcebergCatalog
from spark_jobs.connectors.iceberg.read.planning import plan_files
from spark_jobs.connectors.iceberg.table.former_states import former_state
from spark_jobs.connectors.iceberg.table.like import LikeTable
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import (
    PinnedTable,
    ancestors,
    pinned_table,
    schema_fields,
)
from spark_jobs.connectors.iceberg.table.refusals import (
    refuse_moved_rows,
    refuse_name,
    refuse_new_branch,
    refuse_unreadable,
    refuse_unwritable,
)
from spark_jobs.connectors.iceberg.table.table_spec import (
    differences,
    evolved,
    requested_partition,
    requested_schema,
)
from spark_jobs.connectors.iceberg.write.table_layout import (
    insert_layout,
    marks_rows,
    partition_fields,
)
from spark_jobs.connectors.shared.table.definitions import create_then_compare
from spark_jobs.contract.inserts import CREATED_BY
from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.contract.table_name import MAIN_BRANCH
from spark_jobs.contract.table_versions import TableVersion
from spark_jobs.datafiles.row_id import FILE_FIELD, POSITION_FIELD
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.formats.iceberg.refused_properties import refuse_properties
from spark_jobs.spi.alterations import SchemaChange
from spark_jobs.spi.connector import ConnectorMetadata
from spark_jobs.spi.rows import ROW_ID
from spark_jobs.spi.tables import Column, PlannedFile, RowChangeParadigm, TableHandle
from spark_jobs.spi.writes import WriteLayout


class IcebergMetadata(ConnectorMetadata):
    """Implements ``ConnectorMetadata``."""

    def __init__(self, catalog: IcebergCatalog) -> None:
        self._catalog = catalog

    def load_table(self, name: TableName) -> TableHandle:
        """The table with its current schema, pinned at the head of its branch."""
        refuse_name(name)
        loaded = self._catalog.load(name)
        if loaded is None:
            raise CatalogError(
                ErrorCode.TABLE_NOT_FOUND,
                f"Table {name} does not exist in the catalog.",
                "Check the name, or create the table first.",
            )
        metadata, branch = loaded.table.metadata, name.branch
        with reading_metadata(str(name)):
            reference = metadata.refs.get(branch)
            if branch != MAIN_BRANCH and (
                reference is None or reference.snapshot_ref_type != "branch"
            ):
                raise CatalogError(
                    ErrorCode.TABLE_NOT_FOUND,
                    f"Table {name.without_branch} has no branch {branch}.",
                    "Check the name, or create the branch first.",
                )
            snapshot_id = reference.snapshot_id if reference else None
            snapshot = None if snapshot_id is None else metadata.snapshot_by_id(snapshot_id)
            if snapshot_id is not None and (snapshot is None or not snapshot.manifest_list):
                raise ValueError(f"snapshot {snapshot_id} is not there, or has no manifest list")
            fields = schema_fields(metadata.schema())
            refuse_unreadable(name, metadata, fields)
            pinned = PinnedTable(loaded.table, loaded.storage, branch, snapshot, fields)
            handle = _handle(name, pinned, metadata.current_schema_id)
            return replace(
                handle,
                partition_fields=partition_fields(pinned),
                created_by=metadata.properties.get(CREATED_BY),
            )

    def load_version(self, name: TableName, at: TableVersion, millis: int | None) -> TableHandle:
        """The table as Spark reads it by VERSION or TIMESTAMP AS OF; also of branches."""
        pinned = pinned_table(self.load_table(name))
        with reading_metadata(str(name)):
            snapshot, schema = former_state(name, pinned, at, millis)
            fields = schema_fields(schema)
            refuse_unreadable(name, pinned.metadata, fields)
            then = replace(pinned, snapshot=snapshot, fields=fields)
            return _handle(name, then, schema.schema_id)

    def at_snapshot(self, table: TableHandle, snapshot_id: int | None) -> TableHandle | None:
        """``table`` pinned at a snapshot that the branch's head leads to; None: it does not."""
        if table.snapshot_id == snapshot_id:
            return table
        pinned = pinned_table(table)
        snapshot = next((e for e in ancestors(pinned) if e.snapshot_id == snapshot_id), None)
        if snapshot_id is not None and snapshot is None:
            return None
        native, mark = replace(pinned, snapshot=snapshot), _mark(snapshot)
        return replace(table, snapshot_id=snapshot_id, snapshot_mark=mark, native=native)

    def create_table(self, name: TableName, spec: CreateTableSpec) -> bool:
        """Create the table and its namespace; return False if an equal table exists."""
        refuse_name(name)
        refuse_new_branch(name)
        refuse_properties(name, spec.table_options)
        if spec.like is not None:
            return self._create_like(name, spec, TableName.parse(spec.like))
        wanted = requested_schema(name, spec)
        partition = requested_partition(spec, wanted)
        properties = dict(spec.table_options)
        if spec.comment:
            properties["comment"] = spec.comment
        create = partial(self._catalog.create, name, wanted, partition, properties)
        return create_then_compare(
            name,
            create if self._catalog.load(name) is None else None,
            lambda: differences(wanted, spec, pinned_table(self.load_table(name))),
        )

    def _create_like(self, name: TableName, spec: CreateTableSpec, other: TableName) -> bool:
        """``create_table`` like the table ``other``."""
        like = LikeTable.of(other, pinned_table(self.load_table(other)), spec)
        create = partial(
            self._catalog.create,
            name,
            like.schema,
            like.partition,
            like.properties(spec),
            like.order,
        )
        return create_then_compare(
            name,
            create if self._catalog.load(name) is None else None,
            lambda: like.differences(spec, pinned_table(self.load_table(name))),
        )

    def require_writable(self, table: TableHandle) -> None:
        """Check version, properties and partition spec."""
        refuse_unwritable(table.name, pinned_table(table))

    def require_supported(
        self, table: TableHandle, assigned: frozenset[str], *, deletes: bool
    ) -> None:
        """Refuse UPDATEs that move whole rows, of which Spark cannot have some columns."""
        del deletes
        derived = insert_layout(pinned_table(table)).derived
        refuse_moved_rows(table, assigned.intersection(derived.inputs if derived else ()))

    def evolved(self, table: TableHandle, changes: Sequence[SchemaChange]) -> TableHandle:
        """``table`` with other columns; nothing is stored."""
        target = evolved(table.name, pinned_table(table), changes)
        refuse_unreadable(table.name, target.metadata, target.fields)
        refuse_unwritable(table.name, target)
        return replace(
            table,
            columns=tuple(_columns(target.columns)),
            native=target,
            schema_changes=tuple(changes),
        )

    def row_change_paradigm(self, table: TableHandle) -> RowChangeParadigm:
        """An UPDATE needs only the assigned columns: others are read from the file."""
        del table
        return RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS

    def insert_layout(self, table: TableHandle) -> WriteLayout:
        """New rows clustered by partition."""
        return insert_layout(pinned_table(table))

    def update_layout(self, table: TableHandle) -> WriteLayout:
        """The changes of one file together, in the order of its rows."""
        adds_files = marks_rows(pinned_table(table))
        file, position = f"{ROW_ID}.{FILE_FIELD}", f"{ROW_ID}.{POSITION_FIELD}"
        return WriteLayout((file,), (file, position), file_ordinal=file, adds_files=adds_files)

    def plan_files(self, table: TableHandle) -> tuple[PlannedFile, ...]:
        """All data files of the pinned snapshot, ordered by path."""
        return plan_files(pinned_table(table))


def _handle(name: TableName, pinned: PinnedTable, schema_id: int) -> TableHandle:
    """A table at its pinned snapshot, without what only writers need."""
    metadata, snapshot = pinned.metadata, pinned.snapshot
    return TableHandle(
        name=name,
        columns=tuple(_columns(pinned.columns)),
        partition_keys=(),
        snapshot_id=None if snapshot is None else snapshot.snapshot_id,
        snapshot_mark=_mark(snapshot),
        schema_mark=f"{metadata.table_uuid}/{schema_id}/{metadata.default_spec_id}",
        native=pinned,
        opaque_columns=tuple(_columns(pinned.opaque)),
        has_identities=pinned.has_lineage,
    )


def _mark(snapshot: Any | None) -> str:
    return "" if snapshot is None else str(snapshot.manifest_list)


def _columns(fields: Sequence[IcebergField]) -> Iterator[Column]:
    for field in fields:
        kind = opaque_type(field.type)
        if kind is not None:
            yield Column(field.name, kind, not field.required, field.comment)
            continue
        default = default_text(field) if field.type.is_primitive else None
        yield Column(field.name, spark_type(field.type), not field.required, field.comment, default)


def default_text(field: IcebergField) -> str | None:
    """The write default of a column that Spark has, as an expression; None: it has none.

    Raises:
        ValueError: it is not the JSON of a primitive value.
    """
    value = field.write_default
    if value is None:
        return None
    if not field.type.is_primitive or isinstance(value, dict | list):
        raise ValueError(f"the default of {field.name} is not that of a primitive type")
    if field.type.name == "binary":
        return f"X'{bytes.fromhex(value).hex()}'"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    # The session's settings decide what a backslash means in a literal, but not in bytes.
    return f"CAST(CAST(X'{text.encode().hex()}' AS STRING) AS {spark_type(field.type)})"
