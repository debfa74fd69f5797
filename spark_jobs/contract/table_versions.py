"""Which former state of a table a source reads, or which changes between two of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, get_args

from spark_jobs.contract.checks import LONGEST_NAME, require, require_among

_LARGEST: Final = 2**63 - 1
_TIME: Final = re.compile(
    r"""[0-9]{4}-[0-9]{2}-[0-9]{2}
        (?: [T\ ] [0-9]{2}:[0-9]{2} (?: :[0-9]{2} (?:\.[0-9]{1,6})? )?
            (?: \ ?(?:Z|UTC|[+-][0-9]{2}:[0-9]{2}) )? )?""",
    re.ASCII | re.VERBOSE,
)
_NO_TEXT: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
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
class TableVersion:
    """One of: a snapshot's id, a tag, a time, or what SQL calls VERSION: an id or a name.

    ``as_of``: the table as it was then, ``2024-01-31``, ``2024-01-31 06:00:00`` or with an offset,
    ``2024-01-31T06:00:00+02:00``; without one, it is a time of the session's zone, as in Spark.
    """

    snapshot: int | None = None
    tag: str | None = None
    as_of: str | None = None
    version: str | None = None

    def __post_init__(self) -> None:
        names = ("snapshot", "tag", "as_of", "version")
        given = [each for each in names if getattr(self, each) is not None]
        require(
            len(given) == 1,
            given[-1] if given else "snapshot",
            f"one of {', '.join(names[:3])} tells which state is read; given are {len(given)}",
            "Leave all but one out.",
        )
        if self.snapshot is not None:
            require(
                0 <= self.snapshot <= _LARGEST, "snapshot", f"{self.snapshot} is no snapshot's id"
            )
        for name in ("tag", "version"):
            value = getattr(self, name)
            fits = value is None or (
                bool(value.strip())
                and not _NO_TEXT.search(value)
                and len(value.encode()) <= LONGEST_NAME
            )
            require(fits, name, f"{value!r} is not a name")
        if self.as_of is not None:
            require(
                _moment(self.as_of) is not None,
                "as_of",
                f"{self.as_of!r} is not a time",
                "Write 2024-01-31 06:00:00 or 2024-01-31T06:00:00+00:00; the zone as Z, UTC or an "
                "offset.",
            )

    @property
    def moment(self) -> datetime | None:
        """The time of ``as_of``; without a zone, if it has none."""
        return None if self.as_of is None else _moment(self.as_of)

    @property
    def field(self) -> str:
        """The name of what is given."""
        names = ("snapshot", "tag", "as_of", "version")
        return next(each for each in names if getattr(self, each) is not None)

    def __str__(self) -> str:
        return f"{self.field} {getattr(self, self.field)}"


def _moment(text: str) -> datetime | None:
    if not _TIME.fullmatch(text):
        return None
    plain = text.replace("UTC", "+00:00").replace("Z", "+00:00").replace(" +", "+")
    try:
        return datetime.fromisoformat(plain.replace(" -", "-"))
    except ValueError:
        return None


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
