"""What a task can wait for in a table: gates, which sensors and the trigger share.

A gate is a plain value: it goes into the trigger's arguments as a JSON object and comes back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import Any, ClassVar, Protocol

from airflow_provider_merge.metadata.look import Look
from airflow_provider_merge.metadata.paimon import Snapshot
from airflow_provider_merge.metadata.partition_filter import PartitionFilter
from airflow_provider_merge.metadata.partitions import PartitionFacts
from spark_jobs.contract import properties
from spark_jobs.contract.partition_names import partition_name
from spark_jobs.errors import NotSupportedError

COMPACT = "COMPACT"
_SHOWN = 5
_PROPERTIES = {
    "operation_id": properties.OPERATION_ID,
    "statement": properties.STATEMENT,
    "dag_id": properties.DAG_ID,
    "run_id": properties.RUN_ID,
    "task_id": properties.TASK_ID,
}


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a look at a table told: for people, and as facts if it opens the gate."""

    seen: str
    facts: dict[str, Any] | None = None


class Gate(Protocol):
    """A condition on a table."""

    kind: ClassVar[str]

    def look(self, look: Look) -> Sighting:
        """Whether the gate is open.

        Raises:
            JobError: the table can not be read, or the gate does not fit it.
        """
        ...


@dataclass(frozen=True, slots=True)
class SnapshotGate:
    """Open once there is a snapshot newer than an id or a time, made by certain statements.

    Both together are a snapshot that was seen: after a rollback behind it only its time counts.
    ``statements`` are those of this provider (``merge``, ``delete``, ``update`` …) or Paimon's
    kinds of commits (``APPEND``, ``OVERWRITE`` …); ``properties`` are of the snapshot.
    """

    kind: ClassVar[str] = "snapshot"
    after_id: int = 0
    after_millis: int = 0
    statements: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    def look(self, look: Look) -> Sighting:
        """Facts: those of the newest such snapshot."""
        for snapshot in self._newer(look):
            if self._matches(snapshot):
                return Sighting(described(snapshot), snapshot_facts(snapshot))
        return Sighting(f"{_newest(look)}{self._expired(look)}")

    def _newer(self, look: Look) -> Iterator[Snapshot]:
        if self.after_id and self.after_millis:
            yield from look.after(self.after_id, self.after_millis)
            return
        for snapshot in look.newest_first():
            if snapshot.snapshot_id <= self.after_id or snapshot.time_millis <= self.after_millis:
                return
            yield snapshot

    def _matches(self, snapshot: Snapshot) -> bool:
        made_by = (snapshot.commit_kind, snapshot.properties.get(properties.STATEMENT))
        return (not self.statements or any(each in made_by for each in self.statements)) and all(
            snapshot.properties.get(name) == value for name, value in self.properties.items()
        )

    def _expired(self, look: Look) -> str:
        gone = (look.ids[0] - 1 if look.ids else 0) - self.after_id
        if not self.after_id or gone <= 0:
            return ""
        return f"; {gone} snapshots after {self.after_id} have expired, any of them unseen"


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

    def look(self, look: Look) -> Sighting:
        """Facts: the newest snapshot, and rows, files and bytes of each partition."""
        newest = look.latest
        chosen = {partition_name(p): PartitionFilter.of(look.schema, p) for p in self.partitions}
        if newest is None:
            return Sighting("no snapshot")
        present = self._present(look, chosen)
        since = self.changed_since_millis
        changed = None if since is None else _changed_since(look, since)
        found = {name: self._as_wanted(facts, changed) for name, facts in present.items()}
        missing = [name for name, facts in found.items() if not facts]
        if not missing:
            partitions = [_partition(each) for facts in found.values() for each in facts]
            facts = {**snapshot_facts(newest), "partitions": partitions}
            return Sighting(described(newest), facts)
        shown = ", ".join(missing[:_SHOWN]) + (" …" if len(missing) > _SHOWN else "")
        there = f"{len(found) - len(missing)} of {len(found)} partitions as wanted"
        what = self._what(any(present[name] for name in missing))
        expired = "" if since is None else _expired_since(look, since)
        return Sighting(f"{described(newest)}: {there}; {what} {shown}{expired}")

    def _present(
        self, look: Look, chosen: Mapping[str, PartitionFilter]
    ) -> dict[str, list[PartitionFacts]]:
        """The partitions that are there, by the name of the wanted one that they fit."""
        if len(chosen) == 1:
            return {name: look.partitions(self.partitions[0]) for name in chosen}
        # By their values: to compare each with every wanted one takes seconds for a year of days.
        indexes: dict[tuple[int, ...], dict[tuple[Any, ...], list[PartitionFacts]]] = {}
        for each in chosen.values():
            if each.columns not in indexes:
                index = indexes[each.columns] = defaultdict(list)
                for facts in look.partitions({}):
                    index[each.values_of(look.schema, facts.values)].append(facts)
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

    def look(self, look: Look) -> Sighting:
        """Facts: those of the tagged snapshot, and the tag's name."""
        tag = look.tag(self.name)
        if tag is not None:
            facts = {**snapshot_facts(tag.snapshot), "tag": self.name}
            return Sighting(f"tag {self.name} at {described(tag.snapshot)}", facts)
        names = ", ".join(look.tags[-_SHOWN:])
        return Sighting(f"{len(look.tags)} tags{': … ' if names else ''}{names}")


@dataclass(frozen=True, slots=True)
class FreshnessGate:
    """Open while the table, or one of its partitions, changed less than a time ago.

    Snapshots that only compacted files are no change.
    """

    kind: ClassVar[str] = "freshness"
    max_age_seconds: float
    partition: Mapping[str, Any] | None = None

    def look(self, look: Look) -> Sighting:
        """Facts: those of the newest change, and ``age_seconds``."""
        now = datetime.now(UTC).timestamp()
        chosen = PartitionFilter.of(look.schema, self.partition or {})
        seen = f"no change is retained; {_newest(look)}"
        for snapshot in chain(look.newest_first(), look.expired()):
            if snapshot.commit_kind == COMPACT:
                continue
            age = now - snapshot.time_millis / 1000
            if age > self.max_age_seconds:
                what = "newest change" if self.partition is None else "of older changes, the last"
                seen = f"{what}: {described(snapshot)}, {_duration(age)} old"
                break
            if self.partition is None or any(
                chosen.fits(look.schema, each) for each in look.touched(snapshot)
            ):
                facts = {**snapshot_facts(snapshot), "age_seconds": round(age, 3)}
                return Sighting(described(snapshot), facts)
        return Sighting(f"{seen}{_expired_since(look, (now - self.max_age_seconds) * 1000)}")


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


def snapshot_facts(snapshot: Snapshot) -> dict[str, Any]:
    """A snapshot as XCom and as the payload of an event: ids, time, who made it.

    ``time`` is ISO 8601 in UTC, ``time_millis`` counts from 1970.
    """
    facts: dict[str, Any] = {
        "snapshot_id": snapshot.snapshot_id,
        "commit_kind": snapshot.commit_kind,
        "time": _time(snapshot),
        "time_millis": snapshot.time_millis,
        "total_records": snapshot.total_record_count,
    }
    made_by = {name: snapshot.properties.get(key) for name, key in _PROPERTIES.items()}
    return {**facts, **{name: value for name, value in made_by.items() if value is not None}}


def described(snapshot: Snapshot) -> str:
    """A snapshot for people."""
    made_by = snapshot.properties.get(properties.STATEMENT, snapshot.commit_kind)
    return f"snapshot {snapshot.snapshot_id} ({made_by}, {_time(snapshot)})"


def _time(snapshot: Snapshot) -> str:
    try:
        return datetime.fromtimestamp(snapshot.time_millis / 1000, UTC).isoformat(
            timespec="seconds"
        )
    except (ValueError, OverflowError, OSError):
        return f"{snapshot.time_millis} ms"


def _newest(look: Look) -> str:
    return "no snapshot" if look.latest is None else f"newest: {described(look.latest)}"


def _rows(facts: Sequence[PartitionFacts]) -> int:
    total = 0
    for each in facts:
        if each.rows is None:
            raise NotSupportedError(
                f"min_rows: how many rows {each.name} has can not be told from metadata: it has "
                "versions of keys that are not compacted, or deletion vectors without their size.",
                "Leave min_rows out, or count the rows with a query.",
            )
        total += each.rows
    return total


def _changed_since(look: Look, millis: int) -> set[str]:
    changed: set[str] = set()
    for snapshot in chain(look.newest_first(), look.expired()):
        if snapshot.time_millis < millis:
            break
        changed |= {partition_name(each) for each in look.touched(snapshot)}
    return changed


def _expired_since(look: Look, millis: float) -> str:
    """What is to be added of a shut gate, where history does not reach back to a time."""
    oldest = look.oldest
    if oldest is None or oldest.snapshot_id == 1 or oldest.time_millis < millis:
        return ""
    return (
        f"; snapshots before {oldest.snapshot_id} have expired, any of them may have changed it: "
        "of their changes only those count that were seen while waiting"
    )


def _partition(facts: PartitionFacts) -> dict[str, Any]:
    return {"name": facts.name, "rows": facts.rows, "files": facts.files, "bytes": facts.size}


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
