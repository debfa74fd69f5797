"""Conditions on a table that a task can wait for, shared by the sensors and the trigger.

A condition is a plain value, which is passed to the trigger as a JSON object.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import chain, islice, takewhile
from typing import Any, ClassVar, Protocol

from airflow_provider_merge.metadata.model import PartitionFacts, Snapshot
from airflow_provider_merge.metadata.reader import PartitionFilter
from airflow_provider_merge.metadata.snapshot_facts import (
    Observation,
    counted,
    described,
    newest,
    snapshot_facts,
    time_text,
)
from airflow_provider_merge.metadata.table_view import TableView
from airflow_provider_merge.triggers.compaction_gate import CompactionGate
from airflow_provider_merge.triggers.source_lag_gate import SourceLagGate
from spark_jobs.contract import properties
from spark_jobs.contract.durations import duration_text
from spark_jobs.contract.partition_names import partition_name
from spark_jobs.errors import NotSupportedError

_SHOWN = 5


class Gate(Protocol):
    """A condition on a table."""

    kind: ClassVar[str]

    def observe(self, view: TableView) -> Observation:
        """Whether the gate is open.

        Raises:
            JobError: the table cannot be read, or the gate does not fit it.
        """
        ...


@dataclass(frozen=True, slots=True)
class SnapshotGate:
    """Open once there is a snapshot newer than an id or a time, made by certain statements.

    Both together are a snapshot that was seen: after a rollback behind it only its time counts.
    ``statements`` are those of this provider (``merge``, ``delete``, ``update`` …) or the
    format's kinds of commits (``APPEND``, ``OVERWRITE`` …); ``properties`` are of the snapshot.
    """

    kind: ClassVar[str] = "snapshot"
    after_id: int = 0
    after_millis: int = 0
    statements: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    def observe(self, view: TableView) -> Observation:
        """Facts: those of the newest such snapshot."""
        for snapshot in self._newer(view):
            if self._matches(snapshot):
                return Observation(described(snapshot), snapshot_facts(snapshot))
        return Observation(f"{newest(view)}, expected {self._wanted()}{self._expired(view)}")

    def _wanted(self) -> str:
        """Such as: one after snapshot 7, by merge or delete, with merge.dag-id=ingest."""
        after = f"after snapshot {self.after_id}"
        if not self.after_id:
            after = f"after {time_text(self.after_millis)}" if self.after_millis else ""
        parts = [f"one {after}".strip()]
        if self.statements:
            parts.append(f"by {' or '.join(self.statements)}")
        if self.properties:
            pairs = (f"{name}={value}" for name, value in self.properties.items())
            parts.append(f"with {' and '.join(pairs)}")
        return ", ".join(parts)

    def _newer(self, view: TableView) -> Iterator[Snapshot]:
        if self.after_id and self.after_millis:
            return view.after(self.after_id, self.after_millis)
        if self.after_id:
            return view.after_id(self.after_id)
        return takewhile(lambda each: each.time_millis > self.after_millis, view.newest_first())

    def _matches(self, snapshot: Snapshot) -> bool:
        made_by = (snapshot.commit_kind, snapshot.properties.get(properties.STATEMENT))
        return (not self.statements or any(each in made_by for each in self.statements)) and all(
            snapshot.properties.get(name) == value for name, value in self.properties.items()
        )

    def _expired(self, view: TableView) -> str:
        gone = view.history.expired_after(self.after_id) if self.after_id else ()
        if not gone and self.after_id and view.lost(self.after_id):
            return f"; the table's history does not know snapshot {self.after_id} (any more)"
        if not gone:
            return ""
        count = counted(len(gone), "snapshot")
        return f"; {count} after {self.after_id} expired before this poll and could not be checked"


@dataclass(frozen=True, slots=True)
class PartitionGate:
    """Open once all partitions are there, with a number of rows, or changed since a time.

    Each of ``partitions`` has values of some or all partition columns: where it fits several
    partitions, one of them is enough, and their rows are added up.
    """

    kind: ClassVar[str] = "partition"
    partitions: tuple[Mapping[str, Any], ...]
    min_rows: int = 0
    changed_since_millis: int | None = None

    def observe(self, view: TableView) -> Observation:
        """Facts: the newest snapshot, and rows, files and bytes of each partition."""
        latest = view.latest
        chosen = {partition_name(p): view.partition_filter(p) for p in self.partitions}
        if latest is None:
            problems = self._problems(dict.fromkeys(chosen, ()))
            return Observation("; ".join((newest(view), *problems)))
        present = self._present(view, chosen)
        since = self.changed_since_millis
        changed = None if since is None else _changed_since(view, since)
        by_name = {name: self._as_wanted(facts, changed) for name, facts in present.items()}
        missing = [name for name, facts in by_name.items() if not facts]
        if not missing:
            partitions = [_partition(each) for facts in by_name.values() for each in facts]
            facts = {**snapshot_facts(latest), "partitions": partitions}
            return Observation(f"{described(latest)}: {_there(by_name)}", facts)
        count = f"{len(by_name) - len(missing)} of {len(by_name)} partitions meet the condition"
        parts = [count] if len(by_name) > 1 else []
        parts += [*self._problems({name: present[name] for name in missing}), newest(view)]
        expired = "" if since is None else _expired_since(view, since)
        return Observation("; ".join(parts) + expired)

    def _present(
        self, view: TableView, chosen: Mapping[str, PartitionFilter]
    ) -> dict[str, list[PartitionFacts]]:
        """The partitions that are there, by the name of the wanted one that they fit."""
        if len(chosen) == 1:
            return {name: view.partitions(self.partitions[0]) for name in chosen}
        # By their values: to compare each with every wanted one takes seconds for a year of days.
        indexes: dict[tuple[int, ...], dict[tuple[Any, ...], list[PartitionFacts]]] = {}
        for partition_filter in chosen.values():
            if partition_filter.columns not in indexes:
                index = indexes[partition_filter.columns] = defaultdict(list)
                for facts in view.partitions({}):
                    index[partition_filter.values_of(facts.values)].append(facts)
        return {name: indexes[f.columns].get(f.values, []) for name, f in chosen.items()}

    def _as_wanted(
        self, facts: list[PartitionFacts], changed: Set[str] | None
    ) -> list[PartitionFacts]:
        if facts and self.min_rows and _rows(facts) < self.min_rows:
            return []
        return facts if changed is None else [each for each in facts if each.name in changed]

    def _problems(self, missing: Mapping[str, Sequence[PartitionFacts]]) -> list[str]:
        """What keeps the gate shut: what is there of each partition beside what it waits for."""
        problems = [self._problem(*each) for each in islice(missing.items(), _SHOWN)]
        more = len(missing) - len(problems)
        return [*problems, f"and {more:,} more"] if more else problems

    def _problem(self, name: str, facts: Sequence[PartitionFacts]) -> str:
        if not facts:
            rows = f", expected at least {self.min_rows:,} rows" if self.min_rows else ""
            return f"partition {name} does not exist{rows}"
        if self.min_rows and (count := _rows(facts)) < self.min_rows:
            has = f"partition {name} has {counted(count, 'row')}"
            return f"{has}, expected at least {self.min_rows:,}"
        return f"partition {name} has not changed since {time_text(self.changed_since_millis or 0)}"


@dataclass(frozen=True, slots=True)
class TagGate:
    """Open once there is a tag."""

    kind: ClassVar[str] = "tag"
    name: str

    def observe(self, view: TableView) -> Observation:
        """Facts: those of the tagged snapshot, and the tag's name."""
        tag = view.tag(self.name)
        if tag is not None:
            facts = {**snapshot_facts(tag.snapshot), "tag": self.name}
            return Observation(f"tag {self.name} at {described(tag.snapshot)}", facts)
        count = len(view.tags)
        shown = ", ".join(view.tags[-_SHOWN:])
        more = "... " if count > _SHOWN else ""
        tags = f"{counted(count, 'tag')}: {more}{shown}" if count else "no tags"
        return Observation(f"tag {self.name} does not exist; the table has {tags}")


@dataclass(frozen=True, slots=True)
class FreshnessGate:
    """Open while the table, or one of its partitions, changed less than a time ago.

    Snapshots that only compacted files are no change.
    """

    kind: ClassVar[str] = "freshness"
    max_age_seconds: float
    partition: Mapping[str, Any] | None = None

    def observe(self, view: TableView) -> Observation:
        """Facts: those of the newest change, and ``age_seconds``."""
        now = datetime.now(UTC).timestamp()
        chosen = view.partition_filter(self.partition or {})
        limit = duration_text(self.max_age_seconds)
        what = "" if self.partition is None else f" to partition {partition_name(self.partition)}"
        seen = f"no change{what} is retained, expected one in the last {limit}; {newest(view)}"
        for snapshot in chain(view.newest_first(), view.expired()):
            if snapshot.keeps_rows:
                continue
            age = now - snapshot.time_millis / 1000
            if age > self.max_age_seconds:
                seen = f"{described(snapshot)}, {duration_text(age)} old"
                if self.partition is None:
                    seen = f"newest change: {seen}, expected at most {limit}"
                else:
                    seen = f"no change{what} in the last {limit}; newest change before: {seen}"
                break
            if self.partition is None or any(chosen.fits(each) for each in view.touched(snapshot)):
                facts = {**snapshot_facts(snapshot), "age_seconds": round(age, 3)}
                return Observation(described(snapshot), facts)
        return Observation(f"{seen}{_expired_since(view, (now - self.max_age_seconds) * 1000)}")


_GATES: dict[str, type] = {
    gate.kind: gate
    for gate in (SnapshotGate, PartitionGate, TagGate, FreshnessGate, CompactionGate, SourceLagGate)
}


def gate_arguments(gate: Gate) -> dict[str, Any]:
    """The gate as a JSON object."""
    values: dict[str, Any] = asdict(gate)  # type: ignore[call-overload]
    plain = {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}
    return {"kind": gate.kind, **plain}


def gate_of(arguments: Mapping[str, Any]) -> Gate:
    """The gate behind ``gate_arguments``."""
    values = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in arguments.items()
        if name != "kind"
    }
    gate: Gate = _GATES[arguments["kind"]](**values)
    return gate


def _rows(facts: Sequence[PartitionFacts]) -> int:
    total = 0
    for partition in facts:
        if partition.rows is None:
            raise NotSupportedError(
                f"min_rows: metadata does not tell the number of rows of {partition.name}: it has "
                "uncompacted versions of keys, or deletes whose rows nobody counted.",
                "Leave min_rows out, or count the rows with a query.",
            )
        total += partition.rows
    return total


def _there(found: Mapping[str, Sequence[PartitionFacts]]) -> str:
    """The partitions that were waited for, with their rows where metadata tells them."""
    texts = []
    for name, facts in islice(found.items(), _SHOWN):
        rows = [each.rows for each in facts if each.rows is not None]
        known = f" has {counted(sum(rows), 'row')}" if len(rows) == len(facts) else " exists"
        texts.append(f"partition {name}{known}")
    more = len(found) - len(texts)
    return "; ".join([*texts, f"and {more:,} more"] if more else texts)


def _changed_since(view: TableView, millis: int) -> set[str]:
    changed: set[str] = set()
    for snapshot in chain(view.newest_first(), view.expired()):
        if snapshot.time_millis < millis:
            break
        changed |= {partition_name(each) for each in view.touched(snapshot)}
    return changed


def _expired_since(view: TableView, millis: float) -> str:
    """What is to be added of a shut gate, where history does not reach back to a time."""
    oldest = view.oldest
    if oldest is None or view.history.is_complete or oldest.time_millis < millis:
        return ""
    return (
        f"; snapshots before {oldest.snapshot_id} have expired and may have changed it: only "
        "changes that an earlier poll found count"
    )


def _partition(facts: PartitionFacts) -> dict[str, Any]:
    return {"name": facts.name, "rows": facts.rows, "files": facts.files, "bytes": facts.size}
