"""A table as others see it: rows, snapshots and files, through pypaimon alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypaimon import CatalogFactory


@dataclass(frozen=True)
class Seen:
    """``ids`` and ``made_by``: every snapshot and its commit user, oldest first.

    Paths are absolute.
    """

    rows: Sequence[dict[str, Any]]
    ids: Sequence[int]
    made_by: Sequence[str]
    live: frozenset[str]
    on_disk: frozenset[str]
    guards: frozenset[str]

    @property
    def unreferenced(self) -> frozenset[str]:
        """Data files on disk that no snapshot's live files hold."""
        return self.on_disk - self.live


def look(warehouse: Path, name: str) -> Seen:
    """The table now."""
    table = CatalogFactory.create({"warehouse": str(warehouse)}).get_table(name)
    builder = table.new_read_builder()
    splits = builder.new_scan().plan().splits()
    rows = builder.new_read().to_arrow(splits).to_pylist() if splits else []
    root = warehouse / f"{name.split('.', maxsplit=1)[0]}.db" / name.split(".")[1]
    snapshots = sorted(
        (json.loads(path.read_text()) for path in (root / "snapshot").glob("snapshot-*")),
        key=lambda snapshot: int(snapshot["id"]),
    )
    return Seen(
        rows=sorted(rows, key=repr),
        ids=[int(snapshot["id"]) for snapshot in snapshots],
        made_by=[snapshot["commitUser"] for snapshot in snapshots],
        live=frozenset(str(path) for split in splits for path in split.file_paths),
        on_disk=frozenset(str(path) for path in root.rglob("*.parquet")),
        guards=frozenset(path.name for path in root.glob("consumer/consumer-*")),
    )
