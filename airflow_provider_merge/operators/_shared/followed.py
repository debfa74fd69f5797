"""Tells in a task's log how far its statements are, where the log of their driver is elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any, Final

from airflow_provider_merge.hooks.catalog import CatalogHook
from airflow_provider_merge.metadata.running_notes import read_note
from spark_jobs.contract.progress_note import LOOK_EVERY, ToldLines
from spark_jobs.contract.request import JobRequest

# Of a job with more statements only so many are followed: each look is a request to the store.
_MOST: Final = 20
# Seconds for which a job that has ended waits for a look that hangs.
_PATIENCE: Final = 2.0


@contextmanager
def following(
    asked: Sequence[tuple[JobRequest, CatalogHook]], log: Any, every: float = LOOK_EVERY
) -> Iterator[None]:
    """Log the notes of the requests within the block; what goes wrong there does not matter."""
    # Connections are read here: a task asks its supervisor from one thread only.
    followed = [
        (request, hook.workspace_options())
        for request, hook in asked[:_MOST]
        if request.target is not None and not request.dry_run
    ]
    ended = Event()
    thread = Thread(target=_follow, args=(followed, log, ended, every), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(_PATIENCE)


def _follow(
    followed: Sequence[tuple[JobRequest, Mapping[str, Any]]], log: Any, ended: Event, every: float
) -> None:
    lines = {request.operation_id: ToldLines() for request, _ in followed}
    while followed and not ended.wait(every):
        for request, options in followed:
            with suppress(Exception):  # a task never fails for want of a line
                workspace = request.catalog.workspace_location
                note = read_note(workspace, request.operation_id, options)
                # A driver that was killed leaves the note of an earlier try.
                is_own = note is not None and note.origin == request.origin
                if note is not None and is_own and lines[request.operation_id].wanted(note):
                    log.info("%s: %s", note.table, note.text())
