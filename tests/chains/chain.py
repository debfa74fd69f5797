"""A chain: a source that all engines change, and two tasks that follow it through everything.

Runs are retried, cleared, killed at any step and met by a second scheduler; their targets are
compacted, expired, rolled back and undone. After each run the target has what a replay of the
source's logged states in Python says, and the run ended as it had to.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.inserts import TruncateTableSpec
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec, RollbackSpec
from spark_jobs.contract.request import JobRequest, Origin, TableName
from spark_jobs.contract.undo import UndoRunSpec
from spark_jobs.run import run
from tests.chains.consumer import DAG, Consumer, told
from tests.chains.kills import NAMED, dying_at, dying_within, forked
from tests.chains.lakes import KINDS, PAIMON, IcebergLake, Lake, PaimonLake
from tests.chains.source_table import PRODUCERS, SourceTable
from tests.judge.iceberg_spark import IcebergSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CODES = {"gap": "SNAPSHOT_NOT_FOUND", "lost": "MARK_LOST"}
_OWED = "has still to write the changelog"
_SHUT_OUT = ("OPERATION_ID_REUSED", "RUN_GIVEN_UP")


@dataclass(frozen=True)
class Pair:
    """The kinds of a chain's source and targets."""

    source: str
    target: str

    @classmethod
    def of(cls, seed: int) -> Pair:
        """Six seeds in a row have all kinds on both sides; 36 have all pairs."""
        number, size = seed % len(KINDS), len(KINDS)
        return cls(KINDS[number], KINDS[(number + seed // size) % size])

    def __str__(self) -> str:
        return f"{self.source} -> {self.target}"


class ChainError(AssertionError):
    """A chain went wrong; the text has its history."""


class Chain:
    """A random chain that follows from its seed."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        judge: IcebergSpark | None,
        seed: int,
        pair: Pair | None = None,
    ) -> None:
        self.spark, self.chance, self.pair = spark, random.Random(seed), pair or Pair.of(seed)
        paimon, iceberg = PaimonLake(folder / "paimon"), IcebergLake(folder / "iceberg", judge)

        def lake(kind: str) -> Lake:
            return paimon if kind in PAIMON else iceberg

        label = f"c{seed}_{uuid.uuid4().hex[:6]}"
        source = TableName("db", f"{label}_source")
        producer = PRODUCERS[seed // len(KINDS) % len(PRODUCERS)]
        self.source = SourceTable(
            spark, lake(self.pair.source), source, self.pair.source, producer, self.chance
        )
        target, place = self.pair.target, lake(self.pair.target)
        self.consumers = [
            Consumer(
                *(self.source, place, TableName("db", f"{label}_{name}"), target),
                net=name == "net",
                start=self.chance.choice(["all", "now"]),
            )
            for name in ("net", "log")
        ]
        self.history, self.seen = self.source.history, Counter[str]()
        self.history += [f"{each.name} starts at {each.start}" for each in self.consumers]

    def play(self, runs: int) -> Counter[str]:
        """So many runs with steps between; then all is told, and compared.

        Raises:
            ChainError: it went wrong.
        """
        try:
            self._steps(self.chance.randint(0, 2))
            for number in range(runs):
                self.history.append(f"-- run {number}")
                consumer = self.consumers[number % 2]
                self._run(consumer)
                self._steps(self.chance.choice([0, 1, 1, 2]))
                if self.chance.random() < 0.35:
                    self._change_target(self.chance.choice(self.consumers))
            self._end()
        except Exception as error:
            text = "\n".join(self.history)
            raise ChainError(f"{self.pair}\n{text}\n{type(error).__name__}: {error}") from error
        self.seen.update({f"source: {k}": n for k, n in self.source.steps.items()})
        return self.seen

    def _steps(self, count: int) -> None:
        for _ in range(count):
            self.source.step()

    def _end(self) -> None:
        """All that is owed is told: then a copy that began with all rows equals the source."""
        if self.source.is_keyed:
            self.source.compact_to_tell()
        for each in self.consumers:
            self._plain(each)
            self._plain(each)

    # Runs.

    def _run(self, consumer: Consumer) -> None:
        ways: list[tuple[int, Callable[[Consumer], None]]] = [
            *((6, self._plain), (4, self._killed), (2, self._cleared), (2, self._met)),
            (1, self._previewed),
        ]
        ((_, way),) = self.chance.choices(ways, [weight for weight, _ in ways])
        self._note(consumer, way.__name__)
        way(consumer)

    def _plain(self, consumer: Consumer) -> None:
        self._done(consumer, consumer.request())

    def _done(self, consumer: Consumer, request: JobRequest) -> None:
        """A run that ends as expected; a gap is bridged."""
        found = told(consumer.run(request))
        if self._owes(found):
            found = told(
                consumer.run(replace(request, origin=replace(request.origin, try_number=8)))
            )
        self._ended(consumer, request, found)

    def _ended(self, consumer: Consumer, request: JobRequest, found: dict[str, Any]) -> None:
        end, after = consumer.expected()
        assert found["code"] == _CODES.get(end), (end, found)
        if end in _CODES:
            self._note(consumer, f"{end} {found['message']}")
            consumer.require_right()
            self._bridged(consumer, end)
            return
        assert found["status"] == end, (end, found)
        if end == "committed":
            consumer.committed(request.origin.run_id, after)
        self.seen[end] += 1
        consumer.require_right()

    def _bridged(self, consumer: Consumer, end: str) -> None:
        """After a gap: all rows are read as inserts, or the copy is made anew."""
        self.seen[end] += 1
        if end == "gap" and self.chance.random() < 0.6:
            self._note(consumer, "on_gap=full")
            request = consumer.request(on_gap="full")
            found = told(consumer.run(request))
            if self._owes(found):
                found = told(consumer.run(consumer.request(on_gap="full")))
            _, after = consumer.expected(full=True)
            assert found["status"] == "committed", found
            consumer.committed(request.origin.run_id, after)
            consumer.require_right()
            return
        self._note(consumer, "made anew")
        self._care(consumer, TruncateTableSpec())
        consumer.named += 1
        consumer.start, consumer.has_begun = "all", False
        consumer.became(replace(consumer.applied, mark=None, rows=(), others=(), commits=()))
        consumer.known = {}
        self._plain(consumer)

    def _owes(self, found: dict[str, Any]) -> bool:
        """Whether a run was refused until changelog is written; then it is."""
        if found["code"] != "NOT_SUPPORTED" or _OWED not in found["message"]:
            return False
        assert self.source.producer != "input", found
        self.seen["owed"] += 1
        self.source.compact_to_tell()
        return True

    def _cleared(self, consumer: Consumer) -> None:
        """A run, and the same operation again; perhaps after the source has changed."""
        request = consumer.request()
        self._done(consumer, request)
        was, mark = self._last(consumer, request), consumer.applied.mark
        if self.chance.random() < 0.5:
            self._steps(1)
        again = replace(request, origin=replace(request.origin, try_number=9))
        if was:
            found = told(consumer.run(again))
            assert (found["code"], found["status"]) == (None, "committed"), found
            assert consumer.applied.mark == mark
            consumer.require_right()
            self.seen["cleared"] += 1

    def _last(self, consumer: Consumer, request: JobRequest) -> bool:
        commits = consumer.applied.commits
        return bool(commits) and commits[-1][0] == request.origin.run_id

    def _previewed(self, consumer: Consumer) -> None:
        """A dry run changes nothing."""
        consumer.run(replace(consumer.request(), dry_run=True))
        consumer.require_right()
        self._plain(consumer)

    def _killed(self, consumer: Consumer) -> None:
        """A driver is killed at a step; then the task is retried, or cleared."""
        request = consumer.request(retries=2)
        connector = consumer.lake.connector
        if self.chance.random() < 0.5:
            step, after = self.chance.choice(NAMED), self.chance.random() < 0.5
            where = f"{'after' if after else 'before'} {step}"
            death: Any = dying_at(step, connector, after=after)
        else:
            number, torn = self.chance.randint(1, 45), self.chance.random() < 0.3
            where = f"at change {number}{' torn' if torn else ''}"
            death = dying_within(consumer.lake.roots, number, torn=torn)
        before = consumer.lake.states(consumer.name)
        found = forked(self.spark, lambda: told(consumer.run(request)), within=[death])
        is_new = consumer.lake.states(consumer.name) != before
        self._note(consumer, f"killed {where}: {found}, published: {is_new}")
        self.seen["killed, published" if is_new else "killed" if found is None else "lived"] += 1
        end, after_it = consumer.expected()
        if is_new:
            assert end == "committed", end
            consumer.committed(request.origin.run_id, after_it)
            consumer.require_right()
        if self.chance.random() < 0.3:
            self._steps(1)
        if self.chance.random() < 0.5:
            self._plain(consumer)
            return
        again = replace(request, origin=replace(request.origin, try_number=2))
        if end == "unchanged":
            # Nothing was to be done; a driver that lived long enough has said so for good.
            again = consumer.request()
        if not is_new:
            self._done(consumer, again)
            return
        result = told(consumer.run(again))
        assert (result["code"], result["status"]) == (None, "committed"), result
        consumer.require_right()

    def _met(self, consumer: Consumer) -> None:
        """Another scheduler's run of the same task publishes first."""
        one, other = consumer.request(), consumer.request()
        is_same = self.chance.random() < 0.4
        if is_same:
            other = replace(one, origin=replace(one.origin, try_number=2))
        found: list[dict[str, Any]] = []

        def meanwhile() -> None:
            found.append(told(consumer.run(other, self.spark.newSession())))

        with _before_publication(consumer, meanwhile):
            late = told(consumer.run(one))
        if not found:
            if self._owes(late):
                late = told(consumer.run(consumer.request()))
            self._ended(consumer, one, late)
            return
        self._note(consumer, f"met by {'itself' if is_same else 'another'}: {late} {found}")
        self.seen["met"] += 1
        self._ended(consumer, other, found[0])
        if is_same:
            assert late["code"] in _SHUT_OUT, late
        else:
            assert (late["code"], late["status"]) == (None, "unchanged"), late
        consumer.require_right()

    # What happens to targets.

    def _change_target(self, consumer: Consumer) -> None:
        if not consumer.lake.states(consumer.name):
            return
        ways = [
            *(self._target_compacted, self._target_expired, self._others_append),
            *(self._target_rolled_back, self._undone, self._undone),
        ]
        way = self.chance.choice(ways)
        told_by = way(consumer)
        self._note(consumer, f"{way.__name__}: {told_by}")
        if told_by:
            self.seen[way.__name__.strip("_")] += 1
            consumer.require_right()

    def _target_compacted(self, consumer: Consumer) -> str:
        if self.chance.random() < 0.5:
            self._care(consumer, CompactSpec(mode="full"))
            by = "us"
        else:
            by = consumer.lake.compact(consumer.name, self.chance)
        consumer.became(consumer.applied)
        return by

    def _target_expired(self, consumer: Consumer) -> str:
        kept, is_ours = self.chance.randint(1, 3), self.chance.random() < 0.5
        if is_ours and consumer.lake.is_ours_to_shorten(consumer.name):
            self._care(consumer, ExpireSnapshotsSpec(None, kept, "0 s"))
            return f"us, but {kept}"
        return consumer.lake.expire(consumer.name, kept, self.chance)

    def _others_append(self, consumer: Consumer) -> str:
        """Rows that are none of the source's."""
        number = -len(consumer.applied.others) - 1
        row = (number, "other", 0) if consumer.net else (number, "other", 0, "insert", 0)
        stored = (*row, 1) if consumer.counts else row
        by = consumer.lake.append(consumer.name, consumer.kind, [stored], self.chance)
        consumer.became(replace(consumer.applied, others=(*consumer.applied.others, row)))
        return by

    def _target_rolled_back(self, consumer: Consumer) -> str:
        former = [e for e in consumer.lake.states(consumer.name)[:-1] if e in consumer.known][-3:]
        if not former:
            return ""
        to = self.chance.choice(former)
        before = consumer.known[to]
        if self.chance.random() < 0.6 and consumer.lake.is_ours_to_shorten(consumer.name):
            self._care(consumer, RollbackSpec(to.id, force=True))
            by = f"us to {to.id}"
        else:
            by = f"{consumer.lake.roll_back(consumer.name, to.id, self.chance)} to {to.id}"
        consumer.applied = before
        return by

    def _undone(self, consumer: Consumer) -> str:
        """The newest run of the task is undone, if it can be."""
        if not consumer.applied.commits:
            return ""
        run_id, before = consumer.applied.commits[-1]
        spec = UndoRunSpec(DAG, run_id, (str(consumer.name),), "skip")
        result = self._care(consumer, spec)
        assert result.undo is not None
        outcome = result.undo.tables[0].outcome
        if outcome == "undone":
            consumer.became(replace(before, others=consumer.applied.others))
        return str(outcome)

    def _care(self, consumer: Consumer, statement: Any) -> Any:
        request = JobRequest(
            *(str(uuid.uuid4()), consumer.name, consumer.lake.catalog, statement),
            origin=Origin("care", str(uuid.uuid4()), "care"),
        )
        result = run(request, self.spark)
        assert result.error is None, (statement, result.error)
        return result

    def _note(self, consumer: Consumer, text: str) -> None:
        self.history.append(f"{'net' if consumer.net else 'log'}: {text}")


@contextmanager
def _before_publication(consumer: Consumer, act: Callable[[], None]) -> Iterator[None]:
    """Do something when a run is about to publish for the first time."""
    owner: Any = type(consumer.lake.connector.writes)
    real, waiting = owner.finish_merge, [act]

    def finish(*arguments: Any, **more: Any) -> Any:
        if waiting:
            waiting.pop()()
        return real(*arguments, **more)

    with mock.patch.object(owner, "finish_merge", finish):
        yield
