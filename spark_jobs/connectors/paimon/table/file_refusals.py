"""Refuses snapshots with files that this connector cannot read or maintain. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from spark_jobs.connectors.paimon.format.schema_history import ChangedTypeError
from spark_jobs.connectors.paimon.library.index_manifest import DELETION_VECTORS
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.contract.request import TableName
from spark_jobs.errors import NotSupportedError

_OTHER_ENGINE: Final = "Run this statement with Paimon's own engines."
_COMPACT: Final = "Compact the table fully with Paimon's own engines first."


def refuse_indexes(table: PinnedTable, name: TableName) -> None:
    """Refuse a snapshot with an index other than deletion vectors, or with unusable ones.

    Raises:
        NotSupportedError: there is another kind of index; deletion vectors are not enabled, or one
            does not record its cardinality.
    """
    if table.vectors and not table.marks_rows:
        raise NotSupportedError(
            f"{name} has deletion vectors, but its option deletion-vectors.enabled is not true: "
            "engines do not agree on whether the rows are deleted.",
            "Switch the option on, or compact the table fully with Paimon's own engines first.",
        )
    for file in table.index_files:
        if file.kind != DELETION_VECTORS:
            raise NotSupportedError(
                f"{name} has an index of the kind {file.kind}, which this would not keep.",
                _OTHER_ENGINE,
            )
        for data_file, vector in file.vectors.items():
            if vector.cardinality is None:
                raise NotSupportedError(
                    f"The deletion vector of {data_file} of {name} does not tell how many rows it "
                    "deletes (Paimon before 1.0).",
                    _COMPACT,
                )


def refuse_rescaled(
    name: TableName, buckets: int, located_entries: Sequence[tuple[str, Any]]
) -> None:
    """Refuse a table that has data files from before a change of its option ``bucket``.

    Paimon's own writers refuse it too, or put rows where readers do not look for them.

    Raises:
        NotSupportedError: a file has another number of buckets; names the file.
    """
    for path, entry in located_entries:
        if entry.total_buckets != buckets:
            raise NotSupportedError(
                f"{name} now has {buckets} buckets (option bucket), but data file {path} is one of "
                f"{entry.total_buckets} buckets.",
                "Rescale the whole table with INSERT OVERWRITE in Paimon's own engines first.",
            )


def refuse_file(table: PinnedTable, name: TableName, entry: Any) -> None:
    """Refuse a data file that Spark's Parquet reader would not read correctly.

    Raises:
        NotSupportedError: the file cannot be read; gives the reason and the file.
    """
    file = entry.file
    _refuse_changed_types(table, name, file)
    if not file.file_name.endswith(".parquet"):
        problem = "is not a parquet file"
    elif file.file_name.startswith(("_", ".")):
        problem = "has a name that Spark takes for a hidden file"
    elif file.write_cols is not None or file.first_row_id is not None:
        problem = "holds only some columns of its rows (data evolution)"
    else:
        return
    raise NotSupportedError(
        f"Data file {file.file_name} of {name} at {table.path} {problem}; this is not supported.",
        _COMPACT,
    )


def _refuse_changed_types(table: PinnedTable, name: TableName, file: Any) -> None:
    try:
        table.columns_in(file.schema_id)
    except ChangedTypeError as error:
        raise NotSupportedError(
            f"Column {error.column} of {name} is of type {error.new}, but of type {error.old} in "
            f"data file {file.file_name} at {table.path}, which is older; this change of type is "
            "not supported.",
            _COMPACT,
        ) from None
