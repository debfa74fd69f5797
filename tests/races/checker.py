"""Replays the committed snapshots in their order and compares with what is in the table.

Every snapshot must have been made by one statement of a journal, and hold what that statement makes
of the rows of the snapshot before: then the commits are serializable in their own order. Every
statement that reported a commit must have exactly the snapshot that it named, every one that
reported a failure none. A compaction may have several snapshots, none of which changes a row.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_jobs.connectors.paimon.library import stored_snapshots
from spark_jobs.spi.connector import Connector
from tests.races.statements import Row, Statement, as_rows
from tests.support.paimon_tables import NAME

# What somebody finds who reads a table while it is dropped.
_TAKEN_AWAY = ("METADATA_UNREADABLE", "STORAGE_UNAVAILABLE", "TABLE_NOT_FOUND")
_SAMPLE = 25


@dataclass
class Report:
    """What a race came to; ``problems`` are texts, none of which may be there.

    ``surprises``: what failures other than conflicts said. ``compactions``: how they ended;
    ``compacted`` snapshots are theirs. ``care``: how often nothing was old enough to go.
    """

    snapshots: int = 0
    statements: int = 0
    attempts: int = 0
    conflicts: int = 0
    compared: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    surprises: set[str] = field(default_factory=set)
    compactions: Counter[str] = field(default_factory=Counter)
    compacted: int = 0
    care: int = 0
    disturbances: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def compare(self, snapshot_id: int, found: list[Row], expected: Sequence[Row]) -> list[Row]:
        """Note how the rows ``found`` differ from the replay's; the rows to go on with."""
        self.compared += 1
        if found == sorted(expected):
            return list(expected)
        self.problems.append(
            f"snapshot {snapshot_id} has other rows than the replay: too many "
            f"{sorted(set(found) - set(expected))[:5]}, missing "
            f"{sorted(set(expected) - set(found))[:5]}, {len(found)} for {len(expected)}"
        )
        return found

    @property
    def conflict_share(self) -> float:
        """The share of attempts in whose read set somebody else committed meanwhile."""
        return self.conflicts / max(self.attempts, 1)

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.kinds.most_common())
        failures = ", ".join(f"{count} {code}" for code, count in self.failures.most_common())
        lines = [
            f"{self.statements} statements in {self.attempts} attempts: {self.snapshots} snapshots",
            f"statements that made them: {kinds}",
            f"{self.conflict_share:.0%} of the attempts met a commit in their read set",
            f"statements that gave up: {failures or 'none'}",
            *self._compaction_lines(),
            f"{self.compared} snapshots compared with the replay, row by row",
            f"{len(self.problems)} problems",
        ]
        return "\n".join([*lines, *sorted(self.surprises)[:5], *self.problems[:20]])

    def _compaction_lines(self) -> list[str]:
        ends = ", ".join(f"{count} {end}" for end, count in self.compactions.most_common())
        lines = [f"compactions: {ends}, in {self.compacted} snapshots"] if ends else []
        lines += [f"{count} times {kind}" for kind, count in self.disturbances.items()]
        return [*lines, f"care: {self.care} times"] if self.care else lines


@dataclass
class _Story:
    """What a journal says of one statement, which began at a time of the machine."""

    statement: Statement
    began: float = 0.0
    committed: int | None = None
    failed: str | None = None
    text: str = ""
    attempts: int = 0
    conflicts: int = 0


@dataclass(frozen=True)
class _Disturbance:
    """All snapshots after ``to`` were dropped between two times of the machine."""

    kind: str
    to: int
    began: float
    over: float

    def may_have_taken(self, story: _Story) -> bool:
        """Whether a commit may be gone."""
        return story.committed is not None and story.committed > self.to and self.over > story.began


def check(connector: Connector, journals: Iterable[Path], first: Sequence[Row] = ()) -> Report:
    """Everything about the race on the table; ``first`` are the rows of its first snapshot."""
    paths = list(journals)
    stories, compactions = _stories(paths), _compactions(paths)
    table = connector.metadata.load_table(NAME).native.table
    ids = stored_snapshots.snapshot_ids(table)
    report = Report(snapshots=len(ids) - 1, statements=len(stories))
    report.attempts = sum(story.attempts for story in stories.values())
    report.conflicts = sum(story.conflicts for story in stories.values())
    report.failures.update(story.failed for story in stories.values() if story.failed)
    expected = (None, "COMMIT_CONFLICT")
    report.surprises.update(s.text for s in stories.values() if s.failed not in expected)
    if ids != list(range(1, len(ids) + 1)):
        report.problems.append(f"there are gaps between the snapshots: {ids[:5]} … {ids[-5:]}")
    report.compactions.update(end for end, _ in compactions.values())
    report.surprises.update(text for _, text in compactions.values() if text)
    disturbances = _disturbances(paths)
    _look_at_care(paths, disturbances, report)
    report.disturbances.update(each.kind for each in disturbances)
    made = _replay(table, ids, stories, compactions, list(first), report)
    for operation_id, story in stories.items():
        found = made.get(operation_id, [])
        reported = [story.committed] if story.committed is not None else []
        is_open = story.committed is None and story.failed is None
        is_excused = not found and any(each.may_have_taken(story) for each in disturbances)
        if found != reported and not is_excused and not (is_open and len(found) <= 1):
            outcome = story.failed or (f"snapshot {story.committed}" if reported else "no change")
            report.problems.append(f"{operation_id} reported {outcome}, its snapshots: {found}")
    return report


def _look_at_care(
    journals: Iterable[Path], disturbances: Sequence[_Disturbance], report: Report
) -> None:
    """Nothing of a race is old enough to be removed."""
    for line in (line for path in journals for line in path.read_text().splitlines()):
        entry = json.loads(line)
        if "care" in entry:
            report.care += not entry["changed"]
            is_taken_away = entry["care"] in _TAKEN_AWAY and any(
                each.began < entry["over"] and each.over > entry["began"] for each in disturbances
            )
            if entry["changed"] and not is_taken_away:
                report.problems.append(f"care {entry['care']}: {entry['changed']}")


def _replay(
    table: Any,
    ids: Sequence[int],
    stories: Mapping[str, _Story],
    compactions: Mapping[str, tuple[str, str]],
    rows: list[Row],
    report: Report,
) -> dict[str, list[int]]:
    made: dict[str, list[int]] = {}
    is_new = bool(ids) and stored_snapshots.find_snapshot(table, ids[0]).commit_user != "first"
    if is_new:
        rows = []
    for snapshot_id in ids[0 if is_new else 1 :]:
        snapshot = stored_snapshots.find_snapshot(table, snapshot_id)
        user = snapshot.commit_user.partition("_")[0]
        story = stories.get(user)
        is_compaction = user in compactions
        if is_compaction:
            report.compacted += 1
            if snapshot.commit_kind != "COMPACT":
                report.problems.append(f"snapshot {snapshot_id} is a {snapshot.commit_kind}")
        elif story is None:
            report.problems.append(f"snapshot {snapshot_id} was made by {user}, which nobody is")
            continue
        else:
            made.setdefault(user, []).append(snapshot_id)
            report.kinds[story.statement.kind] += 1
            rows = story.statement.applied(rows)
        if is_compaction or snapshot_id % _SAMPLE == 0 or snapshot_id == ids[-1]:
            rows = report.compare(snapshot_id, _rows_of(table, snapshot_id), rows)
    return made


def _rows_of(table: Any, snapshot_id: int) -> list[Row]:
    builder = table.copy({"scan.snapshot-id": str(snapshot_id)}).new_read_builder()
    splits = builder.new_scan().plan().splits()
    return as_rows(builder.new_read().to_arrow(splits).to_pylist() if splits else [])


def _stories(journals: Iterable[Path]) -> dict[str, _Story]:
    stories: dict[str, _Story] = {}
    for line in (line for path in journals for line in path.read_text().splitlines()):
        entry = json.loads(line)
        if "operation" not in entry:
            continue
        if "statement" in entry:
            values = {**entry["statement"], "ids": tuple(entry["statement"]["ids"])}
            stories[entry["operation"]] = _Story(Statement(**values), entry.get("began", 0.0))
            continue
        story = stories[entry["operation"]]
        story.attempts += 1
        story.failed = entry.get("failed")
        story.text = entry.get("text", "")
        story.committed = entry.get("done")
        if story.failed == "COMMIT_CONFLICT":
            story.conflicts += 1
    return stories


def _disturbances(journals: Iterable[Path]) -> list[_Disturbance]:
    found = []
    for line in (line for path in journals for line in path.read_text().splitlines()):
        entry = json.loads(line)
        if "disturbed" in entry:
            times = entry["began"], entry["over"]
            found.append(_Disturbance(entry["disturbed"], entry["to"], *times))
    return found


def _compactions(journals: Iterable[Path]) -> dict[str, tuple[str, str]]:
    """How compactions ended, and what unexpected failures said, by operation id."""
    found = {}
    for line in (line for path in journals for line in path.read_text().splitlines()):
        entry = json.loads(line)
        if "compaction" in entry:
            error = entry.get("failed")
            is_expected = error in (None, "COMMIT_CONFLICT")
            end = error or entry.get("status", "not ended")
            found[entry["compaction"]] = (end, "" if is_expected else entry["text"])
    return found
