"""Conditions on a table that a task can wait for, shared by the sensors and the trigger.

A condition is a plain value, which is passed to the trigger as a JSON object.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import chain, takewhile
from typing import Any, ClassVar, Protocol

from airflow_provider_merge.metadata.model import PartitionFacts, Snapshot
from airflow_provider_merge.metadata.reader import PartitionFilter
from airflow_provider_merge.metadata.snapshot_facts import described, snapshot_facts
from airflow_provider_merge.metadata.table_view import TableView
from spark_jobs.contract import properties
from spark_jobs.contract.partition_names import partition_name
from spark_jobs.errors import NotSupportedError

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Observation:
    """What a gate saw of a table: for people, and as facts if the gate is open."""

    seen: str
    facts: dict[str, Any] | None = None


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
        return Observation(f"{_newest(view)}{self._expired(view)}")

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
        if not gone:
            return ""
        return f"; {len(gone)} snapshots after {self.after_id} have expired and were not checked"


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
        newest = view.latest
        chosen = {partition_name(p): view.partition_filter(p) for p in self.partitions}
        if newest is None:
            return Observation("no snapshot")
        present = self._present(view, chosen)
        since = self.changed_since_millis
        changed = None if since is None else _changed_since(view, since)
        found = {name: self._as_wanted(facts, changed) for name, facts in present.items()}
        missing = [name for name, facts in found.items() if not facts]
        if not missing:
            partitions = [_partition(each) for facts in found.values() for each in facts]
            facts = {**snapshot_facts(newest), "partitions": partitions}
            return Observation(described(newest), facts)
        shown = ", ".join(missing[:_SHOWN]) + (" …" if len(missing) > _SHOWN else "")
        there = f"{len(found) - len(missing)} of {len(found)} partitions meet the condition"
        what = self._what(any(present[name] for name in missing))
        expired = "" if since is None else _expired_since(view, since)
        return Observation(f"{described(newest)}: {there}; {what} {shown}{expired}")

    def _present(
        self, view: TableView, chosen: Mapping[str, PartitionFilter]
    ) -> dict[str, list[PartitionFacts]]:
        """The partitions that are there, by the name of the wanted one that they fit."""
        if len(chosen) == 1:
            return {name: view.partitions(self.partitions[0]) for name in chosen}
        # By their values: to compare each with every wanted one takes seconds for a year of days.
        indexes: dict[tuple[int, ...], dict[tuple[Any, ...], list[PartitionFacts]]] = {}
        for each in chosen.values():
            if each.columns not in indexes:
                index = indexes[each.columns] = defaultdict(list)
                for facts in view.partitions({}):
                    index[each.values_of(facts.values)].append(facts)
        return {name: indexes[f.columns].get(f.values, []) for name, f in chosen.items()}

    def _as_wanted(
        self, facts: list[PartitionFacts], changed: Set[str] | None
    ) -> list[PartitionFacts]:
        if facts and self.min_rows and _rows(facts) < self.min_rows:
            return []
        return facts if changed is None else [each for each in facts if each.name in changed]

    def _what(self, is_any_there: bool) -> str:
        if self.min_rows and is_any_there:
            return f"missing, or with fewer than {self.min_rows} rows:"
        return "missing:" if self.changed_since_millis is None else "missing or unchanged:"


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
        names = ", ".join(view.tags[-_SHOWN:])
        return Observation(f"{len(view.tags)} tags{': … ' if names else ''}{names}")


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
        seen = f"no change is retained; {_newest(view)}"
        for snapshot in chain(view.newest_first(), view.expired()):
            if snapshot.keeps_rows:
                continue
            age = now - snapshot.time_millis / 1000
            if age > self.max_age_seconds:
                what = "newest change" if self.partition is None else "of older changes, the last"
                seen = f"{what}: {described(snapshot)}, {_duration(age)} old"
                break
            if self.partition is None or any(chosen.fits(each) for each in view.touched(snapshot)):
                facts = {**snapshot_facts(snapshot), "age_seconds": round(age, 3)}
                return Observation(described(snapshot), facts)
        return Observation(f"{seen}{_expired_since(view, (now - self.max_age_seconds) * 1000)}")


_GATES: dict[str, type] = {
    gate.kind: gate for gate in (SnapshotGate, PartitionGate, TagGate, FreshnessGate)
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


def _newest(view: TableView) -> str:
    return "no snapshot" if view.latest is None else f"newest: {described(view.latest)}"


def _rows(facts: Sequence[PartitionFacts]) -> int:
    total = 0
    for each in facts:
        if each.rows is None:
            raise NotSupportedError(
                f"min_rows: metadata does not tell the number of rows of {each.name}: it has "
                "uncompacted versions of keys, or deletion vectors without a stored size.",
                "Leave min_rows out, or count the rows with a query.",
            )
        total += each.rows
    return total


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


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
