"""Threads that read metadata for the API, so that Airflow's event loop and its threads never do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

from airflow_provider_merge.ui.threads import settle, start

T = TypeVar("T")

# Seconds that a request may take, and how many of one connection may wait for a thread.
TIME_LIMIT: Final = 25.0
_WAITING: Final = 24
_THREADS: Final = 4
# Threads of one connection that exceeded the limit and have not ended yet.
_MOST_LOST: Final = 16
_LANES: Final = 32


class BusyError(Exception):
    """Too many requests of a connection are waiting, or are lost in a store that hangs."""


@dataclass(eq=False, slots=True)
class _Job:
    """``table``: of one table, one job at a time has a thread; the others wait without one."""

    table: Hashable | None
    work: Callable[[], Any]
    future: Future[Any] = field(default_factory=Future)


@dataclass(slots=True)
class _Lane:
    """What is asked of one connection; all under the lock of ``Workers``."""

    waiting: list[_Job] = field(default_factory=list)
    running: list[_Job] = field(default_factory=list)
    lost: list[_Job] = field(default_factory=list)

    def add(self, job: _Job) -> None:
        """Let a job wait.

        Raises:
            BusyError: too many are waiting or lost.
        """
        if len(self.waiting) >= _WAITING or len(self.lost) >= _MOST_LOST:
            raise BusyError
        self.waiting.append(job)

    def ready(self) -> list[_Job]:
        """The jobs that can have a thread now; they are running from here on."""
        tables = {job.table for job in (*self.running, *self.lost)}
        ready_jobs = []
        for job in list(self.waiting):
            if len(self.running) == _THREADS:
                break
            if job.table is None or job.table not in tables:
                tables.add(job.table)
                self.waiting.remove(job)
                self.running.append(job)
                ready_jobs.append(job)
        return ready_jobs

    def give_up(self, job: _Job) -> None:
        """Nobody waits for the job any more: another one may have its place."""
        if job in self.waiting:
            self.waiting.remove(job)
        elif job in self.running:
            self.running.remove(job)
            self.lost.append(job)

    def end(self, job: _Job) -> None:
        """The job's thread has come to its end."""
        for jobs in (self.running, self.lost):
            if job in jobs:
                jobs.remove(job)


@dataclass
class Workers:
    """A few threads for each connection: a store that hangs delays only its own tables.

    A thread that exceeds the limit goes on until its store answers. It has neither the place of
    another one nor the server's end to wait for it, but its table is not read meanwhile.
    """

    seconds: float = TIME_LIMIT
    _lanes: dict[str, _Lane] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    async def run(self, connection: str, work: Callable[[], T], table: Hashable | None = None) -> T:
        """What ``work`` returns; of one ``table``, only one work at a time is done.

        Raises:
            BusyError: too many requests are waiting.
            TimeoutError: it took too long.
        """
        job = _Job(table, work)
        with self._lock:
            lane = self._lane(connection)
            lane.add(job)
        self._start(lane)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(job.future), self.seconds)
        finally:
            with self._lock:
                lane.give_up(job)
            self._start(lane)

    def _start(self, lane: _Lane) -> None:
        with self._lock:
            ready = lane.ready()
        for job in ready:
            start(partial(self._do, lane, job))

    def _do(self, lane: _Lane, job: _Job) -> None:
        settle(job.future, job.work)
        with self._lock:
            lane.end(job)
        self._start(lane)

    def _lane(self, connection: str) -> _Lane:
        key = connection if connection in self._lanes or len(self._lanes) < _LANES else ""
        return self._lanes.setdefault(key, _Lane())
