"""Which changes of a table a source reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from spark_jobs.contract.checks import require
from spark_jobs.contract.near_names import require_among
from spark_jobs.contract.table_versions import TableVersion

OnGap = Literal["fail", "full"]

ALL: Final = "all"
NOW: Final = "now"
# The columns that changes have beside the table's.
CHANGE_TYPE: Final = "_change_type"
SNAPSHOT_ID: Final = "_snapshot_id"
INSERT: Final = "insert"
UPDATE_BEFORE: Final = "update_before"
UPDATE_AFTER: Final = "update_after"
DELETE: Final = "delete"


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """The changes since the task's mark, or between two snapshots.

    ``start``: where the first run begins: ``all`` (all rows are inserts), ``now`` (nothing), or
    behind ``start_at``, a former state. Later runs begin where the last one ended. Without it,
    ``from_snapshot`` is the snapshot before the first change (0: before all), and ``to_snapshot``
    the last one; None: the newest. ``net``: one row for each row or key that differs in the end,
    instead of each change. ``on_gap``: what to do if the snapshots since the mark are not known any
    more: fail, or read all rows as inserts (``full``).
    """

    start: Literal["all", "now", "at"] | None = None
    start_at: TableVersion | None = None
    from_snapshot: int | None = None
    to_snapshot: int | None = None
    net: bool = False
    on_gap: OnGap = "fail"

    def __post_init__(self) -> None:
        require(
            (self.start is None) == (self.from_snapshot is not None),
            "start" if self.from_snapshot is None else "from_snapshot",
            "either start or from_snapshot tells where the changes begin",
            "Set start to all, now, or a snapshot, tag or time; or set from_snapshot.",
        )
        require(
            (self.start == "at") == (self.start_at is not None),
            "start",
            f"{self.start!r} does not go with start_at",
        )
        require(
            self.to_snapshot is None or self.from_snapshot is not None,
            "to_snapshot",
            "goes with from_snapshot",
            "Set from_snapshot, or leave to_snapshot out: a mark moves to the newest snapshot.",
        )
        for name in ("from_snapshot", "to_snapshot"):
            value = getattr(self, name)
            require(value is None or value >= 0, name, f"{value} is no snapshot's id")
        choices = get_args(OnGap)
        require_among(self.on_gap, choices, "on_gap")
        require(
            self.on_gap == "fail" or self.start is not None,
            "on_gap",
            "a range between two snapshots has no mark",
            "Leave on_gap out.",
        )
