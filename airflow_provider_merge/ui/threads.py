"""Threads that never keep Airflow's server from ending: a store may not answer at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")


def start(work: Callable[[], object]) -> None:
    """Start ``work``, for whose end nobody waits when the process ends."""
    Thread(target=work, name="tables", daemon=True).start()


def settle(future: Future[T], work: Callable[[], T]) -> None:
    """Do ``work`` for a future, unless that was cancelled."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 - who waits for the future raises it
        future.set_exception(error)


def spread(work: Callable[[S], T], items: Sequence[S], threads: int) -> list[Future[T]]:
    """A future for each of the items, which at most so many threads work on in their order."""
    futures: list[Future[T]] = [Future() for _ in items]
    waiting: SimpleQueue[tuple[Future[T], S]] = SimpleQueue()
    for pair in zip(futures, items, strict=True):
        waiting.put(pair)

    def work_on() -> None:
        while True:
            try:
                future, item = waiting.get_nowait()
            except Empty:
                return
            settle(future, partial(work, item))

    for _ in range(min(threads, len(items))):
        start(work_on)
    return futures
