"""What pyiceberg lacks for new, upgraded and evolved definitions of tables. Driver only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from spark_jobs.spi.alterations import SchemaChange

_DEFAULT = "write-default"


def create_table(
    catalog: Any,
    identifier: tuple[str, ...],
    schema: Mapping[str, Any],
    partition: Sequence[Mapping[str, Any]],
    order: Sequence[Mapping[str, Any]],
    properties: Mapping[str, str],
) -> None:
    """Create a table in pyiceberg's catalog; everything is in Iceberg's JSON form.

    Raises:
        TableAlreadyExistsError, CommitFailedException: there is one of this name.
    """
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder

    sorted_by = SortOrder.model_validate({"order-id": 1, "fields": order})
    given: dict[str, Any] = {
        "partition_spec": PartitionSpec.model_validate({"fields": partition}),
        "sort_order": sorted_by if order else UNSORTED_SORT_ORDER,
        "properties": dict(properties),
    }
    wanted = Schema.model_validate(schema)
    defaults = {e["name"]: e[_DEFAULT] for e in schema["fields"] if e.get(_DEFAULT) is not None}
    if not defaults:
        catalog.create_table(identifier, wanted, **given)
        return
    _create_with_defaults(
        catalog, catalog.create_table_transaction(identifier, wanted, **given), defaults
    )


def _create_with_defaults(catalog: Any, begun: Any, defaults: Mapping[str, Any]) -> None:
    """Finish the creation that pyiceberg has ``begun``, with the defaults of columns by name."""
    from pyiceberg.schema import Schema
    from pyiceberg.table import update

    updates = []
    for table_update in begun._updates:  # noqa: SLF001 - it would be committed without the defaults
        if isinstance(table_update, update.AddSchemaUpdate):
            document = table_update.schema_.model_dump(by_alias=True, mode="json")
            for field in document["fields"]:
                if field["name"] in defaults:
                    field[_DEFAULT] = defaults[field["name"]]
            updates.append(update.AddSchemaUpdate(schema=Schema.model_validate(document)))
        elif isinstance(table_update, update.UpgradeFormatVersionUpdate):
            updates.append(upgrade_to(table_update.format_version))
        else:
            updates.append(table_update)
    catalog.commit_table(begun._table, (update.AssertCreate(),), tuple(updates))  # noqa: SLF001


def upgrade_to(version: int) -> Any:
    """Pyiceberg's update that makes a table one of a later version.

    A server gets what pyiceberg would send; where the client applies it, version 3 is known, too.
    """
    arguments: dict[str, Any] = {"format-version": version}
    return _upgrade()(**arguments)


@cache
def _upgrade() -> Any:
    from pyiceberg.table import update

    class Upgrade(update.UpgradeFormatVersionUpdate):
        """One that this project applies itself."""

    update._apply_table_update.register(Upgrade, _applied)  # noqa: SLF001 - there is no other way
    return Upgrade


def _applied(wanted: Any, metadata: Any, context: Any) -> Any:
    from pyiceberg.table.metadata import TableMetadataUtil

    if wanted.format_version <= metadata.format_version:
        return metadata
    context.add_update(wanted)
    upgraded = metadata.model_copy(update={"format_version": wanted.format_version})
    return TableMetadataUtil._construct_without_validation(upgraded)  # noqa: SLF001


def evolved_table(
    table: Any, changes: Sequence[SchemaChange], types: Sequence[Any]
) -> tuple[Any, tuple[Any, ...]]:
    """Pyiceberg's table with the changes, which are not stored, and the updates that store them.

    ``types`` are those of the changes, in Iceberg's JSON form; nested fields get new ids.

    Raises:
        ValueError: pyiceberg refuses a change.
    """
    from pyiceberg.exceptions import ResolveError, ValidationError
    from pyiceberg.table import Table
    from pyiceberg.table.update import update_table_metadata

    update = table.transaction().update_schema()
    try:
        for change, raw in zip(changes, types, strict=True):
            kind = _library_type(raw)
            if change.before is None:
                update.add_column(change.path, kind)
            else:
                update.update_column(change.path, kind)
        updates, _ = update._commit()  # noqa: SLF001 - it would be committed otherwise
    except (ResolveError, ValidationError) as error:
        raise ValueError(str(error)) from error
    metadata = update_table_metadata(table.metadata, updates)
    found = Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)
    return found, tuple(updates)


def _library_type(raw: Any) -> Any:
    from pyiceberg.types import NestedField

    field = {"id": 0, "name": "type", "type": raw, "required": False}
    return NestedField.model_validate(field).field_type
