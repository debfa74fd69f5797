"""A race on an Iceberg table: this project, Spark with Iceberg and pyiceberg.

``python -m tests.races.iceberg_race --minutes 10 [--catalog sql]`` lets them race for long. A race
begins when all writers are ready. The checker replays the snapshots in their order, as
``tests.races.checker`` does for Paimon: each must be what its statement makes of its parent; a
compaction keeps all rows. What
was the table's state, one after the other, must be each other's child, or a rollback.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

from pyiceberg.table.snapshots import ancestors_of

from tests.connectors.iceberg.ids_here import problems_of_ids
from tests.races.checker import Report
from tests.races.iceberg_table import RaceCatalog, made_anew, place, table_of
from tests.races.racer import DONE, READY
from tests.races.statements import KEYS, PARTITIONS, Row, Statement, as_rows
from tests.support.faketime import clock
from tests.support.iceberg_version_3 import upgrade, upgrade_on_server
from tests.support.paimon_tables import NAME

_ROOT = Path(__file__).resolve().parents[2]
WHO = ("ours", "ours", "pyiceberg", "spark")
# Pyiceberg writes no tables of version 3.
WHO_3 = ("ours", "ours", "spark")
# Who takes part besides the writers, and the programs that they are.
_OTHERS = {"disturber": "iceberg_disturber"}
_GRACE_SECONDS = 60
_LONGEST_SECONDS = 150.0
_SAMPLE = 25
KEY = "merge.operation-id"


@dataclass
class Story:
    """What a journal says of one statement: ``ends`` of its attempts, None for a success."""

    statement: Statement
    by: str
    ends: list[str | None]
    began: float
    snapshot: int | None = None
    text: str = ""


@dataclass(frozen=True)
class Writers:
    """Processes that are ready to race on tables of a catalog; ``folder`` takes their journals."""

    catalog: RaceCatalog
    folder: Path
    processes: Mapping[str, subprocess.Popen[str]]

    @classmethod
    @contextmanager
    def ready(
        cls,
        catalog: RaceCatalog,
        folder: Path,
        days: float = 0,
        who: Sequence[str] = WHO,
        others: Mapping[str, str] = _OTHERS,
    ) -> Iterator[Self]:
        """One of each of ``who`` and of ``others``, for as long as the context lasts.

        ``others``: the names of their programs. ``days``: the clocks of ours are so many days
        ahead, or behind. (Iceberg lets no snapshot be older than its table was changed: other
        writers then fail.)

        Raises:
            RuntimeError: one of them broke off.
        """
        (folder / "workspace").mkdir()
        with ExitStack() as stack:
            processes = {}
            for number, by in enumerate((*who, *others)):
                program = others.get(by, "iceberg_writer")
                command = [sys.executable, "-W", "ignore", "-m", f"tests.races.{program}"]
                wrong = days * (-1) ** number if by == "ours" else 0
                process = subprocess.Popen(
                    command,
                    cwd=_ROOT,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env={**os.environ, **clock(wrong)},
                )
                processes[f"{by}-{number}"] = stack.enter_context(process)
                stack.callback(_closed, process)
            writers = cls(catalog, folder, processes)
            for name in processes:
                by = name.partition("-")[0]
                writers._tell(
                    name,
                    by=by,
                    **catalog.plan,
                    workspace=str(folder / "workspace"),
                    folder=str(folder / name),
                )
            writers._hear(READY)
            yield writers

    def race(self, title: str, seed: int, **plan: Any) -> list[Path]:
        """Let them all race as the ``plan`` says; their journals.

        Raises:
            RuntimeError: one of them broke off.
        """
        journals = []
        for name in self.processes:
            journals.append(self.folder / f"{title}-{name}.jsonl")
            self._tell(
                name,
                journal=str(journals[-1]),
                seed=f"{seed} {name} {random.Random(seed).random()}",
                **plan,
            )
        self._hear(DONE)
        return journals

    def _tell(self, name: str, **plan: Any) -> None:
        to = self.processes[name].stdin
        assert to is not None
        to.write(json.dumps(plan) + "\n")
        to.flush()

    def _hear(self, word: str) -> None:
        """Wait until all have said it."""
        for name, process in self.processes.items():
            assert process.stdout is not None
            if not any(line.strip() == word for line in process.stdout):
                raise RuntimeError(f"{name} broke off")


def _closed(process: subprocess.Popen[str]) -> None:
    """A writer ends with its standard input."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


@dataclass(frozen=True)
class IcebergRace:
    """``marks``: the table is merged on read. ``disturbed``: it is rolled back and made anew.

    ``version`` is that of the table's format.
    """

    writers: Writers
    marks: bool = False
    partitions: int = PARTITIONS
    seed: int = 0
    disturbed: bool = False
    version: int = 2

    def run(self, seconds: float) -> Report:
        """Let the writers race, then check what they left; raises as ``Writers.race``."""
        catalog = self.writers.catalog
        first = new_table(catalog, marks=self.marks)
        if self.version == 3:
            name = (NAME.database, NAME.table)
            if catalog.options["type"] == "rest":
                upgrade_on_server(catalog.opened(), name)
            else:
                upgrade(catalog.opened().load_table(name))
        title = f"{self.seed}-{'marked' if self.marks else 'copied'}"
        journals = self.writers.race(
            title,
            self.seed,
            seconds=seconds,
            partitions=self.partitions,
            marks=self.marks,
            disturbed=self.disturbed,
        )
        return self._checked(journals, first)

    def _checked(self, journals: Sequence[Path], first: list[Row]) -> Report:
        stories, recreations = stories_of(journals), _recreations(journals)
        table = self.writers.catalog.opened().load_table((NAME.database, NAME.table))
        report = Report(snapshots=len(table.snapshots()) - 1, statements=len(stories))
        report.disturbances.update(["recreation"] * len(recreations))
        made = _replayed(table, stories, first, report)
        if self.version == 3:
            workspace = str(self.writers.folder / "workspace")
            report.problems += problems_of_ids(self.writers.catalog.connector(workspace), NAME)
        _look_at_line(table, report)
        for operation_id, story in stories.items():
            report.attempts += len(story.ends)
            report.conflicts += story.ends.count("COMMIT_CONFLICT")
            last = story.ends[-1] if story.ends else "ended"
            if last is not None:
                report.failures[last] += 1
            if last not in (None, "COMMIT_CONFLICT"):
                report.surprises.add(f"{story.by}: {story.text}")
            found = made.get(operation_id, [])
            is_gone = not found and any(over > story.began for over in recreations)
            if not is_gone and not is_told(story, found, last):
                report.problems.append(
                    f"{story.by}: {operation_id} ({story.statement.kind}) ended with {last}, "
                    f"snapshot {story.snapshot}, but made {found}"
                )
        return report


def new_table(catalog: RaceCatalog, *, marks: bool) -> list[Row]:
    """Make the table of a race; its rows."""
    library = catalog.opened()
    library.create_namespace_if_not_exists(NAME.database)
    rows = [(n, n, p) for n in range(0, KEYS, 2) for p in range(PARTITIONS)]
    made_anew(library, marks=marks).append(table_of(rows))
    return rows


def is_told(story: Story, found: Sequence[int], last: str | None) -> bool:
    """Whether the writer knows what it did."""
    if last is not None:
        is_open = last not in ("COMMIT_CONFLICT",)
        return not found or is_open
    if story.by == "ours":
        return list(found) == ([] if story.snapshot is None else [story.snapshot])
    must = story.statement.kind in ("merge", "append")
    return len(found) == 1 if must else len(found) <= 1


def _replayed(
    table: Any, stories: Mapping[str, Story], first: list[Row], report: Report
) -> dict[str, list[int]]:
    """The snapshots of each operation; all of the table's are compared with what they must be."""
    made: dict[str, list[int]] = {}
    rows: dict[int | None, list[Row]] = {None: []}
    snapshots = sorted(table.snapshots(), key=lambda each: each.sequence_number)
    for index, snapshot in enumerate(snapshots):
        number, operation = snapshot.snapshot_id, snapshot.summary.operation.value
        before = rows[snapshot.parent_snapshot_id]
        maker = snapshot.summary.get(KEY)
        story = stories.get(maker)
        if operation == "replace":
            report.compacted += 1
        elif story is None and (index > 0 or maker is not None):
            report.problems.append(f"snapshot {number} was made by {maker}, which nobody is")
        if story is not None:
            made.setdefault(maker, []).append(number)
            report.kinds[f"{story.statement.kind} of {story.by}"] += 1
            rows[number] = story.statement.applied(before)
        else:
            rows[number] = first if index == 0 else before
        if operation == "replace" or index % _SAMPLE == 0 or snapshot is snapshots[-1]:
            found = as_rows(table.scan(snapshot_id=number).to_arrow().to_pylist())
            rows[number] = report.compare(number, found, rows[number])
    return made


def _look_at_line(table: Any, report: Report) -> None:
    """Each state of the table must be a child of the one before, or an ancestor: a rollback."""
    states = [each.snapshot_id for each in table.history()]
    for before, after in pairwise(states):
        snapshot = table.snapshot_by_id(after)
        if snapshot.parent_snapshot_id == before:
            continue
        line = ancestors_of(table.snapshot_by_id(before), table.metadata)
        if after not in {each.snapshot_id for each in line}:
            report.problems.append(f"snapshot {after} does not follow {before}")
        report.disturbances["rollback"] += 1


def stories_of(journals: Sequence[Path]) -> dict[str, Story]:
    """What each statement did, by its operation."""
    stories: dict[str, Story] = {}
    for line in (line for path in journals for line in path.read_text().splitlines()):
        entry = json.loads(line)
        if "disturbed" in entry:
            continue
        if "statement" in entry:
            values = {**entry["statement"], "ids": tuple(entry["statement"]["ids"])}
            story = Story(Statement(**values), entry["by"], [], entry["began"])
            stories[entry["operation"]] = story
            continue
        story = stories[entry["operation"]]
        story.ends.append(entry.get("failed"))
        story.text, story.snapshot = entry.get("text", ""), entry.get("done")
    return stories


def _recreations(journals: Sequence[Path]) -> list[float]:
    """When each was over."""
    lines = [line for path in journals for line in path.read_text().splitlines()]
    entries = [json.loads(line) for line in lines]
    return [e["over"] for e in entries if e.get("disturbed") == "recreation" and "over" in e]


def shares(report: Report) -> Counter[str]:
    """How many snapshots each writer made."""
    found: Counter[str] = Counter()
    for kind, count in report.kinds.items():
        found[kind.rpartition(" ")[2]] += count
    return found


def main() -> int:
    """Race as long as asked; 1 when anything was lost, doubled or wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--days", type=float, default=0, help="how wrong our clocks are")
    parser.add_argument("--version", type=int, default=2, help="of the format")
    parser.add_argument("--catalog", choices=["rest", "sql"], default="rest")
    parser.add_argument("--disturb", action="store_true", help="rollbacks and new tables")
    chosen = parser.parse_args()
    left, problems, number = chosen.minutes * 60, 0, 0
    # At least one race of each kind.
    longest = min(left / 2, _LONGEST_SECONDS)
    with (
        tempfile.TemporaryDirectory() as folder,
        place(chosen.catalog, Path(folder)) as catalog,
        Writers.ready(
            catalog,
            Path(folder),
            chosen.days,
            WHO if chosen.version == 2 else WHO_3,
        ) as writers,
    ):
        while left > 0:
            seconds = min(left, longest)
            race = IcebergRace(
                writers, number % 2 == 1, 2, chosen.seed + number, chosen.disturb, chosen.version
            )
            report = race.run(seconds)
            kind = "merge-on-read" if race.marks else "copy-on-write"
            sys.stdout.write(f"seed {race.seed}, {seconds:.0f} s, {kind}\n{report}\n\n")
            sys.stdout.flush()
            problems += len(report.problems)
            left, number = left - seconds, number + 1
    return int(problems > 0)


if __name__ == "__main__":
    sys.exit(main())
