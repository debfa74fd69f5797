"""Creating tables with what pyiceberg's ``create_table`` loses: defaults of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spark_jobs.connectors.iceberg.library.upgrades import upgrade_to

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
