"""Creating a table with pypaimon. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spark_jobs.connectors.paimon.library.table_schema import PaimonColumn, PaimonSchema
from spark_jobs.contract.request import TableName


def create_table(catalog: Any, name: TableName, schema: PaimonSchema) -> bool:
    """Create the database and the table if they do not exist; True: pypaimon does not tell.

    Raises:
        ValueError: pypaimon refuses the schema or an option.
    """
    from pypaimon import Schema
    from pypaimon.common.identifier import Identifier

    catalog.create_database(name.database, True)
    fields = _new_fields(schema.columns)
    new = Schema(
        fields,
        list(schema.partition_keys),
        list(schema.primary_keys),
        dict(schema.options),
        schema.comment,
    )
    catalog.create_table(Identifier.create(name.database, name.table), new, True)
    return True


def _new_fields(columns: Sequence[PaimonColumn]) -> list[Any]:
    """Fields with ids, numbered as in pypaimon's ``Schema.from_pyarrow_schema``."""
    from pypaimon.schema.data_types import (
        AtomicInteger,
        DataField,
        DataTypeParser,
        reassign_field_id,
    )

    counter = AtomicInteger(-1)
    fields = []
    for column in columns:
        field_id = counter.increment_and_get()
        kind = reassign_field_id(DataTypeParser.parse_data_type(column.type), counter)
        fields.append(DataField(field_id, column.name, kind, column.comment, column.default))
    return fields
