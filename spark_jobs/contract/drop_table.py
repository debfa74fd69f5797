"""DROP TABLE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class DropTableSpec:
    """Drop the target with all its snapshots, tags and branches.

    ``if_exists``: a table that is not there is no error. ``purge``: its files go, too, of formats
    that else leave them.
    """

    if_exists: bool = False
    purge: bool = False
    kind: ClassVar[str] = "drop_table"
