"""Random logs of changes, their replay event by event, and tables that get them in batches.

The oracle knows nothing of merges: it goes through each log in its order. Many logs share a table,
each with keys of its own, so that one MERGE takes a batch of each of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spark_jobs.contract.cdc import UNAVAILABLE, CdcSource, OperationValues, SequenceColumn
from spark_jobs.contract.event_clauses import event_cases, event_on
from spark_jobs.contract.request import JobRequest, SqlSource
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import ColumnSpec, MergeSpec
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import SeedTable

KEYS_OF_LOG = 1_000


@dataclass(frozen=True)
class Event:
    """A change. ``turn`` is its place in the log, ``row`` what it says of the row."""

    key: int
    operation: str
    turn: int
    row: Mapping[str, Any]


@dataclass(frozen=True)
class Manner:
    """How a table keeps rows, and what its logs are like.

    ``soft``: deleted rows are marked. ``wide``: two columns tell the order. ``partial``: updates
    may leave ``note`` untold. ``befores``: updates have the row before.
    """

    soft: bool
    wide: bool
    partial: bool
    befores: bool

    @property
    def table(self) -> SeedTable:
        """The table that has the rows."""
        columns = [ColumnSpec("id", "BIGINT"), ColumnSpec("v", "STRING"), ColumnSpec("n", "INT")]
        columns += [ColumnSpec("note", "STRING"), ColumnSpec("s1", "BIGINT")]
        columns += [ColumnSpec("s2", "INT")] if self.wide else []
        columns += [ColumnSpec("gone", "BOOLEAN")] if self.soft else []
        return SeedTable(f"cdc-{self.soft}-{self.wide}", tuple(columns))

    @property
    def source(self) -> CdcSource:
        """The source of a batch."""
        return CdcSource(
            name="s",
            source="events",
            keys=("id",),
            values=OperationValues(
                ("c", "r"), ("u",), ("d",), ("b",) if self.befores else (), ("t",), ("m",)
            ),
            sequence=tuple(SequenceColumn(name, f"e_{name}") for name in self._order),
            deleted="gone" if self.soft else None,
            unchanged=("note",) if self.partial else (),
        )

    @property
    def _order(self) -> tuple[str, ...]:
        return ("s1", "s2") if self.wide else ("s1",)

    def order_of(self, turn: int) -> tuple[int, ...]:
        """The sequence of an event; with two columns, the first one is the same for several."""
        return (turn // 3, turn % 3) if self.wide else (turn,)


def random_log(chance: random.Random, manner: Manner, number: int) -> list[Event]:
    """The events of some keys, in their order."""
    events: list[Event] = []
    live: set[int] = set()
    keys = [number * KEYS_OF_LOG + each for each in range(chance.randint(1, 4))]
    for turn in range(1, chance.randint(2, 14)):
        key = chance.choice(keys)
        kinds = ["u", "u", "d"] if key in live else ["c", "c", "r", "u", "d"]
        operation = chance.choice(kinds)
        row = {"v": chance.choice([None, "", "a", "b"]), "n": chance.choice([None, 0, turn])}
        row["note"] = chance.choice([None, f"n{turn}"])
        if manner.partial and operation == "u" and key in live and chance.random() < 0.5:
            row["note"] = UNAVAILABLE
        events.append(Event(key, operation, turn, row))
        (live.discard if operation == "d" else live.add)(key)
    return events


def replayed(log: Sequence[Event], manner: Manner) -> dict[int, dict[str, Any]]:
    """The rows behind a log, event by event; of a row that is only marked, key and order count."""
    rows: dict[int, dict[str, Any]] = {}
    for event in log:
        order = dict(zip(("s1", "s2"), manner.order_of(event.turn), strict=False))
        old = rows.pop(event.key, {})
        if event.operation != "d":
            row = {"id": event.key, **event.row, **order}
            if row["note"] == UNAVAILABLE:
                row["note"] = old["note"]
            rows[event.key] = {**row, "gone": False} if manner.soft else row
        elif manner.soft:
            rows[event.key] = {"id": event.key, "gone": True, **order}
    return rows


def batches(
    chance: random.Random, manner: Manner, log: Sequence[Event], count: int
) -> list[list[Event]]:
    """A log cut into ``count`` batches, some events twice; each batch is in no order.

    Where deleted rows stay, and each event has its whole row, events come in any batch, and again
    later. Else a key's events come batch by batch, the last ones perhaps twice.
    """
    made: list[list[Event]] = [[] for _ in range(count)]
    if manner.soft and not manner.partial:
        for event in log:
            for _ in range(chance.choice([1, 1, 1, 2, 3])):
                made[chance.randrange(count)].append(event)
    else:
        cuts = sorted(chance.randrange(count) for _ in log)
        for at, event in zip(cuts, log, strict=True):
            made[at] += [event] * chance.choice([1, 1, 2])
        for at in range(1, count):
            if chance.random() < 0.3 and made[at - 1]:
                again = made[at - 1]
                keys = {each.key for each in again}
                # A key's own events again, whole: what is cut off could not tell a value.
                made[at] += [each for each in again if each.key in keys]
    for each in made:
        chance.shuffle(each)
    return made


def event_query(manner: Manner, events: Sequence[Event]) -> str:
    """The events as a query."""
    names = ["op", "id", "v", "n", "note", "e_s1", *(["e_s2"] if manner.wide else [])]
    rows = [_values(manner, each, each.operation, each.row) for each in events]
    if manner.befores:
        stale = {"v": "stale", "n": -1, "note": "stale"}
        rows += [_values(manner, e, "b", stale) for e in events if e.operation == "u"]
    rows.append(_values(manner, Event(-1, "m", 1, {}), "m", {}))
    return f"SELECT * FROM VALUES {', '.join(rows)} AS x ({', '.join(names)})"


def _values(manner: Manner, event: Event, operation: str, row: Mapping[str, Any]) -> str:
    v, n, note = (row.get(name) for name in ("v", "n", "note"))
    texts = [f"'{operation}'", f"{event.key}L", _text(v), "NULL" if n is None else str(n)]
    texts += [_text(note), f"{manner.order_of(event.turn)[0]}L"]
    texts += [str(manner.order_of(event.turn)[1])] if manner.wide else []
    return f"({', '.join(texts)})"


def _text(value: str | None) -> str:
    return "CAST(NULL AS STRING)" if value is None else f"'{value}'"


def merge_request(
    harness: Harness, source: CdcSource, query: str, operation_id: str, **more: Any
) -> JobRequest:
    """The MERGE that applies events."""
    cases, on = event_cases(source, "t", "s"), event_on(source, "t", "s")
    statement = MergeSpec("s", on, cases, "t", "s")
    sources = (SqlSource("events", query), source)
    made = JobRequest(operation_id, TARGET, harness.catalog, statement, sources)
    return replace(made, **more)


def applied(harness: Harness, manner: Manner, events: Sequence[Event], name: str) -> JobResult:
    """Apply a batch; raises if it fails."""
    request = merge_request(harness, manner.source, event_query(manner, events), name)
    result = Job(request, harness.spark, harness.open()).run()
    assert result.error is None, result.error
    return result


def found(harness: Harness, manner: Manner) -> dict[int, dict[str, Any]]:
    """The table's rows by key, as ``replayed`` has them."""
    rows = harness.read()
    assert len({row["id"] for row in rows}) == len(rows), rows
    order = ("s1", "s2") if manner.wide else ("s1",)
    return {
        row["id"]: {name: row[name] for name in ("id", "gone", *order)} if row.get("gone") else row
        for row in rows
    }


def run(make_table: Callable[..., Harness], kind: str, seed: int, logs: int) -> int:
    """Random logs against their replay, ``logs`` of them in one table; returns their number."""
    chance = random.Random(f"{kind}-{seed}")
    flags = [bool(seed >> bit & 1) for bit in range(4)]
    manner = Manner(*flags)
    harness = make_table(kind, manner.table, partitioned=False)
    return run_in(harness, manner, chance, logs, f"{kind}, seed {seed}")


def run_in(
    harness: Harness, manner: Manner, chance: random.Random, logs: int, label: str = ""
) -> int:
    """The same in a table."""
    made = [random_log(chance, manner, number) for number in range(logs)]
    count = chance.randint(2, 5)
    cut = [batches(chance, manner, log, count) for log in made]
    for at in range(count):
        events = [event for each in cut for event in each[at]]
        chance.shuffle(events)
        applied(harness, manner, events, f"run-{at}")
    expected: dict[int, dict[str, Any]] = {}
    for log in made:
        expected |= replayed(log, manner)
    rows = found(harness, manner)
    for key in {*rows, *expected}:
        told = f"{label}, {manner}: {[e for log in made for e in log if e.key == key]}"
        assert rows.get(key) == expected.get(key), told
    return len(made)
