"""How far a running statement is: what its job notes in the workspace, for the table's page.

The note is in the file that ``operation_files.running_path`` names, which is there anyway as long
as the statement runs. It has names, times and counts: no secret, and nothing of the statement's
text.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Final

from spark_jobs.contract import codec
from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin

# Seconds before the first note, between two looks, and after which a note is renewed anyway.
FIRST_LOOK: Final = 10.0
LOOK_EVERY: Final = 10.0
RENEWED_AFTER: Final = 30.0
# Of a note that was not renewed for so many seconds, nobody knows whether its driver lives.
SILENT_AFTER: Final = 150.0
# Percents between two lines of the same phase.
_STEP: Final = 10
# In the year 5138.
_LAST: Final = 1e11


@dataclass(frozen=True, slots=True)
class Share:
    """Tasks of the Spark stages at work, and the rows that they have handled; 0: not known."""

    tasks_done: int = 0
    tasks: int = 0
    rows: int = 0

    @property
    def percent(self) -> int | None:
        """Whole percents of the tasks that have ended; None: no stage is at work."""
        return 100 * self.tasks_done // self.tasks if self.tasks else None


@dataclass(frozen=True, slots=True)
class ProgressNote:
    """A statement that runs: what it is, who runs it, since when, and how far it is.

    ``catalog`` is the ``catalog_mark`` of its catalog. ``began`` and ``noted`` are seconds since
    1970 by the driver's clock.
    """

    operation_id: str
    kind: str
    table: str
    catalog: str
    origin: Origin
    began: float
    noted: float
    phase: str
    share: Share

    @classmethod
    def of(
        cls, request: JobRequest, began: float, noted: float, phase: str, share: Share
    ) -> ProgressNote:
        """The note of a request with a table."""
        table, catalog = str(request.table), catalog_mark(request.catalog)
        kind, origin = request.statement.kind, request.origin
        return cls(request.operation_id, kind, table, catalog, origin, began, noted, phase, share)

    def to_json(self) -> str:
        """The note as text; ASCII."""
        return json.dumps(codec.encode(self))

    @classmethod
    def from_json(cls, text: str) -> ProgressNote:
        """The note in a text.

        Raises:
            ValueError: it is none.
            RequestError: it is of another release.
        """
        note = codec.decode(cls, json.loads(text))
        if not all(0 <= each < _LAST for each in (note.began, note.noted)):
            raise ValueError("it was written at no time")
        return note

    def text(self) -> str:
        """How far it is, for people."""
        seconds = max(0.0, self.noted - self.began)
        parts = [f"{self.phase or 'start'}, for {seconds:,.0f} seconds in all"]
        if self.share.percent is not None:
            done, tasks = self.share.tasks_done, self.share.tasks
            parts.append(f"{done:,} of {tasks:,} tasks of its stages ({self.share.percent} %)")
        if self.share.rows:
            parts.append(f"{self.share.rows:,} rows so far")
        return f"progress: {'; '.join(parts)}"


class ToldLines:
    """Which notes are worth a line: another phase, or ``_STEP`` percents more of the same one."""

    def __init__(self) -> None:
        self._phase: str | None = None
        self._percent = -_STEP

    def wanted(self, note: ProgressNote) -> bool:
        """Whether to tell of a note; the next ones are compared with it then."""
        percent = note.share.percent or 0
        is_new = note.phase != self._phase or percent < self._percent
        if not is_new and percent < self._percent + _STEP:
            return False
        self._phase, self._percent = note.phase, percent
        return True


def catalog_mark(catalog: CatalogSpec) -> str:
    """The same text for all connections to the same catalog, from which nobody reads options."""
    parts = [catalog.connector, catalog.warehouse, sorted(catalog.options.items())]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
