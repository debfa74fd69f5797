"""Every state that an Iceberg table had, from its metadata files; one follows the other.

The log of each file names the one before it, and nobody removes them during a race: so nothing that
happened is missed, although snapshots expire, and files of commits that failed are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.iceberg import path_of


@dataclass(frozen=True)
class State:
    """The table after one commit."""

    snapshots: Mapping[int, Mapping[str, Any]]
    refs: Mapping[str, int]

    @property
    def in_order(self) -> list[Mapping[str, Any]]:
        """Its snapshots, in the order of their commits."""
        return sorted(self.snapshots.values(), key=lambda each: each["sequence-number"])


def states_of(location: str) -> Iterator[State]:
    """The states up to the metadata file at ``location``, oldest first."""
    locations = [location]
    while True:
        document = json.loads(Path(path_of(locations[-1])).read_text())
        log = document.get("metadata-log") or []
        if not log:
            break
        locations.append(log[-1]["metadata-file"])
    for each in reversed(locations):
        document = json.loads(Path(path_of(each)).read_text())
        snapshots = {s["snapshot-id"]: s for s in document.get("snapshots") or []}
        refs = {name: ref["snapshot-id"] for name, ref in (document.get("refs") or {}).items()}
        yield State(snapshots, refs)
