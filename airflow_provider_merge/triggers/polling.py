"""One poll for each table and interval, shared by all triggers of a triggerer process.

Everything that reads files runs in threads of its own, so that a slow store blocks neither the
event loop nor the threads that other triggers use.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Final
from weakref import WeakKeyDictionary

from airflow_provider_merge.hooks.catalog import CatalogHook, catalog_hook_async, other_table
from airflow_provider_merge.metadata.snapshot_cache import SnapshotCache
from airflow_provider_merge.metadata.table_view import TableView
from airflow_provider_merge.storage.failures import reaching
from spark_jobs.errors import ErrorCode, JobError

log = logging.getLogger(__name__)
_THREADS: Final = 8

Question = Callable[[TableView], Any]


@dataclass(frozen=True, slots=True)
class Poll:
    """What is polled, and how often."""

    catalog_conn_id: str
    table: str
    seconds: float


@asynccontextmanager
async def answers(poll: Poll, question: Question) -> AsyncIterator[AsyncIterator[Any]]:
    """What the question finds in each poll of the table, or the exception that it raised.

    The question is asked in a thread. A poll that comes while an answer waits to be taken is left
    out.
    """
    pollers = _pollers_of_this_loop()
    poller = pollers.get(poll) or pollers.setdefault(poll, _Poller(poll))
    inbox: asyncio.Queue[Any] = asyncio.Queue(1)
    poller.asked[id(inbox)] = (question, inbox)
    poller.start()
    try:
        async with aclosing(_items(inbox)) as stream:
            yield stream
    finally:
        del poller.asked[id(inbox)]
        if not poller.asked:
            poller.stop()
            if pollers.get(poll) is poller:
                del pollers[poll]


async def _items(inbox: asyncio.Queue[Any]) -> AsyncGenerator[Any, None]:
    while True:
        yield await inbox.get()


@dataclass
class _Poller:
    """Polls a table as long as anybody asks."""

    poll: Poll
    asked: dict[int, tuple[Question, asyncio.Queue[Any]]] = field(default_factory=dict)
    cache: SnapshotCache = field(default_factory=SnapshotCache)
    hook: CatalogHook | None = None
    task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self.task is None:
            self.task = asyncio.create_task(self._run(), name=f"poll of {self.poll.table}")

    def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            waiting = {key: each for key, each in self.asked.items() if each[1].empty()}
            is_reopened = self.hook is None
            try:
                if self.hook is None:
                    self.hook = await catalog_hook_async(self.poll.catalog_conn_id)
                questions = {key: question for key, (question, _) in waiting.items()}
                answers_by_key = await loop.run_in_executor(
                    _threads(self.poll.catalog_conn_id), self._ask, self.hook, questions
                )
            except Exception as error:  # noqa: BLE001 - it goes to everybody who asked
                answers_by_key = dict.fromkeys(waiting, error)
            errors = [answer for answer in answers_by_key.values() if isinstance(answer, JobError)]
            if errors:
                # The connection may have been changed.
                self.hook = None
                if not is_reopened and not all(map(is_passing, errors)):
                    continue  # no wait is ended by keys that are known to be old
            for key, answer in answers_by_key.items():
                if key in self.asked:
                    self.asked[key][1].put_nowait(answer)
            await asyncio.sleep(self.poll.seconds)

    def _ask(self, hook: CatalogHook, questions: dict[int, Question]) -> dict[int, Any]:
        """The answers by key; runs in a thread."""
        others = partial(other_table, hook)
        view = TableView(hook.table(self.poll.table), self.cache, others)
        answers_by_key: dict[int, Any] = {}
        for key, question in questions.items():
            try:
                with reaching(view.table.location):
                    answers_by_key[key] = question(view)
            except Exception as error:  # noqa: BLE001 - it goes to who asked
                answers_by_key[key] = error
        return answers_by_key


def is_passing(answer: Any) -> bool:
    """Whether an answer is an error that a later poll may not meet."""
    return isinstance(answer, JobError) and (
        answer.retryable or answer.code is ErrorCode.METADATA_UNREADABLE
    )


_POLLERS: WeakKeyDictionary[Any, dict[Poll, _Poller]] = WeakKeyDictionary()


def _pollers_of_this_loop() -> dict[Poll, _Poller]:
    return _POLLERS.setdefault(asyncio.get_running_loop(), {})


@cache
def _threads(_catalog_conn_id: str) -> ThreadPoolExecutor:
    """Those of one connection, so that a store that is down holds up no other one's tables."""
    return ThreadPoolExecutor(_THREADS, "table-poll")
