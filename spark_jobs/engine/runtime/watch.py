"""Watches a long statement from a thread of the driver: a line now and then, and a note.

Nothing happens before ``FIRST_LOOK`` seconds. Counts are those of Spark's own status store: no job,
no plan and no query is made for them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from spark_jobs.contract.operation_files import running_path
from spark_jobs.contract.progress_note import (
    FIRST_LOOK,
    LOOK_EVERY,
    RENEWED_AFTER,
    ProgressNote,
    Share,
    ToldLines,
)
from spark_jobs.engine.runtime.operations import running_note
from spark_jobs.engine.runtime.progress import log
from spark_jobs.engine.runtime.query_status import share_of
from spark_jobs.storage.files import replace_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.contract.request import JobRequest
    from spark_jobs.engine.runtime.progress import Progress
    from spark_jobs.spi.storage import WarehouseStorage

# Seconds for which a statement that has ended waits for a look or a note that hangs.
_PATIENCE: Final = 2.0


@dataclass(frozen=True, slots=True)
class Watched:
    """A request at work; ``spark`` is None without a session, ``storage`` where no note is kept."""

    request: JobRequest
    progress: Progress
    spark: SparkSession | None
    storage: WarehouseStorage | None

    def look(self, began: float) -> ProgressNote:
        """How far it is now."""
        share = Share() if self.spark is None else share_of(self.spark, self.progress.job_group)
        return ProgressNote.of(self.request, began, time.time(), self.progress.now, share)

    def write(self, note: ProgressNote) -> None:
        """Keep the note where the page looks for it.

        Raises:
            OSError: the storage refused.
        """
        if self.storage is not None:
            path = f"{self.storage.root}/{running_path(self.request.operation_id)}"
            content = running_note(self.storage.filesystem, note.to_json())
            replace_file(self.storage.filesystem, path, content)


@contextmanager
def watching(
    watched: Watched, first: float = FIRST_LOOK, every: float = LOOK_EVERY
) -> Iterator[None]:
    """Watch the request within the block; whatever goes wrong there does not reach the block."""
    ended = Event()
    # The thread must not keep a driver alive, nor a statement from ending.
    thread = Thread(target=_watch, args=(watched, ended, first, every), daemon=True, name="watch")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(_PATIENCE)


def _watch(watched: Watched, ended: Event, first: float, every: float) -> None:
    began, pause = time.time(), first
    lines, notes = ToldLines(), _Notes()
    while not ended.wait(pause):
        pause = every
        with suppress(Exception):  # a statement never fails for want of a line or a note
            note = watched.look(began)
            if ended.is_set():
                return
            if lines.wanted(note):
                log.info("%s", note.text())
            if notes.wanted(note):
                watched.write(note)


class _Notes:
    """Which looks are worth a note: those that tell something else, or after a while any."""

    def __init__(self) -> None:
        self._last: ProgressNote | None = None

    def wanted(self, note: ProgressNote) -> bool:
        last = self._last
        is_same = last is not None and (last.phase, last.share) == (note.phase, note.share)
        if is_same and last is not None and note.noted < last.noted + RENEWED_AFTER:
            return False
        self._last = note
        return True
