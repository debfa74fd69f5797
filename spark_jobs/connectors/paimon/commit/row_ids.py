"""Ids and sequence numbers for the rows that a snapshot adds. Driver only.

They depend on the snapshot, so each attempt to publish gives them anew. After Paimon's
``RowTrackingCommitUtils``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from spark_jobs.connectors.paimon.format.manifest_entries import ADD
from spark_jobs.connectors.paimon.format.row_tracking import stores_ids
from spark_jobs.connectors.paimon.library.data_files import APPENDED
from spark_jobs.errors import CatalogError, ErrorCode


class Numbered(NamedTuple):
    """Manifest entries, and the id of the next new row; None if the table never tracked rows."""

    entries: Sequence[Any]
    next_row_id: int | None


def numbered(entries: Sequence[Any], snapshot_id: int, next_row_id: int) -> Numbered:
    """``entries`` as snapshot ``snapshot_id`` adds them; new rows get ids from ``next_row_id`` on.

    A sequence number of 0 becomes the snapshot's.
    """
    numbered_entries = []
    for entry in entries:
        if entry.kind != ADD:
            numbered_entries.append(entry)
            continue
        file = entry.file
        low, high = file.min_sequence_number, file.max_sequence_number
        changes: dict[str, Any] = {
            "min_sequence_number": low or snapshot_id,
            "max_sequence_number": high if low and high else snapshot_id,
        }
        if _has_new_rows(file):
            changes["first_row_id"] = next_row_id
            next_row_id += file.row_count
        numbered_entries.append(replace(entry, file=replace(file, **changes)))
    return Numbered(numbered_entries, next_row_id)


def first_new_id(previous: Any | None) -> int:
    """The id of the first row that is new after a snapshot; None: there is no snapshot.

    Raises:
        CatalogError: METADATA_UNREADABLE: the snapshot has rows, and does not tell.
    """
    if previous is None:
        return 0
    if previous.next_row_id is None and previous.total_record_count:
        raise CatalogError(
            ErrorCode.METADATA_UNREADABLE,
            f"Snapshot {previous.id} of a table that tracks rows has no nextRowId: new rows would "
            "get the ids of others.",
            "Roll the table back to the snapshot before it, and find out which writer made it.",
        )
    return previous.next_row_id or 0


def _has_new_rows(file: Any) -> bool:
    is_appended = file.file_source == APPENDED
    return is_appended and file.first_row_id is None and not stores_ids(file.write_cols)
