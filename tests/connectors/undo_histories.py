"""Random histories of three tables that runs of three DAGs change, and undos of these runs.

A model keeps what each commit did to the rows. After an undo, a table has the rows that it would
have without the run; or the undo was refused, and what is in the way is looked up in the lists of
files that the table libraries give.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from tests.support.undone_runs import of_run, undoing

Row = tuple[Any, ...]
# Files of data by name, with how many of their rows are marked, and files of deletes.
Files = Mapping[str, int]
DAGS = ("a", "b", "c")


class Tables(Protocol):
    """Tables with the columns ``id`` and ``s``, of one format."""

    connector: Connector
    names: Sequence[TableName]
    is_keyed: bool
    is_native: bool = False

    def write(
        self, name: TableName, operation_id: str, told: Mapping[str, str], changes: dict[int, Any]
    ) -> None:
        """Set ``s`` of these ids, which may be new; None: delete the row."""

    def append(self, name: TableName, ids: Sequence[int]) -> None:
        """Add rows as another engine does."""

    def natively(self, name: TableName, chance: random.Random, ids: Sequence[int]) -> str:
        """Let another engine change the table, which has these ids, and say what it did.

        ``expire``: it removed all snapshots but the newest; empty: these tables have no other.
        """
        del name, chance, ids
        return ""

    def rows(self, name: TableName) -> Counter[Row]:
        """All rows, as the table library reads them, with the ids of rows."""

    def files(self, name: TableName) -> Files:
        """The files of the newest snapshot, as the table library lists them."""


@dataclass(eq=False)
class Commit:
    """What a commit did to the rows and files of a table; ``undid`` are commits it took back.

    ``is_known``: its snapshot has not expired.
    """

    run: tuple[str, str] | None
    added: Counter[Row]
    removed: Counter[Row]
    before: Files
    after: Files
    undid: list[Commit] = field(default_factory=list)
    is_known: bool = True

    def touches(self, other: Commit) -> bool:
        """Whether it removed or marked a file that the other one added or marked."""
        made = {name for name, marks in other.after.items() if other.before.get(name) != marks}
        gone = {name for name, marks in self.before.items() if self.after.get(name) != marks}
        return bool(made & gone)


class History:
    """One history."""

    def __init__(self, tables: Tables, seed: int) -> None:
        self.tables = tables
        self.chance = random.Random(seed)
        self.commits: dict[TableName, list[Commit]] = {name: [] for name in tables.names}
        self.state = {name: tables.rows(name) for name in tables.names}
        self.listed = {name: tables.files(name) for name in tables.names}
        self.number = 0
        self.seen: Counter[str] = Counter()
        self.runs: list[tuple[str, str]] = []

    def play(self, runs: int) -> Counter[str]:
        """Runs in turn, with appends of other engines and undos in between."""
        for name in self.tables.names:
            for first in range(0, 60, 12):
                self._append(name, [n for n in range(first, first + 12) if n // 3 % 2 == 0])
        for number in range(runs):
            run = self.chance.choice(DAGS), f"r{number}"
            self.runs.append(run)
            for name in self.chance.choices(self.tables.names, k=self.chance.randint(1, 3)):
                self._write(name, run)
                if self.chance.random() < 0.2:
                    self._append(name, [1000 + self.number])
                self._natively(name)
            if self.chance.random() < 0.6:
                self._undo(self.chance.choice(self.runs))
        for run in reversed(list(self.runs)):
            self._undo(run)
        return self.seen

    def _write(self, name: TableName, run: tuple[str, str]) -> None:
        """A statement on some of the keys that the run's DAG alone changes."""
        own = [n for n in range(60) if n % 3 == DAGS.index(run[0]) and n // 3 % 2 == 0]
        if self.chance.random() < 0.3:
            own = [n for n in own if n >= 30]
        present = {row[0] for row in self.state[name]}
        chosen = self.chance.sample(own, self.chance.randint(1, 4))
        changes = {
            n: None if n in present and self.chance.random() < 0.4 else f"v{self.number}"
            for n in sorted(chosen)
        }
        self.number += 1
        operation_id = f"op-{self.number}"
        told = of_run(run[1], operation_id, run[0])
        self.tables.write(name, operation_id, told, changes)
        self._note(name, run)

    def _append(self, name: TableName, ids: Sequence[int]) -> None:
        self.number += 1
        self.tables.append(name, ids)
        self._note(name, None)

    def _natively(self, name: TableName) -> None:
        """What another engine does: changes of any rows, compactions, expiries."""
        chance = random.Random(self.chance.random()) if self.tables.is_native else None
        if chance is None or chance.random() < 0.5:
            return
        self.number += 1
        done = self.tables.natively(name, chance, sorted({row[0] for row in self.state[name]}))
        self.seen[done] += 1
        if done != "expire":
            self._note(name, None)
            return
        assert self.tables.rows(name) == self.state[name]
        for each in self.commits[name][:-1]:
            each.is_known = False

    def _note(self, name: TableName, run: tuple[str, str] | None) -> Commit:
        rows, files = self.tables.rows(name), self.tables.files(name)
        before = self.state[name]
        found = Commit(run, rows - before, before - rows, self.listed[name], files)
        self.commits[name].append(found)
        self.state[name], self.listed[name] = rows, files
        return found

    def _undo(self, run: tuple[str, str]) -> None:
        """Take a run, which may be that of an undo, back everywhere."""
        self.number += 1
        operation_id = f"undo-{self.number}"
        asked = undoing(run[1], operation_id, run[0])
        assert self.tables.connector.undo is not None
        for name in self.tables.names:
            mine = [each for each in self._counting(name) if each.run == run and each.is_known]
            try:
                report = self.tables.connector.undo.undone(name, asked)
            except JobError as error:
                self.seen["refused"] += 1
                self._require_right(name, mine, error)
                assert self.tables.rows(name) == self.state[name], "a refusal changed rows"
                continue
            if report.outcome == "unchanged":
                assert self.tables.rows(name) == self.state[name]
                assert self._without(name, mine) == self.state[name], "nothing was taken back"
                self.seen["unchanged"] += 1
            else:
                self._require_undone(name, mine, ("care", f"{operation_id}-run"))
        self.runs.append(("care", f"{operation_id}-run"))

    def _require_undone(self, name: TableName, mine: list[Commit], origin: tuple[str, str]) -> None:
        """Check that the table has what the commits that count now did, and nothing else."""
        assert mine
        self._note(name, origin).undid = mine
        assert self.state[name] == self._without(name)
        self.seen["undone"] += 1
        self.seen["undo of an undo"] += any(each.undid for each in mine)

    def _without(self, name: TableName, gone: Sequence[Commit] = ()) -> Counter[Row]:
        """The rows of the commits that count once those of ``gone`` are taken back."""
        expected: Counter[Row] = Counter()
        for each in self._counting(name, gone):
            if not each.undid:
                expected.update(each.added)
                expected.subtract(each.removed)
        assert min(expected.values(), default=0) >= 0, "rows that others changed were taken back"
        return +expected

    def _counting(self, name: TableName, gone: Sequence[Commit] = ()) -> list[Commit]:
        """The commits that none that counts has taken back, oldest first; none of ``gone``."""
        found: list[Commit] = []
        for each in reversed(self.commits[name]):
            if any(each is one for one in gone):
                continue
            if not any(each is one for later in found for one in later.undid):
                found.append(each)
        return found[::-1]

    def _require_right(self, name: TableName, mine: list[Commit], error: JobError) -> None:
        """Check that a later commit that counts touched a file of the run, or rows of its keys."""
        if error.code is ErrorCode.COMMIT_HISTORY_EXPIRED:
            assert not all(each.is_known for each in self.commits[name]), error
            self.seen["expired"] += 1
            return
        assert error.code is ErrorCode.COMMITS_OF_OTHERS, error
        assert mine
        first = next(n for n, each in enumerate(self.commits[name]) if each is mine[0])
        later = [each for each in self.commits[name][first:] if each not in mine]
        counting = self._counting(name)
        if self.tables.is_keyed:
            assert any(each in counting or each.undid for each in later)
            return
        # Copies of a file, and undone commits between, lead from one file to another.
        chain, culprits = [*mine], []
        for each in later:
            if any(other in chain for other in each.undid):
                chain.append(each)
            elif any(each.touches(other) for other in chain):
                chain.append(each)
                culprits.append(each)
        assert any(each in counting for each in culprits), (name, str(error))
