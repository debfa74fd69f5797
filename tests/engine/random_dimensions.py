"""Random logs of dimensions against the oracle: ``python -m tests.engine.random_dimensions``.

A chain is a table of one kind with many keys, each of which has a log of its own; its parameters
and batches follow from its seed. After each batch the table is what the oracle says; a batch that
is wrong, by the oracle, fails with the code that it names and leaves the table as it was; a batch
that comes again changes nothing.
"""

# ruff: noqa: T201 - a command speaks on the terminal

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.engine.dimensions import at, batch, dimension, history, run, spec
from tests.oracle.dimension import Event, Rules, Version, applied, state_at
from tests.support.spark_session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.contract.scd2 import Scd2Source
    from tests.conformance.harness import Harness

KINDS = ("append-cow", "append-dv", "primary-key", "row-tracking-dv", "iceberg-cow", "iceberg-mor")
_VALUES = (None, "a", "b")
_NUMBERS = ("1.00", "2.50", None)
_SPELLINGS = {"1.00": ("1.00", "1.0", "1"), "2.50": ("2.5", "2.50"), None: (None,)}
_END = "2030-01-01"
Log = list[Event]


@dataclass(frozen=True)
class Plan:
    """The parameters of a chain. ``takes_snapshots``: batches have all keys, of one time."""

    rules: Rules
    takes_snapshots: bool
    has_times: bool
    ends_open: bool
    tracks_all: bool
    has_current: bool

    @staticmethod
    def of(chance: random.Random) -> Plan:
        """Random parameters."""
        snapshots = chance.random() < 0.35
        timed = not snapshots or chance.random() < 0.4
        late = "insert_between" if timed and chance.random() < 0.75 else "fail"
        rules = Rules(
            hard_deletes=chance.choice(["close", "new_record", *([] if snapshots else ["ignore"])]),
            late=late,
            corrections=chance.choice(["fail", "ignore", "overwrite", "overwrite"]),
        )
        flags = [chance.random() < 0.5 for _ in range(3)]
        return Plan(rules, snapshots, timed, *flags)

    def spec(self, now: int) -> Scd2Source:
        """The source of versions of a run at a time."""
        return spec(
            tracked=None if self.tracks_all else ("v", "n"),
            effective="at" if self.has_times else None,
            as_of=at(now).isoformat(" ") if self.takes_snapshots else None,
            late=self.rules.late,
            corrections=self.rules.corrections,
            hard_deletes=self.rules.hard_deletes,
            delete_marker=None if self.takes_snapshots else "gone",
            open_end=_END if self.ends_open else None,
            current="is_current",
            deleted="is_deleted",
        )


@dataclass
class Chain:
    """A table with its model."""

    plan: Plan
    keys: int
    chance: random.Random
    harness: Harness
    folder: Path
    model: dict[int, list[Version]] = field(default_factory=dict)
    met: dict[str, int] = field(default_factory=dict)

    def events(self, key: int, now: int) -> Log:
        """The random rows of a key in a batch."""
        chance, plan = self.chance, self.plan
        if plan.takes_snapshots:
            if chance.random() < 0.2:
                return []
            return [self._event(now - chance.randint(0, 1) if plan.has_times else now)]
        count = chance.choice([0, 1, 1, 2, 3])
        newest = chance.random() < 0.6
        low, high = (now * 3, now * 3 + 2) if newest else (0, now * 3 + 2)
        found = [self._event(chance.randint(low, high)) for _ in range(count)]
        return found + [each for each in found if chance.random() < 0.1]

    def _event(self, when: int) -> Event:
        chance = self.chance
        gone = not self.plan.takes_snapshots and chance.random() < 0.2
        v, n, u = chance.choice(_VALUES), chance.choice(_NUMBERS), chance.choice("xy")
        if self.plan.tracks_all:
            return Event(when, (v, n, u), (), is_gone=gone)
        return Event(when, (v, n), (u,), is_gone=gone)

    def step(self, now: int) -> None:
        """A batch: what is wrong of it fails, the rest is applied, and again."""
        logs = {key: self.events(key, now) for key in range(self.keys)}
        good: dict[int, Log] = {}
        bad: dict[int, set[str]] = {}
        for key, log in logs.items():
            _, wrong = applied(self.model.get(key, []), self._told(key, log, now), self.plan.rules)
            if wrong:
                bad[key] = wrong
            else:
                good[key] = log
        if bad and self.chance.random() < 0.4:
            key = self.chance.choice(sorted(bad))
            self._fails(now, {**good, key: logs[key]}, bad[key])
        if self.plan.takes_snapshots:
            # A key is in every snapshot, or deleted.
            good |= {key: self._again(key, now) for key in bad}
        self._applies(now, good)
        if self.chance.random() < 0.35:
            self._same_again(now, good)

    def _again(self, key: int, now: int) -> Log:
        """A row that says what is stored, or none that may be wrong."""
        stored = self.model.get(key, [])
        last = stored[-1] if stored else None
        if last is None or last.is_record or last.end is not None:
            return []
        return [Event(last.begin if self.plan.has_times else now, last.tracked, last.rest)]

    def _told(self, key: int, log: Log, now: int) -> Log:
        """With the deletion that an absent key tells."""
        is_known = bool(self.model.get(key))
        if self.plan.takes_snapshots and not log and is_known:
            return [Event(now, (), (), is_gone=True, is_absent=True)]
        return log

    def _applies(self, now: int, logs: Mapping[int, Log]) -> None:
        before = dict(self.model)
        for key, log in logs.items():
            told = self._told(key, log, now)
            found, wrong = applied(before.get(key, []), told, self.plan.rules)
            if wrong:
                # A snapshot in which the key is absent is too late for it: leave it as it is.
                raise _SkippedError
            self.model[key] = found
            self._require_history(found, before.get(key, []), told)
        result = self._run(now, logs)
        assert result.error is None, result.error
        self._require_same()
        self.met[result.status] = self.met.get(result.status, 0) + 1

    def _same_again(self, now: int, logs: Mapping[int, Log]) -> None:
        for key, log in logs.items():
            found, wrong = applied(self.model[key], self._told(key, log, now), self.plan.rules)
            assert not wrong
            assert found == self.model[key]
        result = self._run(now, logs)
        assert result.error is None, result.error
        assert result.status == "unchanged", result
        self.met["again"] = self.met.get("again", 0) + 1

    def _fails(self, now: int, logs: Mapping[int, Log], codes: set[str]) -> None:
        snapshot = self.harness.latest_snapshot()
        result = self._run(now, logs)
        assert result.error is not None, codes
        assert result.error.code in codes, (result.error, codes)
        assert self.harness.latest_snapshot() == snapshot
        self.met[result.error.code] = self.met.get(result.error.code, 0) + 1

    def _run(self, now: int, logs: Mapping[int, Log]) -> Any:
        rows = [self._row(key, each) for key, log in logs.items() for each in log]
        self.chance.shuffle(rows)
        return run(self.harness, self.plan.spec(now), batch(self.folder, rows))

    def _row(self, key: int, event: Event) -> dict[str, Any]:
        v, n, u = (*event.tracked, *event.rest)
        spelled = self.chance.choice(_SPELLINGS[n])
        gone = True if event.is_gone else self.chance.choice([False, None])
        return {"id": key, "v": v, "n": spelled, "u": u, "at": at(event.time), "gone": gone}

    def _require_same(self) -> None:
        end = (at(0).replace(year=2030) - at(0)).days * 24 if self.plan.ends_open else None
        wanted = []
        for key in sorted(self.model):
            for each in self.model[key]:
                v, n, u = (*each.tracked, *each.rest)
                is_open = each.end is None
                until = end if is_open else each.end
                current = is_open and not each.is_record
                wanted.append((key, v, n, u, each.begin, until, current, each.is_record))
        found = history(self.harness)
        assert found == wanted, _difference(found, wanted)

    def _require_history(
        self, found: Sequence[Version], before: Sequence[Version], told: Log
    ) -> None:
        """What holds of all histories, and what is valid at each time, told in another way."""
        for one, two in pairwise(found):
            assert one.end is not None
            assert one.begin < one.end <= two.begin
            assert self.plan.rules.hard_deletes != "ignore" or one.end == two.begin
        assert sum(each.end is None and not each.is_record for each in found) <= 1
        times = {t for each in before for t in (each.begin, each.end) if t is not None}
        rules = self.plan.rules
        said = {e.time: e for e in told if not (e.is_gone and rules.hard_deletes == "ignore")}
        if rules.corrections != "overwrite":
            said = {t: e for t, e in said.items() if t not in times}
        for now in range(max([*times, *said, 0]) + 1):
            last = max((t for t in times if t <= now), default=None)
            newer = max((t for t in said if t <= now), default=None)
            if newer is not None and (last is None or newer >= last):
                event = said[newer]
                valid = None if event.is_gone else event.tracked
            else:
                valid = state_at(before, now)
            assert state_at(found, now) == valid, (now, found, before, told)


class _SkippedError(Exception):
    """The rest of a chain cannot be told in batches."""


def _difference(found: Sequence[Any], wanted: Sequence[Any]) -> str:
    more = [each for each in found if each not in wanted]
    less = [each for each in wanted if each not in found]
    return f"not expected: {more[:8]}; missing: {less[:8]}; {len(found)} of {len(wanted)}"


def run_chain(
    spark: SparkSession, folder: Path, kind: str, seed: int, keys: int, steps: int = 4
) -> dict[str, int]:
    """One chain; what its runs met. Raises AssertionError, with the seed."""
    chance = random.Random(f"{kind} {seed}")
    plan = Plan.of(chance)
    place = folder / f"{kind}-{seed}"
    chain = Chain(plan, keys, chance, dimension(spark, place / "w", kind), place / "batches")
    try:
        for now in range(1, steps + 1):
            chain.step(now)
    except _SkippedError:
        chain.met["skipped"] = 1
    except BaseException as error:
        error.add_note(f"kind {kind}, seed {seed}, {plan}")
        raise
    return chain.met


def main() -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.engine.random_dimensions")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--chains", type=int, default=12, help="of each kind")
    parser.add_argument("--keys", type=int, default=100, help="logs of each chain")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ledger", type=Path)
    parsed = parser.parse_args()
    logs = failures = 0
    with tempfile.TemporaryDirectory() as folder, local_session(Path(folder) / "spark") as spark:
        for seed in range(parsed.seed, parsed.seed + parsed.chains):
            for kind in parsed.kinds.split(","):
                started, failure, met = time.monotonic(), None, {}
                try:
                    met = run_chain(spark, Path(folder), kind, seed, parsed.keys)
                except Exception:  # noqa: BLE001 - each failure is told, and the next chain runs
                    failure, failures = traceback.format_exc(), failures + 1
                    print(failure, flush=True)
                logs += parsed.keys
                line = {"kind": kind, "seed": seed, "met": met, "failed": failure is not None}
                line["seconds"] = round(time.monotonic() - started, 1)
                print(json.dumps(line), f"{logs} logs, {failures} failed", flush=True)
                if parsed.ledger:
                    with parsed.ledger.open("a") as ledger:
                        ledger.write(json.dumps(line) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
