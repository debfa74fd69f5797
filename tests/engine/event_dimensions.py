"""Random logs of change events below dimensions: ``python -m tests.engine.event_dimensions``.

A chain is a table of one kind with many keys, each of which has a log of its own. Logs are cut into
batches, some events come again, and the rows of a batch are in no order. Where batches keep the
order of a log, the table is what a replay of the log says, event by event, whatever the batches;
where they do not, it is what the oracle of versions says of each batch. The replay and the oracle
know nothing of the project.
"""

# ruff: noqa: T201 - a command speaks on the terminal

from __future__ import annotations

import argparse
import random
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from spark_jobs.contract.cdc import UNAVAILABLE, CdcSource, OperationValues, SequenceColumn
from tests.engine.dimensions import at, batch, dimension, history, run, spec
from tests.oracle.dimension import Event, Rules, Version, applied
from tests.support.spark_session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.contract.scd2 import Scd2Source
    from tests.conformance.harness import Harness

KINDS = ("append-cow", "append-dv", "primary-key", "row-tracking-dv", "iceberg-cow", "iceberg-mor")
_SCHEMA = pa.schema(
    [
        ("op", pa.string()),
        ("id", pa.int64()),
        *((name, pa.string()) for name in ("v", "n", "u")),
        ("at", pa.timestamp("us")),
        ("lsn", pa.int64()),
    ]
)
_MOVED = 1_000


@dataclass(frozen=True)
class Change:
    """An event: what it tells, and the row behind it (None: there is none)."""

    key: int
    operation: str
    turn: int
    time: int
    told: tuple[Any, ...]
    row: tuple[Any, ...] | None


@dataclass(frozen=True)
class Plan:
    """The parameters of a chain."""

    in_order: bool
    hard_deletes: str
    partial: bool
    befores: bool
    tracks_all: bool

    @staticmethod
    def of(chance: random.Random) -> Plan:
        """Random parameters."""
        in_order = chance.random() < 0.65
        policy = chance.choice(["close", "new_record", "ignore"])
        flags = [chance.random() < 0.5 for _ in range(3)]
        return Plan(in_order, policy, in_order and flags[0], flags[1], flags[2])

    @property
    def events(self) -> CdcSource:
        """What the rows of a batch mean."""
        return CdcSource(
            name="events",
            source="rows",
            keys=("id",),
            values=OperationValues(
                ("c", "r"), ("u",), ("d",), ("b",) if self.befores else (), ignore=("m",)
            ),
            sequence=(SequenceColumn("lsn", "lsn"),),
            unchanged=("v",) if self.partial else (),
            net=False,
        )

    @property
    def versions(self) -> Scd2Source:
        """The source of versions of a run."""
        return spec(
            source="events",
            tracked=None if self.tracks_all else ("v", "n"),
            late="fail" if self.partial else "insert_between",
            hard_deletes=self.hard_deletes,
            delete_marker=None,
            of_events=True,
        )


def random_log(chance: random.Random, plan: Plan, key: int) -> list[Change]:
    """The events of a row in their order; an update may give it another key."""
    made: list[Change] = []
    row: tuple[Any, ...] | None = None
    now = 0
    for turn in range(1, chance.randint(2, 9)):
        now += chance.choice([0, 1, 1, 2])
        new = (chance.choice([None, "a", "b"]), chance.choice(["1.00", None]), chance.choice("xy"))
        operation = chance.choice("cr" if row is None else "uuud")
        told, kept = new, new
        if operation == "u" and row is not None and plan.partial and chance.random() < 0.5:
            told, kept = (UNAVAILABLE, *new[1:]), (row[0], *new[1:])
        row = None if operation == "d" else kept
        made.append(Change(key, operation, turn, now, told, row))
        if row is not None and plan.befores and told == kept and chance.random() < 0.1:
            made.append(Change(key, "b", turn + 20, now, (*row,), None))
            key += _MOVED
            made.append(Change(key, "u", turn + 20, now, row, row))
            now += 1
    return made


def last_of_times(log: Sequence[Change], plan: Plan) -> list[Event]:
    """What a key is from each time on at which it has events."""
    found = []
    kept = [e for e in log if e.row is not None or plan.hard_deletes != "ignore"]
    for now, events in groupby(sorted(kept, key=lambda e: (e.time, e.turn)), lambda e: e.time):
        last = list(events)[-1]
        told, rest = _split(plan, last.row or last.told)
        found.append(Event(now, told, rest, is_gone=last.row is None))
    return found


def _split(plan: Plan, row: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return (row, ()) if plan.tracks_all else (row[:2], row[2:])


def replayed(log: Sequence[Change], plan: Plan) -> list[Version]:
    """The versions of a key, one event after the other."""
    found: list[Version] = []
    for event in last_of_times(log, plan):
        last = found[-1] if found else None
        is_open = last is not None and last.end is None and not last.is_record
        if event.is_gone and not is_open:
            continue
        if last is not None and is_open and not event.is_gone and last.tracked == event.tracked:
            continue
        if last is not None and last.end is None:
            found[-1] = Version(last.begin, event.time, last.tracked, last.rest, last.is_record)
        if not event.is_gone:
            found.append(Version(event.time, None, event.tracked, event.rest))
        elif last is not None and plan.hard_deletes == "new_record":
            found.append(Version(event.time, None, last.tracked, last.rest, is_record=True))
    return found


def _batches(
    chance: random.Random, plan: Plan, log: Sequence[Change], count: int
) -> list[list[Change]]:
    """A log in ``count`` batches; events of one key and time stay together, and come again so."""
    made: list[list[Change]] = [[] for _ in range(count)]
    groups = [list(each) for _, each in groupby(log, lambda e: e.time)]
    places = [chance.randrange(count) for _ in groups]
    if plan.in_order:
        places.sort()
    for place, group in zip(places, groups, strict=True):
        made[place] += group
        if chance.random() < 0.2:  # delivered twice
            made[place] += [chance.choice(group)]
        if chance.random() < 0.2:
            made[chance.randrange(place, count)] += group
    return made


def _rows(plan: Plan, change: Change) -> list[dict[str, Any]]:
    def told(operation: str, values: tuple[Any, ...]) -> dict[str, Any]:
        named = dict(zip(("v", "n", "u"), values, strict=True))
        place = {"at": at(change.time), "lsn": change.turn}
        return {"op": operation, "id": change.key, **named, **place}

    found = [told(change.operation, change.told)]
    if plan.befores and change.operation == "u":
        found.append(told("b", ("stale", "9", "z")))
    return found


def _applied(harness: Harness, plan: Plan, folder: Path, changes: Sequence[Change]) -> Any:
    rows = [row for each in changes for row in _rows(plan, each)]
    rows.append({"op": "m"})
    return run(harness, plan.versions, batch(folder, rows, _SCHEMA), plan.events)


def _told(key: int, each: Version) -> tuple[Any, ...]:
    is_current = each.end is None and not each.is_record
    return (key, *each.tracked, *each.rest, each.begin, each.end, is_current, each.is_record)


def run_chain(spark: SparkSession, folder: Path, kind: str, seed: int, logs: int) -> int:
    """One chain; the number of its logs. Raises AssertionError, with the seed."""
    chance = random.Random(f"{kind} {seed}")
    plan = Plan.of(chance)
    place = folder / f"{kind}-{seed}"
    harness = dimension(spark, place / "w", kind)
    made = [random_log(chance, plan, number) for number in range(logs)]
    count = chance.randint(2, 4)
    cut = [_batches(chance, plan, log, count) for log in made]
    model: dict[int, list[Version]] = {}
    try:
        for number in range(count):
            changes = [each for log in cut for each in log[number]]
            chance.shuffle(changes)
            result = _applied(harness, plan, place / "batches", changes)
            assert result.error is None, result.error
            for key in {each.key for each in changes}:
                events = last_of_times([e for e in changes if e.key == key], plan)
                rules = Rules(plan.hard_deletes, "insert_between", "fail")
                model[key], wrong = applied(model.get(key, []), events, rules)
                assert not wrong
            _require_same(harness, model)
            if chance.random() < 0.3:
                again = _applied(harness, plan, place / "batches", changes)
                if plan.in_order:
                    assert again.error is None, again.error
                    assert again.status == "unchanged"
        if plan.in_order:
            every = [each for log in made for each in log]
            keys = {each.key for each in every}
            _require_same(
                harness, {k: replayed([e for e in every if e.key == k], plan) for k in keys}
            )
    except BaseException as error:
        error.add_note(f"kind {kind}, seed {seed}, {plan}")
        raise
    return logs


def _require_same(harness: Harness, model: dict[int, list[Version]]) -> None:
    wanted = [_told(key, each) for key in sorted(model) for each in model[key]]
    found = history(harness)
    more = [each for each in found if each not in wanted]
    less = [each for each in wanted if each not in found]
    assert found == wanted, f"not expected: {more[:8]}; missing: {less[:8]}"


def main() -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.engine.event_dimensions")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--chains", type=int, default=4, help="of each kind")
    parser.add_argument("--logs", type=int, default=60, help="of each chain")
    parser.add_argument("--seed", type=int, default=0)
    parsed = parser.parse_args()
    logs = failures = 0
    with tempfile.TemporaryDirectory() as folder, local_session(Path(folder) / "spark") as spark:
        for seed in range(parsed.seed, parsed.seed + parsed.chains):
            for kind in parsed.kinds.split(","):
                started = time.monotonic()
                try:
                    logs += run_chain(spark, Path(folder), kind, seed, parsed.logs)
                except Exception:  # noqa: BLE001 - each failure is told, and the next chain runs
                    failures += 1
                    print(traceback.format_exc(), flush=True)
                seconds = round(time.monotonic() - started, 1)
                print(f"{kind} {seed}: {seconds} s; {logs} logs, {failures} failed", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
