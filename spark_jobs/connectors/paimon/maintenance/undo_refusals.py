"""Which tables' commits are not undone, and why. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from spark_jobs.connectors.paimon.format.manifest_entries import POSTPONED
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.shared.maintenance.undo import PastCommit, unsupported
from spark_jobs.contract.properties import STATEMENT
from spark_jobs.contract.request import TableName

# Statements that leave the HASH index with all keys that it had.
_KEEP_INDEX: Final = frozenset(("merge", "update", "delete", "insert_into", "compact", "undo_run"))


def refuse_table(name: TableName, table: PinnedTable) -> None:
    """Refuse kinds of tables whose files do not tell by themselves what a commit changed.

    Raises:
        NotSupportedError: gives the reason.
    """
    if table.evolves_columns:
        raise unsupported(
            name, "with data evolution, rows are spread over files of columns (data-evolution)"
        )
    keyed = table.keyed
    if keyed is None:
        return
    if keyed.producer != "none":
        raise unsupported(
            name, f"streams would not learn of it (changelog-producer = {keyed.producer})"
        )
    if table.marks_rows:
        raise unsupported(
            name, "compactions look its deletion vectors up by key (deletion-vectors.enabled)"
        )
    if keyed.hides_level_0:
        raise unsupported(
            name, f"readers do not see new records at once (merge-engine = {keyed.engine.kind})"
        )
    if table.bucketing.is_postponed:
        raise unsupported(name, "records wait for their bucket (bucket = -2)")


def refuse_rebucketed(
    name: TableName, table: PinnedTable, back: Sequence[Any], commits: Sequence[PastCommit]
) -> None:
    """Refuse files that do not fit the buckets, or the index of keys, that the table has now.

    Raises:
        NotSupportedError: gives the reason.
    """
    for entry in back:
        total = table.bucketing.total(tuple(entry.partition.values))
        if entry.bucket == POSTPONED or entry.total_buckets != total:
            raise unsupported(
                name,
                f"the table has {total} buckets now, and had {entry.total_buckets} "
                f"({entry.file.file_name})",
            )
        if entry.file.extra_files:
            raise unsupported(
                name, f"a file that must come back has an index of its own ({entry.file.file_name})"
            )
    if not back or not table.bucketing.is_dynamic:
        return
    for each in commits:
        statement = each.properties.get(STATEMENT, "")
        if statement not in _KEEP_INDEX:
            raise unsupported(
                name, f"{statement} removed keys from the index that says their buckets"
            )
