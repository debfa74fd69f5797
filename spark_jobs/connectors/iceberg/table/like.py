"""A new table that is like another one: what of that is taken over. Driver only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from spark_jobs.connectors.iceberg.format.schema import IcebergField, all_fields
from spark_jobs.connectors.iceberg.table.pinned_table import NAME_MAPPING, PinnedTable
from spark_jobs.connectors.iceberg.table.refusals import refuse_unwritable
from spark_jobs.connectors.iceberg.table.table_spec import default_values, table_columns
from spark_jobs.connectors.shared.table.definitions import (
    column_differences,
    default_differences,
    name_differences,
    option_differences,
)
from spark_jobs.contract.inserts import CREATED_BY
from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.iceberg.refused_properties import FOLDERS
from spark_jobs.formats.iceberg.transforms import VOID

_VERSION: Final = "format-version"
_COMMENT: Final = "comment"
# Properties that are about the one table.
_OWN: Final = frozenset({NAME_MAPPING, CREATED_BY, *FOLDERS})


@dataclass(frozen=True)
class LikeTable:
    """What a new table gets of ``table``: columns, partition fields, order and properties."""

    table: PinnedTable

    @classmethod
    def of(cls, name: TableName, table: PinnedTable, spec: CreateTableSpec) -> LikeTable:
        """Of the table ``name``, as ``spec`` asks for it.

        Raises:
            NotSupportedError: there could be no statements on the new table, or its version does
                not have what the table has.
        """
        refuse_unwritable(name, table)
        version = spec.table_options.get(_VERSION, str(table.metadata.format_version))
        later = next((each for each in table.fields if _is_of_version_3(each)), None)
        if later is not None and version in ("1", "2"):
            raise NotSupportedError(
                f"{name}: column {later.name} has a default, or a type, that tables of version "
                f"{version} of the format do not have.",
                f"Leave the option {_VERSION} out.",
            )
        for column in table.fields:
            if any(each.write_default is not None for each in all_fields(column.type.fields)):
                raise NotSupportedError(
                    f"{name}: column {column.name} has a default of a nested field, which would be "
                    "lost.",
                    "Create the table with the engine that made this one.",
                )
        return cls(table)

    @property
    def schema(self) -> dict[str, Any]:
        """In Iceberg's JSON form; the new table has no rows from before its columns."""
        schema: dict[str, Any] = json.loads(self.table.metadata.schema().model_dump_json())
        for each in schema["fields"]:
            each.pop("initial-default", None)
        return schema

    @property
    def partition(self) -> list[dict[str, Any]]:
        """Without fields that are gone."""
        fields = json.loads(self.table.metadata.spec().model_dump_json())["fields"]
        return [each for each in fields if each["transform"] != VOID]

    @property
    def order(self) -> list[dict[str, Any]]:
        """The sort order."""
        found: list[dict[str, Any]] = json.loads(
            self.table.metadata.sort_order().model_dump_json()
        )["fields"]
        return found

    def properties(self, spec: CreateTableSpec) -> dict[str, str]:
        """The properties, with those that ``spec`` gives in their place."""
        metadata = self.table.metadata
        kept = {name: each for name, each in metadata.properties.items() if name not in _OWN}
        comment = {_COMMENT: spec.comment} if spec.comment else {}
        return {_VERSION: str(metadata.format_version), **kept, **spec.table_options, **comment}

    def differences(self, spec: CreateTableSpec, found: PinnedTable) -> list[str]:
        """The differences of an existing table, one phrase each."""
        properties: Mapping[str, str] = found.metadata.properties
        options = {**properties, _VERSION: str(found.metadata.format_version)}
        keys, known = (sorted(each.identifiers, key=str.lower) for each in (self.table, found))
        wanted = [part for part in self.table.partitioned_by if not part.startswith(VOID)]
        return [
            *column_differences(table_columns(self.table.fields), table_columns(found.fields)),
            *default_differences(default_values(self.table.fields), default_values(found.fields)),
            *name_differences("partition fields", wanted, found.partitioned_by),
            *name_differences("identifier fields", keys, known),
            *option_differences(
                {_VERSION: str(self.table.metadata.format_version), **spec.table_options}, options
            ),
        ]


def _is_of_version_3(field: IcebergField) -> bool:
    return field.write_default is not None or any(
        not each.is_stored for each in all_fields([field])
    )
