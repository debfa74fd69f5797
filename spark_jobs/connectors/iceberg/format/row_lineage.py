"""Ids of rows, and who changed them last, in tables of version 3. Runs on executors.

Follows the Iceberg specification, "Row Lineage": a row has the id that its file stores, else that
of the file's first row plus its position; the sequence number that the file stores, else the
file's. A row that is stored again keeps its id, and its number unless it was changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import pyarrow as pa

from spark_jobs.connectors.iceberg.format.file_columns import NameMapping, file_mappings
from spark_jobs.connectors.iceberg.format.schema import IcebergField, IcebergType, arrow_field
from spark_jobs.datafiles.field_mapping import FieldMapping, Fill
from spark_jobs.datafiles.tracked_rows import TrackedColumns
from spark_jobs.formats.iceberg.reserved import LAST_UPDATED, ROW_ID

ROW_ID_FIELD: Final = IcebergField(2147483540, ROW_ID, IcebergType("long"))
_FIELDS: Final = (
    ROW_ID_FIELD,
    IcebergField(2147483539, LAST_UPDATED, IcebergType("long")),
)
COLUMNS: Final = TrackedColumns(*map(arrow_field, _FIELDS))


class RowLineage(NamedTuple):
    """What the manifest says of a file: the id of its first row, and its data sequence number."""

    first_row_id: int
    sequence_number: int

    def mappings(self, found: pa.Schema, names: NameMapping | None) -> tuple[FieldMapping, ...]:
        """How ids and numbers are found among the columns ``found`` in the file."""
        row_id, number = file_mappings(_FIELDS, found, names, {})
        return (
            replace(row_id, fill=Fill(self.first_row_id, 1)),
            replace(number, fill=Fill(self.sequence_number, 0)),
        )


def with_ids(
    mappings: Sequence[FieldMapping], first_row_id: int | None
) -> tuple[FieldMapping, ...]:
    """``mappings`` of which that of the ids, if it is there, knows the first row's."""
    if first_row_id is None:
        return tuple(mappings)
    fill = Fill(first_row_id, 1)
    is_id = [each.field.name == ROW_ID for each in mappings]
    return tuple(
        replace(each, fill=fill) if found else each
        for each, found in zip(mappings, is_id, strict=True)
    )
