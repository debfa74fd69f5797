"""A table whose changes are read: random steps of all engines, a model of its rows, and its log."""

from __future__ import annotations

import random
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.expressions import In

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec, RollbackSpec
from spark_jobs.contract.request import JobRequest, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.run import run
from tests.chains.lakes import IcebergLake, Lake, PaimonLake, Record, Row, Rows, State, values
from tests.judge.iceberg_spark import CATALOG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {"id": "BIGINT", "v": "STRING", "p": "INT"}
# Ids below are of one row each; those from here on may be of several equal ones.
TWINS = 100
PRODUCERS = ("input", "lookup", "full-compaction")


@dataclass
class Logged:
    """A snapshot: its rows, and the records that its changelog tells, if it has one.

    ``untold``: it changed rows without telling so. ``is_whole``: steps ended with it.
    """

    state: State
    rows: Rows
    records: list[Record] = field(default_factory=list)
    untold: bool = False
    is_whole: bool = False


class SourceTable:
    """The source of a chain; ``history`` says what happened to it."""

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        name: TableName,
        kind: str,
        producer: str,
        chance: random.Random,
    ) -> None:
        self.spark, self.lake, self.name, self.kind = spark, lake, name, kind
        self.chance = chance
        self.is_keyed = kind == "key"
        self.producer = producer
        self.history: list[str] = []
        self.steps: Counter[str] = Counter()
        self.log: list[Logged] = []
        self.oldest = 0
        self.model: Rows = Counter()
        self.numbers = 0
        self._make()

    def _make(self) -> None:
        more: dict[str, str] = {"changelog_producer": self.producer} if self.is_keyed else {}
        partitions = [] if self.is_keyed or self.chance.random() < 0.5 else ["p"]
        self.partitioned = bool(partitions)
        self.lake.make(self.name, self.kind, COLUMNS, ["id"], partitions, **more)
        self.history.append(f"{self.name} is {self.kind} {more} {partitions}")

    # What is known of it.

    def present(self) -> list[Logged]:
        """The snapshots that are there."""
        return self.log[self.oldest :]

    def newest(self) -> Logged | None:
        """The newest snapshot."""
        return self.log[-1] if self.log else None

    def since(self, state: State) -> list[Logged] | None:
        """The snapshots behind a state; None: a gap."""
        at = next((n for n, each in enumerate(self.log) if each.state == state), None)
        if at is None or at < self.oldest:
            return None
        found = self.log[at + 1 :]
        return None if any(each.untold for each in found) else found

    def look(self, *, untold: bool = False) -> None:
        """Log the snapshots that came, forget those that were rolled back."""
        states = self.lake.states(self.name)
        known = {each.state: n for n, each in enumerate(self.log)}
        common = [each for each in states if each in known]
        new = [each for each in states if each not in known]
        assert states[len(common) :] == new, "the history is not known any more"
        if common:
            del self.log[known[common[-1]] + 1 :]
            self.oldest = known[common[0]]
        for each in new:
            rows = self.lake.rows(self.name, self.kind, each.id)
            self.log.append(Logged(each, rows, untold=untold))
        if new and self.is_keyed:
            assert isinstance(self.lake, PaimonLake)
            self.log[-1].records = self.lake.changelog(self.name, new[0].id)
        if self.log:
            self.log[-1].is_whole = True
        rows = self.log[-1].rows if self.log else Counter()
        assert rows == self.model, (self.history[-1], rows - self.model, self.model - rows)

    # Steps.

    def step(self) -> None:
        """A random step, by one of the engines."""
        weights: list[tuple[int, Callable[[], str | None]]] = [
            *((2, self._insert), (2, self._update), (2, self._delete), (3, self._merge)),
            *((1, self._overwrite), (1, self._touch), (12, self._natively)),
            *((2, self._compact), (2, self._compact_natively)),
            *((1, self._expire), (1, self._expire_natively), (1, self._roll_back)),
        ]
        ((_, act),) = self.chance.choices(weights, [weight for weight, _ in weights])
        overwrites = act == self._overwrite
        told = act()
        if told is None:
            return
        self.history.append(f"source: {told}")
        self.steps[act.__name__.strip("_")] += 1
        self.look(untold=overwrites and self.is_keyed)

    def compact_to_tell(self) -> None:
        """A compaction that writes the changelog that is owed."""
        assert isinstance(self.lake, PaimonLake)
        self.lake.java(self.name).compact()
        self.history.append("source: java full compaction")
        self.look()

    def do(self, statement: Any) -> JobResult:
        """A statement of this project."""
        parsed = parse_statement(statement, []) if isinstance(statement, str) else None
        request = JobRequest(
            *(str(uuid.uuid4()), self.name, self.lake.catalog),
            statement if parsed is None else parsed.statement,
            sources=() if parsed is None else tuple(parsed.sources),
        )
        result = run(request, self.spark)
        assert result.error is None, (statement, result.error)
        return result

    def _insert(self) -> str:
        return self._done("INSERT INTO {t} VALUES {v}", self._came(self._new_rows()))

    def _update(self) -> str:
        ids, text = self._ids(), self._text()
        self._change(dict.fromkeys(ids, text), adds=False)
        return self._done(f"UPDATE {{t}} SET v = '{text}' WHERE id IN ({_list(ids)})")

    def _touch(self) -> str:
        return self._done(f"UPDATE {{t}} SET v = v WHERE id IN ({_list(self._ids())})")

    def _delete(self) -> str:
        ids = self._ids()
        self._change(dict.fromkeys(ids), adds=False)
        return self._done(f"DELETE FROM {{t}} WHERE id IN ({_list(ids)})")

    def _merge(self) -> str:
        """Ids that divide by 3 are deleted, others changed, or new."""
        text = self._text()
        ids = sorted(self.chance.sample(range(24), self.chance.randint(1, 6)))
        old = {row[0] for row in self.model}
        self._change(
            {each: None if each % 3 == 0 and each in old else text for each in ids}, adds=True
        )
        rows = values([(each, text, each % 2) for each in ids])
        return self._done(
            f"MERGE INTO {{t}} t USING (SELECT * FROM VALUES {rows} AS s (id, v, p)) s "
            "ON t.id = s.id WHEN MATCHED AND s.id % 3 = 0 THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
        )

    def _overwrite(self) -> str | None:
        """A partition, or all."""
        if not self.model or (self.is_keyed and self.chance.random() < 0.6):
            return None
        kept = Counter({row: n for row, n in self.model.items() if self.partitioned and row[2]})
        self.model = kept
        rows = [row for row in self._new_rows() if row[2] == 0] or [(50, "o", 0)]
        self._came(rows)
        if not self.partitioned:
            return self._done("INSERT OVERWRITE {t} VALUES {v}", rows)
        some = values([row[:2] for row in rows])
        return self._done(f"INSERT OVERWRITE {{t}} PARTITION (p = 0) VALUES {some}")

    def _natively(self) -> str | None:
        if isinstance(self.lake, IcebergLake):
            return self._natively_iceberg(self.lake)
        assert isinstance(self.lake, PaimonLake)
        if self.is_keyed and self.chance.random() < 0.7:
            return self._records(self.lake)
        if self.kind == "vectors" and self.chance.random() < 0.5:
            ids = [each for each in self._ids() if any(row[0] == each for row in self.model)]
            if not ids:
                return None
            self._change(dict.fromkeys(ids), adds=False)
            self.lake.delete(self.name, ids)
            return f"java deletes {ids}"
        if not self.is_keyed and not self.partitioned and self.chance.random() < 0.15:
            self.model = Counter()
            rows = self._came(self._new_rows())
            self.lake.overwrite(self.name, rows)
            return f"java overwrites with {rows}"
        rows = self._came(self._new_rows())
        return f"{self.lake.append(self.name, self.kind, rows, self.chance)} appends {rows}"

    def _records(self, lake: PaimonLake) -> str:
        text, records = self._text(), []
        for each in self._ids():
            row = next((row for row in self.model if row[0] == each), None)
            if row is not None and self.chance.random() < 0.4:
                records.append(("-D", row))
                self._change({each: None}, adds=False)
            else:
                records.append((self.chance.choice(["+I", "+U"]), (each, text, each % 2)))
                self._change({each: text}, adds=True)
        lake.records(self.name, records)
        return f"java writes {records}"

    def _natively_iceberg(self, lake: IcebergLake) -> str:
        ids, text = self._ids(), self._text()
        what = self.chance.choice(["append", "append", "delete", "update", "merge", "overwrite"])
        if what == "append":
            rows = self._came(self._new_rows())
            return f"{lake.append(self.name, self.kind, rows, self.chance)} appends {rows}"
        if lake.judge is None or (what in ("delete", "overwrite") and self.chance.random() < 0.5):
            self._change(dict.fromkeys(ids), adds=False)
            table, where = lake.table(self.name), In("id", ids)  # type: ignore[arg-type]
            if what != "overwrite":
                with warnings.catch_warnings():
                    # It rewrites the files of merge-on-read tables.
                    warnings.simplefilter("ignore", UserWarning)
                    table.delete(where)
                return f"pyiceberg deletes {ids}"
            rows = self._came(self._new_rows())
            told = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
            arrow = pa.Table.from_pylist(told, schema=table.schema().as_arrow())
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                table.overwrite(arrow, overwrite_filter=where)
            return f"pyiceberg overwrites {ids} with {rows}"
        return self._by_spark(lake, what, ids, text)

    def _by_spark(self, lake: IcebergLake, what: str, ids: Sequence[int], text: str) -> str:
        assert lake.judge is not None
        table, some = f"{CATALOG}.{self.name}", _list(ids)
        if what == "update":
            self._change(dict.fromkeys(ids, text), adds=False)
            statement = f"UPDATE {table} SET v = '{text}' WHERE id IN ({some})"
        elif what == "merge":
            old = {row[0] for row in self.model}
            self._change(
                {each: None if each % 2 and each in old else text for each in ids}, adds=True
            )
            rows = values([(each, text, each % 2) for each in ids])
            statement = (
                f"MERGE INTO {table} t USING (SELECT * FROM VALUES {rows} AS s (id, v, p)) s "
                "ON t.id = s.id WHEN MATCHED AND s.id % 2 = 1 THEN DELETE "
                "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
            )
        else:
            self._change(dict.fromkeys(ids), adds=False)
            statement = f"DELETE FROM {table} WHERE id IN ({some})"
        lake.judge.sql(statement)
        return f"spark: {statement}"

    def _compact(self) -> str | None:
        mode = self.chance.choice(["full", "full", "minor"])
        self.do(CompactSpec(mode=mode, min_files=2 if mode == "minor" else None))
        return f"COMPACT {mode}"

    def _compact_natively(self) -> str | None:
        if not self.log:
            return None
        return f"compaction by {self.lake.compact(self.name, self.chance)}"

    def _expire(self) -> str | None:
        kept = self.chance.randint(1, 8)
        if not self.log or not self.lake.is_ours_to_shorten(self.name):
            return None
        self.do(ExpireSnapshotsSpec(older_than="0 s", retain_min=1, retain_max=kept))
        return f"EXPIRE but {kept}"

    def _expire_natively(self) -> str | None:
        if not self.log:
            return None
        kept = self.chance.choice([1, 3, 5])
        return f"expiry but {kept} by {self.lake.expire(self.name, kept, self.chance)}"

    def _roll_back(self) -> str | None:
        former = [each for each in self.present()[:-1] if each.is_whole][-4:]
        if not former:
            return None
        to = self.chance.choice(former)
        self.model = Counter(to.rows)
        if self.chance.random() < 0.5 and self.lake.is_ours_to_shorten(self.name):
            self.do(RollbackSpec(to.state.id, force=True))
            return f"ROLLBACK to {to.state.id}"
        by = self.lake.roll_back(self.name, to.state.id, self.chance)
        return f"rollback to {to.state.id} by {by}"

    # The model.

    def _done(self, text: str, rows: Sequence[Row] = ()) -> str:
        statement = text.format(t=self.name, v=values(rows))
        self.do(statement)
        return statement

    def _ids(self) -> list[int]:
        found = sorted(self.chance.sample(range(24), self.chance.randint(1, 4)))
        twins = sorted({row[0] for row in self.model if row[0] >= TWINS})
        return [*found, *twins[:1]] if twins and self.chance.random() < 0.3 else found

    def _new_rows(self) -> list[Row]:
        old = {row[0] for row in self.model}
        free = [each for each in range(24) if self.is_keyed or each not in old]
        some = self.chance.sample(free, min(len(free), self.chance.randint(1, 5)))
        text = self.chance.choice([None, self._text()])
        rows: list[Row] = [(each, text, each % 2) for each in sorted(some)]
        if not rows or (not self.is_keyed and self.chance.random() < 0.4):
            twin = TWINS + self.chance.randrange(3)
            rows += [(twin, "twin", twin % 2)] * self.chance.randint(1, 2)
        return rows

    def _came(self, rows: list[Row]) -> list[Row]:
        if self.is_keyed:
            self._change({row[0]: None for row in rows}, adds=False)
        self.model.update(rows)
        return rows

    def _change(self, changes: dict[int, str | None], *, adds: bool) -> None:
        """Set ``v`` by id; None: the rows go. ``adds``: what is not there comes."""
        found: Rows = Counter()
        for row, count in self.model.items():
            if row[0] not in changes:
                found[row] += count
            elif changes[row[0]] is not None:
                found[(row[0], changes[row[0]], row[2])] += count
        old = {row[0] for row in self.model}
        for each, text in changes.items():
            if adds and each not in old and text is not None:
                found[(each, text, each % 2)] += 1
        self.model = found

    def _text(self) -> str:
        self.numbers += 1
        return f"v{self.numbers}"


def _list(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids))
