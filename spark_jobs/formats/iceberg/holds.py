"""What keeps snapshots of an Iceberg table besides tags and branches: operations at work.

Each notes its base in the workspace, in a file that ``operation_files.base_path`` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from spark_jobs.contract.operation_files import ABANDONED_AFTER, operation_of_base


@dataclass(frozen=True, slots=True)
class Base:
    """A snapshot (None: the table has none), and the table's last sequence number at that time."""

    snapshot_id: int | None
    sequence_number: int

    @classmethod
    def noted(cls, document: Any, table_uuid: object) -> Base | None:
        """The base that a note tells; None: it is of another table.

        Raises:
            ValueError, TypeError, KeyError: it is no note.
        """
        if document["table"] != str(table_uuid):
            return None
        found = document["snapshot_id"]
        return cls(None if found is None else int(found), int(document["sequence_number"]))


def operation_at_work(name: str, modified: datetime | None, now: datetime) -> str | None:
    """The operation that may be at work by a file of the workspace; None: the file says of none.

    ``modified`` is when the file last changed; None: it is gone.
    """
    is_young = modified is not None and modified >= now - ABANDONED_AFTER
    return operation_of_base(name) if is_young else None


def held(metadata: Any, bases: Mapping[str, Base]) -> dict[str, set[int]]:
    """The ids of the snapshots of pyiceberg's ``metadata`` that are held, by what holds them.

    ``bases`` are by the id of the operation, which holds its base and all that build on it.
    """
    return {
        f"operation {operation_id}": descendants(metadata, base.snapshot_id)
        for operation_id, base in bases.items()
    }


def descendants(metadata: Any, snapshot_id: int | None) -> set[int]:
    """The ids of a snapshot of pyiceberg's ``metadata`` and of all that build on it.

    None: those of all snapshots, which came after there was none.
    """
    children: dict[int | None, list[int]] = {}
    for each in metadata.snapshots:
        children.setdefault(each.parent_snapshot_id, []).append(each.snapshot_id)
    if snapshot_id is None:
        return {each.snapshot_id for each in metadata.snapshots}
    reached, waiting = set[int](), [snapshot_id]
    while waiting:
        number = waiting.pop()
        if number not in reached:
            reached.add(number)
            waiting += children.get(number, ())
    return reached
