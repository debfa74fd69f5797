"""Every fault at every step of a driver: what the table is then, and what the next try does.

The steps of a work are those that a clean run of it makes. At each of them the driver is killed
(before it, and in the middle of a file that it writes), or the storage fails once (before the step,
or after it, so that only the answer is lost). Then the same operation is tried again.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.drivers import Drivers
from tests.faults.looking import Seen, look
from tests.faults.merges import OLD, OTHER, Work, new_table
from tests.faults.storage import LOSABLE

TABLE = "shop.orders"
WORKS = {
    "merge": Work("operation-1", 100),
    "insert": Work("operation-1", 100, changes=False),
    "merge with a new column": Work("operation-1", 100, adds="more"),
    "merge with vectors": Work("operation-1", 100, marks=True),
    "merge beside others": Work("operation-1", 100, meets_others=True),
    "merge with vectors beside others": Work("operation-1", 100, marks=True, meets_others=True),
    "appended records beside others": Work("operation-1", 100, has_key=True, meets_others=True),
    "files of columns beside others": Work("operation-1", 100, evolves=True, meets_others=True),
    "rewritten sections": Work("operation-1", 100, has_key=True, marks=True),
}
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}(-[0-9a-f]{12}-\d+)?|(?<=[-.])[0-9a-f]{32}")


@dataclass(frozen=True)
class Fault:
    """``kind``: killed before, within or after the step, failed before, answer lost after it."""

    work: str
    step: int
    kind: str
    where: str

    @property
    def kills(self) -> bool:
        """Whether a process gets SIGKILL."""
        return self.kind.startswith("killed")

    def __str__(self) -> str:
        return f"{self.work}: {self.kind} {self.where}"


@dataclass
class Matrix:
    """Runs faults of ``works`` below ``folder``; ``read`` has another engine look at the rows.

    ``care`` takes care of the table between a fault and the next try: nothing is old enough to go.
    """

    drivers: Drivers
    folder: Path
    read: Callable[[Path], list[dict[str, Any]]] | None = None
    works: Mapping[str, Work] = field(default_factory=lambda: WORKS)
    care: Drivers | None = None

    def faults(self, work: str) -> Iterator[Fault]:
        """All faults of a work."""
        steps = self.drivers.do("steps", self._fresh(work), self.works[work])["value"]
        yield from faults_of(work, steps, self._warehouse)

    def run(self, fault: Fault) -> tuple[str, str]:
        """The table's state after the fault (old or new), and what the next try did.

        Raises:
            AssertionError: rows are lost, doubled or wrong.
        """
        work, warehouse = self.works[fault.work], self._fresh(fault.work)
        if fault.kills:
            how = {"torn": fault.kind == "killed within", "acts": fault.kind == "killed after"}
            died = self.drivers.do("die", warehouse, work, step=fault.step, how=how)
            assert died["signal"] == 9, (str(fault), died)
        else:
            acts = fault.kind == "answer lost after"
            self.drivers.do("fail", warehouse, work, step=fault.step, acts=acts)
        left = self._look(work, warehouse)
        rows_left = known(left.rows)
        others = [OTHER] if OTHER in rows_left else []
        rows = [row for row in rows_left if row != OTHER]
        states = {"old": sorted(OLD, key=repr), "new": work.expected}
        (state,) = (name for name, expected in states.items() if rows == expected)
        if self.care is not None:
            cared = self.care.do("care", warehouse)["value"]
            assert cared == [], cared
        answer = self.drivers.do("try", warehouse, work, number=2)["value"]
        then = self._require_done(work, warehouse, answer, others)
        return state, then

    def _require_done(
        self, work: Work, warehouse: Path, answer: list[Any], others: list[dict[str, Any]]
    ) -> str:
        status, error, try_number, snapshot_id = answer
        assert status == "committed", error
        expected = sorted([*work.expected, *others], key=repr)
        after = self._look(work, warehouse)
        assert known(after.rows) == expected
        assert after.made_by.count(work.operation_id) == 1
        assert len(after.made_by) == 2 + len(others)
        assert after.made_by[after.ids.index(snapshot_id)] == work.operation_id
        assert after.guards == frozenset()
        assert after.live <= after.on_disk
        if self.read is not None:
            assert known(self.read(warehouse)) == expected
        return "applied" if try_number == 2 else "found"

    def _look(self, work: Work, warehouse: Path) -> Seen:
        del work
        return look(warehouse, TABLE)

    @property
    def _warehouse(self) -> Path:
        return self.folder / "warehouse"

    def _fresh(self, work: str) -> Path:
        """A new copy of the work's table, always at one and the same path."""
        marks, has_key, evolves = WORKS[work].marks, WORKS[work].has_key, WORKS[work].evolves
        seed = self.folder / f"seed-{marks}-{has_key}-{evolves}"
        if not seed.exists():
            seed.mkdir()
            new_table(seed, marks=marks, has_key=has_key, evolves=evolves)
        shutil.rmtree(self._warehouse, ignore_errors=True)
        shutil.copytree(seed, self._warehouse)
        return self._warehouse


def faults_of(work: str, steps: Iterable[tuple[str, str]], warehouse: Path) -> Iterator[Fault]:
    """All faults of a work with these steps: an audit event and the path that changes."""
    for number, (event, path) in enumerate(steps, 1):
        short = Path(path).relative_to(warehouse)
        where = f"{event.removeprefix('os.')} {_ID.sub('*', str(short))}"
        yield Fault(work, number, "killed before", where)
        if event == "open":
            yield Fault(work, number, "killed within", where)
        yield Fault(work, number, "failed before", where)
        if event in LOSABLE:
            yield Fault(work, number, "killed after", where)
            yield Fault(work, number, "answer lost after", where)


def print_survived(survived: Sequence[tuple[Fault, str, str]]) -> None:
    """A line for each fault: the state that it left, and what the next try did."""
    width = max(len(str(fault)) for fault, *_ in survived)
    sys.stdout.write("\n")
    for fault, state, then in survived:
        sys.stdout.write(f"{fault!s:<{width}}  {state:<3}  {then}\n")


def known(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows in order, without columns that are NULL: they may have been added."""
    kept = [{k: v for k, v in row.items() if v is not None} for row in rows]
    return sorted(kept, key=repr)
