"""A race of writers with the care of their Iceberg table, by this project and by Java.

``python -m tests.races.iceberg_care_race --minutes 10 --catalog sql`` lets them race for long: two
writers, a compactor, an expiry of snapshots that are a few seconds old, and Spark with Iceberg,
which tags, branches, drops both and rolls back. The checker goes through every state that the table
had: each new snapshot must be what its statement makes of its parent, what is main must be the
child or an ancestor of what was, and no tag or branch may go that nobody dropped, unless its loss
was reported. What is there at the end is read, row by row.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.faults.iceberg import files_of, needed_files, path_of
from tests.races.checker import Report
from tests.races.iceberg_chain import State, states_of
from tests.races.iceberg_race import KEY, Story, Writers, is_told, new_table, stories_of
from tests.races.iceberg_table import RaceCatalog, place
from tests.races.statements import Row, as_rows
from tests.support.paimon_tables import NAME

_LONGEST_SECONDS = 150.0
_PROGRAM = "iceberg_caretaker"


@contextmanager
def ready(catalog: RaceCatalog, folder: Path) -> Iterator[Writers]:
    """Two writers, and who takes care of their table."""
    others = dict.fromkeys(("compactor", "expiry", "java"), _PROGRAM)
    with Writers.ready(catalog, folder, who=("ours", "ours"), others=others) as writers:
        yield writers


@dataclass
class CareReport(Report):
    """``acts``: how often what was done; ``refs``: that were made, and ``lost``: as reported."""

    acts: Counter[str] = field(default_factory=Counter)
    refs: int = 0
    lost: int = 0
    states: int = 0
    left: int = 0

    def __str__(self) -> str:
        acts = ", ".join(f"{count} {what}" for what, count in sorted(self.acts.items()))
        return (
            f"{acts}\n{self.states} states of the table, {self.refs} tags and branches, "
            f"{self.lost} of them reported as lost; {self.left} snapshots left\n{super().__str__()}"
        )


@dataclass(frozen=True)
class CareRace:
    """``marks``: the table is merged on read."""

    writers: Writers
    marks: bool = False
    partitions: int = 2
    seed: int = 0

    def run(self, seconds: float) -> CareReport:
        """Let them race, then check what they left; raises as ``Writers.race``."""
        first = new_table(self.writers.catalog, marks=self.marks)
        title = f"{self.seed}-{'marked' if self.marks else 'copied'}"
        journals = self.writers.race(
            title, self.seed, seconds=seconds, partitions=self.partitions, marks=self.marks
        )
        table = self.writers.catalog.opened().load_table((NAME.database, NAME.table))
        own = [each for each in journals if "-ours-" in each.name]
        return _Check(table, stories_of(own), _entries(set(journals) - set(own)), first).done()


def _entries(journals: set[Path]) -> list[dict[str, Any]]:
    lines = [line for path in sorted(journals) for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines]


@dataclass
class _Check:
    """``rows`` are those of the snapshots of a state, ``parents`` of all snapshots that were."""

    table: Any
    stories: Mapping[str, Story]
    care: Sequence[Mapping[str, Any]]
    first: list[Row]
    report: CareReport = field(default_factory=CareReport)
    rows: dict[int, list[Row]] = field(default_factory=dict)
    parents: dict[int, int | None] = field(default_factory=dict)
    made: dict[str, list[int]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def done(self) -> CareReport:
        """The report on everything."""
        states = list(states_of(self.table.metadata_location))
        self.report.states = len(states)
        for before, after in pairwise([State({}, {}), *states]):
            self._look_at_snapshots(before, after)
            self._look_at_refs(before, after)
            self.rows = {key: rows for key, rows in self.rows.items() if key in after.snapshots}
        self._look_at_care()
        self._look_at_stories()
        self._look_at_rest()
        return self.report

    def _problem(self, text: str) -> None:
        self.report.problems.append(text)

    def _look_at_snapshots(self, before: State, after: State) -> None:
        for each in after.in_order:
            number, parent = each["snapshot-id"], each.get("parent-snapshot-id")
            if number in before.snapshots:
                continue
            self.report.snapshots += 1
            self.parents[number] = parent
            rows = self.rows.get(parent, []) if parent is not None else []
            maker, story = each["summary"].get(KEY), None
            if each["summary"]["operation"] == "replace":
                self.report.compacted += 1
            elif maker in self.stories:
                story = self.stories[maker]
                self.made.setdefault(maker, []).append(number)
                self.report.kinds[story.statement.kind] += 1
                rows = story.statement.applied(rows)
            elif parent is None and not self.rows:
                rows = self.first
            else:
                self._problem(f"snapshot {number} was made by {maker}, which nobody is")
            self.rows[number] = rows

    def _look_at_refs(self, before: State, after: State) -> None:
        for name, number in before.refs.items():
            now = after.refs.get(name)
            if now is None:
                self._look_at_loss(name)
            elif now != number and name != "main":
                self._problem(f"{name} was moved from {number} to {now}")
            elif now != number and self.parents[now] != number and not self._follows(number, now):
                self._problem(f"main went from {number} to {now}, which does not follow it")
        self.names |= set(after.refs)
        for name, number in after.refs.items():
            if number not in after.snapshots:
                self._problem(f"{name} is of snapshot {number}, which is not there")

    def _look_at_loss(self, name: str) -> None:
        is_reported = any(
            each.get("expiry") == "REFERENCE_LOST" and name in each["text"] for each in self.care
        )
        self.report.lost += is_reported
        if not is_reported and not any(each.get("drops") == name for each in self.care):
            self._problem(f"{name} was lost, and nobody dropped it")

    def _follows(self, number: int | None, ancestor: int) -> bool:
        """Whether a rollback leads from a snapshot to an ancestor."""
        while number is not None and number != ancestor:
            number = self.parents.get(number)
        return number is not None

    def _look_at_care(self) -> None:
        kinds = ("compaction", "expiry")
        for each in self.care:
            for kind in kinds:
                if kind in each:
                    self.report.acts[f"{kind} {each[kind]}"] += 1
                    is_known = each[kind] in _ENDS[kind]
                    if not is_known:
                        self._problem(f"{kind}: {each}")
            self.report.acts["snapshots expired"] += each.get("snapshots", 0)
            self.report.acts["rollbacks"] += "rolled_back" in each
            if "made" in each and each["made"] not in self.names:
                self._problem(f"{each['made']} was made, but never there")
            self.report.refs += "made" in each

    def _look_at_stories(self) -> None:
        report = self.report
        report.statements = len(self.stories)
        for operation_id, story in self.stories.items():
            report.attempts += len(story.ends)
            report.conflicts += story.ends.count("COMMIT_CONFLICT")
            last = story.ends[-1] if story.ends else "ended"
            if last is not None:
                report.failures[last] += 1
            if last not in (None, "COMMIT_CONFLICT"):
                report.surprises.add(story.text)
            found = self.made.get(operation_id, [])
            if not is_told(story, found, last):
                self._problem(
                    f"{operation_id} ({story.statement.kind}) ended with {last}, snapshot "
                    f"{story.snapshot}, but made {found}"
                )

    def _look_at_rest(self) -> None:
        """Every snapshot that is left, by its files and its rows; and what Java read."""
        gone = needed_files(self.table) - files_of(Path(path_of(self.table.location())))
        if gone:
            self._problem(f"{len(gone)} files of snapshots are gone: {sorted(gone)[:3]}")
        self.report.left = len(self.table.snapshots())
        for each in self.table.snapshots():
            number = each.snapshot_id
            found = as_rows(self.table.scan(snapshot_id=number).to_arrow().to_pylist())
            self.report.compare(number, found, self.rows[number])
        refs = {name: ref.snapshot_id for name, ref in self.table.metadata.refs.items()}
        for entry in self.care:
            if "read" in entry and entry.get("rows") != len(self.rows[refs[entry["read"]]]):
                self._problem(f"Java read {entry}")


_ENDS = {
    "compaction": ("committed", "unchanged", "COMMIT_CONFLICT"),
    "expiry": ("done", "COMMIT_CONFLICT", "REFERENCE_LOST"),
}


def main() -> int:
    """Race as long as asked; 1 when anything was lost, doubled or wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--catalog", choices=["rest", "sql"], default="rest")
    chosen = parser.parse_args()
    left, problems, number = chosen.minutes * 60, 0, 0
    longest = min(left / 2, _LONGEST_SECONDS)
    with (
        tempfile.TemporaryDirectory() as folder,
        place(chosen.catalog, Path(folder)) as catalog,
        ready(catalog, Path(folder)) as writers,
    ):
        while left > 0:
            seconds = min(left, longest)
            race = CareRace(writers, marks=number % 2 == 1, seed=chosen.seed + number)
            report = race.run(seconds)
            kind = "merge-on-read" if race.marks else "copy-on-write"
            sys.stdout.write(f"seed {race.seed}, {seconds:.0f} s, {kind}\n{report}\n\n")
            sys.stdout.flush()
            problems += len(report.problems)
            left, number = left - seconds, number + 1
    return int(problems > 0)


if __name__ == "__main__":
    sys.exit(main())
