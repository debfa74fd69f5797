"""What gates say of a table that they looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow_provider_merge.metadata.snapshot_facts import described
from airflow_provider_merge.metadata.table_view import TableView


@dataclass(frozen=True, slots=True)
class Observation:
    """What a gate saw of a table: for people, and as facts if the gate is open.

    ``seen`` of a shut gate also tells what it waits for.
    """

    seen: str
    facts: dict[str, Any] | None = None


def newest(view: TableView) -> str:
    """The table's newest snapshot, for people."""
    if view.latest is None:
        return "the table has no snapshot"
    return f"newest: {described(view.latest)}"


def counted(count: int, what: str) -> str:
    """A number with its noun: 1 row, 1,200 rows."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
