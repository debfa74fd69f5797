"""Which landed files a run takes: those that no commit of its task has applied."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, get_args

from spark_jobs.contract.checks import require, require_among

Replaced = Literal["fail", "again"]

ALL: Final = "all"
NOW: Final = "now"
# Read by this project itself from a list of files.
_FORMATS: Final = ("csv", "json", "text", "avro", "parquet", "orc")


@dataclass(frozen=True, slots=True)
class NewFiles:
    """The files of a source that are new since the task's last commit.

    ``start``: what the first run does with files that are there already. With ``all`` they are new,
    with ``now`` they count as applied; with a time (ISO 8601, with its zone) those that were
    modified before count as applied. ``replaced``: a file that changed after it was applied is an
    error (``fail``), or new (``again``). ``max_files`` and ``max_bytes`` are what a run takes at
    most, oldest files first, but always one; None: all.
    """

    start: str
    replaced: Replaced = "fail"
    max_files: int | None = None
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        choices = get_args(Replaced)
        require_among(self.replaced, choices, "replaced")
        for name in ("max_files", "max_bytes"):
            value = getattr(self, name)
            require(value is None or value > 0, name, f"{value} is not positive")
        if self.start not in (ALL, NOW):
            self._require_time()

    @property
    def start_ns(self) -> int | None:
        """The time of ``start``, in nanoseconds since 1970; None if it is none."""
        if self.start in (ALL, NOW):
            return None
        moment = datetime.fromisoformat(self.start)
        return int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1_000

    def require_format(self, format_: str) -> None:
        """Refuse formats whose files only Spark reads.

        Raises:
            RequestError: REQUEST_INVALID.
        """
        require(
            format_.lower() in _FORMATS,
            "new_files",
            f"files of the format {format_!r} are not read one by one",
            f"New files are for: {', '.join(_FORMATS)}. Read these with file_source.",
        )

    def _require_time(self) -> None:
        try:
            moment = datetime.fromisoformat(self.start)
        except ValueError:
            moment = None
        remedy = f"Write {ALL!r}, {NOW!r}, or a time with its zone: 2026-01-31T00:00:00+00:00."
        require(
            moment is not None,
            "start",
            f"{self.start!r} is neither {ALL!r}, {NOW!r} nor a time",
            remedy,
        )
        has_zone = moment is not None and moment.tzinfo is not None
        require(has_zone, "start", f"{self.start!r} is a time without a zone", remedy)
