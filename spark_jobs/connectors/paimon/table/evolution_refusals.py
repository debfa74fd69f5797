"""Refuses what this connector does not do with tables with data evolution. Driver only."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError

_EVOLVES: Final = "stores columns apart (option data-evolution.enabled)"


def file_problem(table: PinnedTable, file: Any) -> str:
    """Why the ranges of a table with data evolution cannot have a data file; empty if they can."""
    if file.file_name.endswith((".blob", ".video")):
        return "holds values of the type BLOB"
    if ".vector." in file.file_name:
        return "holds values of the type VECTOR"
    if table.evolves_columns and file.first_row_id is None:
        return (
            "is not a range of row ids, but stores the id of each row, as before "
            "data-evolution.enabled was set"
        )
    return ""


def refuse_vectors_of_columns(table: PinnedTable, name: TableName) -> None:
    """Refuse deletion vectors of other files than anchors, which readers overlook.

    Raises:
        CatalogError: METADATA_UNREADABLE; names the file.
    """
    for ordinal in range(len(table.files.units)):
        for entry in table.files.unit_entries(ordinal)[1:]:
            if entry.file.file_name in table.files.vectors:
                raise CatalogError(
                    ErrorCode.METADATA_UNREADABLE,
                    f"{name} has a deletion vector of {entry.file.file_name}, a data file that "
                    "only holds newer columns of its rows: engines would overlook it.",
                    "Look for who wrote it, or roll the table back.",
                )


def refuse_row_changes(
    table: PinnedTable, name: TableName, assigned: Collection[str], *, deletes: bool
) -> None:
    """Refuse clauses that would have to rewrite the files of a table with data evolution.

    ``assigned`` are the columns that clauses update.

    Raises:
        NotSupportedError: a clause deletes rows, and no deletion vector may mark them; or one
            updates a partition column.
    """
    if not table.evolves_columns:
        return
    moving = [column for column in table.schema.partition_keys if column in assigned]
    if moving:
        raise NotSupportedError(
            f"{name} {_EVOLVES}: an update of its partition column {moving[0]} would move rows "
            "away from their ids, which is not supported.",
            "Leave out the column, or insert the rows anew.",
        )
    if deletes and not table.marks_rows:
        raise NotSupportedError(
            f"{name} {_EVOLVES}: rows can only be deleted by deletion vectors, which are not "
            "enabled (option deletion-vectors.enabled).",
            "Switch deletion-vectors.enabled on if all readers are of Paimon 2, or overwrite the "
            "partitions.",
        )
