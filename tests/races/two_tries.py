"""Two tries of an operation, one of which may be given up, in every order of their steps.

``python -m tests.races.two_tries [--store local|s3|hdfs] [--interleavings N] [--seed S]``. The
steps are those of a job around its statement, with the job's own fence, lease and memory on a real
store; the table is a model of it: a name that only one writer can create.
"""

# ruff: noqa: T201 - a command speaks on the terminal

from __future__ import annotations

import argparse
import itertools
import random
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.operation_files import FOLDER, fence_path
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.engine.runtime.permission import Fence
from spark_jobs.errors import CommitError
from spark_jobs.spi.storage import WarehouseStorage
from spark_jobs.storage.files import replace_file
from tests.judge.hdfs_server import hdfs_server, hdfs_toolchain
from tests.support.gateway import gateway_program, serving
from tests.support.stores import ObjectStore

# How many orders are tried at the same time: a store's answers take most of the time.
THREADS = 8
# After so many the workspace is emptied: a second try lists it.
BLOCK = 100
Steps = Iterator[None]


@dataclass
class Trial:
    """One order of steps: who may take the next one, and what became of it."""

    storage: WarehouseStorage
    operation: str
    published: list[int] = field(default_factory=list)
    given_up_before_look: set[int] = field(default_factory=set)
    outcomes: dict[int, str] = field(default_factory=dict)
    given_up: set[int] = field(default_factory=set)

    def driver(self, number: int) -> Steps:
        """A try from its start to its publication, as ``Job`` goes about it."""
        log = OperationLog(self.storage)
        fence = Fence(self.storage, self.operation, number)
        try:
            fence.enter()
            yield
            log.clear_leftovers(self.operation, number)
            yield
            if self._finds_a_commit(number):
                return
            scratch = log.begin(self.operation, number)
            yield
            if number in self.given_up:
                self.given_up_before_look.add(number)
            fence.require_none()
            yield
            log.lease(scratch).require()
            yield
            if self.published:
                self._finds_a_commit(number)
            else:
                self.published.append(number)
                self.outcomes[number] = "published"
        except CommitError as error:
            self.outcomes[number] = str(error.code)

    def giving_up(self, number: int) -> Steps:
        """What the operator does when a task ends: first the fence, then the leases."""
        path = f"{self.storage.root}/{fence_path(self.operation, number)}"
        replace_file(self.storage.filesystem, path, b"")
        self.given_up.add(number)
        yield
        OperationLog(self.storage).clear_leftovers(self.operation, number)

    def problems(self) -> list[str]:
        """What must never be, however the steps follow each other."""
        found = []
        if len(self.published) > 1:
            found.append("two tries published")
        if self.given_up_before_look & set(self.published):
            found.append("a try published that was given up before its last look")
        if 2 not in self.given_up and self.outcomes.get(2) not in ("published", "found"):
            found.append(f"the second try ended with {self.outcomes.get(2)}")
        return found

    def _finds_a_commit(self, number: int) -> bool:
        if self.published:
            self.outcomes[number] = "found"
        return bool(self.published)


def orders(lengths: list[int]) -> Iterator[tuple[int, ...]]:
    """Every order of the steps of several actors with so many steps."""
    if not any(lengths):
        yield ()
        return
    for actor, left in enumerate(lengths):
        if left:
            fewer = [each - (index == actor) for index, each in enumerate(lengths)]
            for rest in orders(fewer):
                yield (actor, *rest)


def run_one(
    storage: WarehouseStorage, operation: str, order: tuple[int, ...], ended: int | None
) -> list[str]:
    """The problems of one order; ``ended``: the try that is given up."""
    trial = Trial(storage, operation)
    actors = [trial.driver(1), trial.driver(2)]
    if ended is not None:
        actors.append(trial.giving_up(ended))
    for actor in order:
        next(actors[actor], None)
    for each in actors:
        for _ in each:
            pass
    return [f"{order}, given up {ended}: {each}" for each in trial.problems()]


def trials(count: int | None, seed: int) -> Iterator[tuple[tuple[int, ...], int | None]]:
    """Orders with and without a try that is given up: all, or so many of them by chance."""
    lists = [
        (order, ended)
        for ended in (None, 1, 2)
        for order in orders([6, 6] if ended is None else [6, 6, 2])
    ]
    if count is None or count >= len(lists):
        yield from lists
    else:
        yield from random.Random(seed).sample(lists, count)


def run_trials(storage: WarehouseStorage, count: int | None, seed: int) -> tuple[int, list[str]]:
    """How many orders were run, each as an operation of its own, and their problems."""
    done, problems = 0, []
    chosen = trials(count, seed)
    with ThreadPoolExecutor(THREADS) as pool:
        while block := list(itertools.islice(chosen, BLOCK)):
            runs = [
                pool.submit(run_one, storage, f"operation-{number}", order, ended)
                for number, (order, ended) in enumerate(block)
            ]
            problems += [problem for run in runs for problem in run.result()]
            done += len(runs)
            storage.filesystem.delete_dir_contents(f"{storage.root}/{FOLDER}")
    return done, problems


@contextmanager
def place(store: str) -> Iterator[WarehouseStorage]:
    """An empty workspace on a store."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        spec, credentials = CatalogSpec("paimon", str(folder / "warehouse")), {}
        if store == "hdfs":
            spec = stack.enter_context(hdfs_server(hdfs_toolchain())).new_catalog()
        elif store == "s3":
            key = ObjectStore("gateway", "")
            serve = serving(gateway_program(), folder, key.access_key, key.secret_key)
            server = replace(key, endpoint=stack.enter_context(serve))
            spec, credentials = server.new_catalog(), server.credentials
        else:
            (folder / "warehouse").mkdir()
        yield open_connector(spec, credentials).storage


def main() -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.races.two_tries", description=__doc__)
    parser.add_argument("--store", default="local", choices=["local", "s3", "hdfs"])
    parser.add_argument("--interleavings", type=int, help="by chance; all by default")
    parser.add_argument("--seed", type=int, default=0)
    parsed = parser.parse_args()
    with place(parsed.store) as storage:
        done, problems = run_trials(storage, parsed.interleavings, parsed.seed)
    print("\n".join(itertools.islice(problems, 20)))
    print(f"{done} orders on {parsed.store}, {len(problems)} problems")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
