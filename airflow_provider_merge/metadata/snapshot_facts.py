"""What is told of a snapshot or table: to other tasks as facts, and to people as text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from airflow_provider_merge.metadata.model import Snapshot
from airflow_provider_merge.metadata.table_view import TableView
from spark_jobs.contract import properties

_PROPERTIES = {
    "operation_id": properties.OPERATION_ID,
    "statement": properties.STATEMENT,
    "dag_id": properties.DAG_ID,
    "run_id": properties.RUN_ID,
    "task_id": properties.TASK_ID,
}


def snapshot_facts(snapshot: Snapshot) -> dict[str, Any]:
    """A snapshot as XCom and as the payload of an event: ids, time, who made it.

    ``time`` is ISO 8601 in UTC, ``time_millis`` counts from 1970.
    """
    facts: dict[str, Any] = {
        "snapshot_id": snapshot.snapshot_id,
        "commit_kind": snapshot.commit_kind,
        "time": time_text(snapshot.time_millis),
        "time_millis": snapshot.time_millis,
        "total_records": snapshot.total_record_count,
    }
    made_by = {name: snapshot.properties.get(key) for name, key in _PROPERTIES.items()}
    return {**facts, **{name: value for name, value in made_by.items() if value is not None}}


def described(snapshot: Snapshot) -> str:
    """A snapshot for people."""
    made_by = snapshot.properties.get(properties.STATEMENT, snapshot.commit_kind)
    return f"snapshot {snapshot.snapshot_id} ({made_by}, {time_text(snapshot.time_millis)})"


def time_text(millis: int) -> str:
    """A time in milliseconds since 1970 as ISO 8601 in UTC."""
    try:
        return datetime.fromtimestamp(millis / 1000, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return f"{millis} ms"


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
