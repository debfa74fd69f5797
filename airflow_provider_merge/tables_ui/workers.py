"""Threads that read metadata for the API, so that Airflow's event loop and its threads never do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, TypeVar

T = TypeVar("T")

# Seconds that a request may take, and how many of one connection may wait for a thread.
TIME_LIMIT: Final = 25.0
_WAITING: Final = 24
_THREADS: Final = 4
_POOLS: Final = 32


class BusyError(Exception):
    """Too many requests of a connection are waiting."""


@dataclass
class Workers:
    """A few threads for each connection: a store that hangs delays only its own tables.

    A thread that exceeds the limit goes on until its store answers; nobody waits for it.
    """

    seconds: float = TIME_LIMIT
    _pools: dict[str, ThreadPoolExecutor] = field(default_factory=dict)
    _waiting: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    async def run(self, connection: str, work: Callable[[], T]) -> T:
        """What ``work`` returns.

        Raises:
            BusyError: too many requests are waiting.
            TimeoutError: it took too long.
        """
        key, pool = self._pool(connection)
        with self._lock:
            if self._waiting.get(key, 0) >= _WAITING:
                raise BusyError
            self._waiting[key] = self._waiting.get(key, 0) + 1
        future = pool.submit(work)
        future.add_done_callback(lambda _: self._ended(key))
        return await asyncio.wait_for(asyncio.wrap_future(future), self.seconds)

    def _pool(self, connection: str) -> tuple[str, ThreadPoolExecutor]:
        with self._lock:
            key = connection if connection in self._pools or len(self._pools) < _POOLS else ""
            if key not in self._pools:
                self._pools[key] = ThreadPoolExecutor(_THREADS, thread_name_prefix="tables")
            return key, self._pools[key]

    def _ended(self, key: str) -> None:
        with self._lock:
            self._waiting[key] -= 1
