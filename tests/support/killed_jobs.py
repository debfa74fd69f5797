"""Jobs in this process that die at one of their steps, as if the driver had been killed there.

What would be done after the last step is not: neither clean-up nor a stored result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

from spark_jobs.engine.changes import kept_rows, row_checking
from spark_jobs.engine.job import side_job, statement_job
from spark_jobs.engine.runtime import operations
from spark_jobs.engine.runtime.lease import Lease
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.spi.connector import Connector

_WRITES = ("begin_merge", "finish_merge", "abort_merge", "release_guard", "store_schema")
_LOG = ("store", "begin", "end", "clear_leftovers", "forget_running")
_FUNCTIONS = (
    (row_checking, "keep"),
    (kept_rows, "replace_file"),
    (side_job, "remove_side_folder"),
    (statement_job, "remove_side_folder"),
    (operations, "replace_file"),
    (operations, "remove_folder"),
    (Lease, "end"),
)


class Killed(BaseException):
    """The driver is dead."""


@dataclass
class Steps:
    """Counts steps; the driver dies at number ``last``: before it, or ``behind`` it.

    ``only``: of the steps of this name.
    """

    last: int
    behind: bool = False
    only: str = ""
    count: int = 0
    names: list[str] = field(default_factory=list)
    is_dead: bool = False

    def step(self, name: str, do: Callable[..., Any]) -> Callable[..., Any]:
        """``do`` as a step."""

        def stepped(*args: Any, **kwargs: Any) -> Any:
            if self.is_dead:
                raise Killed
            self.count += 1
            self.names.append(name)
            count = self.names.count(self.only) if self.only else self.count
            is_last = count == self.last and name.endswith(self.only)
            if is_last and not self.behind:
                self._die()
            found = do(*args, **kwargs)
            if is_last:
                self._die()
            return found

        return stepped

    def _die(self) -> None:
        self.is_dead = True
        raise Killed


class _Writes:
    """The writes of a connector, each of which is a step."""

    def __init__(self, real: Any, steps: Steps) -> None:
        self._real, self._steps = real, steps

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        return self._steps.step(name, found) if name in _WRITES else found


@contextmanager
def dying(connector: Connector, steps: Steps) -> Iterator[Connector]:
    """The connector of a driver that dies within the block, which ends quietly then."""
    with ExitStack() as patches:
        for owner, name in _FUNCTIONS:
            real = getattr(owner, name)
            patches.enter_context(mock.patch.object(owner, name, _own(steps, name, real, owner)))
        for name in _LOG:
            real = getattr(OperationLog, name)
            stepped = _own(steps, f"log.{name}", real, OperationLog)
            patches.enter_context(mock.patch.object(OperationLog, name, stepped))
        try:
            writes: Any = _Writes(connector.writes, steps)
            yield replace(connector, writes=writes)
        except Killed:
            return


def _own(steps: Steps, name: str, real: Callable[..., Any], owner: Any) -> Any:
    stepped = steps.step(name, real)
    if not isinstance(owner, type):
        return stepped

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return stepped(self, *args, **kwargs)

    return method
