"""Which former state of a table a source reads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from spark_jobs.contract.checks import LONGEST_NAME, require

_LARGEST: Final = 2**63 - 1
_TIME: Final = re.compile(
    r"""[0-9]{4}-[0-9]{2}-[0-9]{2}
        (?: [T\ ] [0-9]{2}:[0-9]{2} (?: :[0-9]{2} (?:\.[0-9]{1,6})? )?
            (?: \ ?(?:Z|UTC|[+-][0-9]{2}:[0-9]{2}) )? )?""",
    re.ASCII | re.VERBOSE,
)
_NO_TEXT: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


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
