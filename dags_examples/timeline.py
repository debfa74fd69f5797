"""The history of a Paimon table as plain files tell it: no Spark, no table library.

Paimon keeps one JSON file for each snapshot. The properties of a snapshot that a job made hold who
asked for it and what it did.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

COUNTS = ("inserted", "updated", "deleted", "files_rewritten", "files_total")
HEADER = ("id", "time (UTC)", "operation", "inserted", "updated", "deleted", "files rewritten")


def read_timeline(warehouse: Path, table: str) -> list[dict[str, Any]]:
    """One entry for each snapshot of ``table``, oldest first.

    Keys: ``id``, ``time`` (ISO 8601, UTC), ``operation`` and the counts of ``COUNTS``, None where
    no job recorded them. The operation is the task that made it, with the name of its statement if
    it has several, else Paimon's kind of commit.
    """
    database, name = table.split(".")
    timeline = []
    for path in (warehouse / f"{database}.db" / name / "snapshot").glob("snapshot-*"):
        snapshot = json.loads(path.read_text())
        properties = snapshot.get("properties") or {}
        metrics = json.loads(properties.get("merge.metrics", "{}"))
        moment = datetime.fromtimestamp(snapshot["timeMillis"] / 1000, UTC)
        timeline.append(
            {
                "id": snapshot["id"],
                "time": moment.isoformat(timespec="seconds"),
                "operation": _operation(properties) or snapshot["commitKind"],
                **{count: metrics.get(count) for count in COUNTS},
            }
        )
    return sorted(timeline, key=lambda entry: int(entry["id"]))


def render_timeline(timeline: Sequence[Mapping[str, Any]]) -> str:
    """The entries as a table of text."""
    rows = [HEADER, *(_cells(entry) for entry in timeline)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADER))]
    lines = []
    for row in rows:
        # The first three columns are words, the others numbers.
        words = [cell.ljust(width) for cell, width in zip(row[:3], widths[:3], strict=True)]
        numbers = [cell.rjust(width) for cell, width in zip(row[3:], widths[3:], strict=True)]
        lines.append("  ".join(words + numbers).rstrip())
    return "\n".join(lines)


def _operation(properties: Mapping[str, str]) -> str:
    names = (properties.get(f"merge.{each}") for each in ("task-id", "statement-name"))
    return " ".join(name for name in names if name)


def _cells(entry: Mapping[str, Any]) -> tuple[str, ...]:
    def number(name: str) -> str:
        return "?" if entry[name] is None else f"{entry[name]:,}"

    return (
        str(entry["id"]),
        str(entry["time"])[:19].replace("T", " "),
        str(entry["operation"]),
        *(number(name) for name in COUNTS[:3]),
        f"{number('files_rewritten')} of {number('files_total')}",
    )
