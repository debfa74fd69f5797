"""The sinks of one task, which are finished together. Imported by executors."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_jobs.spi.sinks import MergeSink, MergeSinkFactory
    from spark_jobs.spi.writes import Fragment

log = logging.getLogger("airflow_provider_merge.job")


@dataclass(frozen=True, slots=True)
class TaskSinks:
    """Opens sinks as needed, and finishes or aborts all of them."""

    factory: MergeSinkFactory
    opened: list[MergeSink] = field(default_factory=list)
    unfinished: list[MergeSink] = field(default_factory=list)
    fragments: list[Fragment] = field(default_factory=list)

    def open(self, key: str) -> MergeSink:
        """A new sink; ``key`` as in ``MergeSinkFactory.open``."""
        sink = self.factory.open(key)
        self.opened.append(sink)
        self.unfinished.append(sink)
        return sink

    def finish_early(self, sink: MergeSink) -> None:
        """Finish one that gets no more rows."""
        self.unfinished.remove(sink)
        self.fragments.extend(sink.finish())

    def finish(self) -> list[Fragment]:
        """Finish the other sinks, and return what all of them wrote."""
        for sink in list(self.unfinished):
            self.finish_early(sink)
        return self.fragments

    def abort(self) -> None:
        """Abort all sinks; the driver removes what a sink fails to remove."""
        for sink in self.opened:
            try:
                sink.abort()
            except Exception as error:  # noqa: BLE001 - why the task failed matters more
                log.warning("a sink could not remove its files: %s", error)


@contextmanager
def task_sinks(factory: MergeSinkFactory) -> Iterator[TaskSinks]:
    """The sinks of a task; a failure in the block aborts them."""
    sinks = TaskSinks(factory)
    try:
        yield sinks
    except BaseException:
        sinks.abort()
        raise
