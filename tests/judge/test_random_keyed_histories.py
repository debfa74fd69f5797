"""Random statements between commits and compactions of Java, on tables with a primary key.

After every step the model, this project, Java and pypaimon have the same rows, and every new file
is as its manifest entry says. ``MERGE_HISTORIES`` sets the number of tables,
``MERGE_HISTORIES_SEED`` the first seed.
"""

from __future__ import annotations

import os
import random
from decimal import Decimal

import pyarrow as pa
import pytest

from spark_jobs.contract.statements import (
    Assignment,
    DeleteAction,
    InsertAllAction,
    MergeCase,
    UpdateAction,
)
from tests.judge.judge import changelog_from_java, read_with_java
from tests.judge.keyed_kinds import KINDS
from tests.judge.keyed_model import KeyedModel
from tests.judge.merging import delete, insert, merge, overwrite, selected, update
from tests.judge.streams import wrong_changes
from tests.judge.writer import JavaTable
from tests.support.judged_values import differences, from_arrow
from tests.support.keyed_checker import problems_of
from tests.support.turns import EVERYTHING, part

COUNT = int(os.environ.get("MERGE_HISTORIES", "3" if EVERYTHING else "1"))
FIRST = int(os.environ.get("MERGE_HISTORIES_SEED", 1 + part(3)))
ROUNDS = 5

KEY_TYPES = ("INT", "BIGINT", "STRING", "DECIMAL(10, 2)", "DECIMAL(22, 3)", "DATE")


class History:
    """One table: records of Java and statements, each with a look at all rows."""

    def __init__(self, spark, warehouse, seed):
        self.rng = random.Random(seed)
        self.spark, self.warehouse = spark, warehouse
        options = {**KINDS[seed % len(KINDS)], "bucket": str(self.rng.choice((1, 2, 3, -1, -1)))}
        if options["bucket"] == "-1":
            options["dynamic-bucket.target-row-num"] = self.rng.choice(("6", "13", "1000"))
            options["dynamic-bucket.initial-buckets"] = self.rng.choice(("1", "2"))
            options["dynamic-bucket.max-buckets"] = self.rng.choice(("-1", "2"))
        options["num-sorted-run.compaction-trigger"] = "3"
        options["file.format"] = self.rng.choice(("parquet", "parquet", "orc", "avro"))
        self.engine = options.get("merge-engine", "deduplicate")
        self.options = options
        self.producer = options.get("changelog-producer", "none")
        self.takes_deletes = self.engine == "deduplicate"
        self.partitioned = self.rng.random() < 0.4
        self.key = ("part", "id") if self.partitioned else ("id",)
        if not self.partitioned and self.rng.random() < 0.3:
            self.key = ("id", "part")
        self.kind = self.rng.choice(KEY_TYPES)
        kinds = {
            "id": f"{self.kind} NOT NULL",
            "part": "STRING NOT NULL",
            "a": "INT",
            "b": "STRING",
            "c": "DECIMAL(12, 2)",
            "seq": "INT",
        }
        self.java = JavaTable.of_types(
            warehouse.path, "d.t", kinds, ["part"] if self.partitioned else [], options, self.key
        )
        sequence = "sequence.field" in options
        self.model = KeyedModel(self.key, self.engine, sequence=sequence)
        self.done = [f"{options} {self.kind} {self.key}"]
        self.clock = 0

    def run(self):
        self.append(15)
        for _ in range(ROUNDS):
            if self.rng.random() < 0.7:
                self.append(6)
            if self.rng.random() < 0.3:
                full = self.rng.random() < 0.5
                self.java.compact(full=full)
                self.done.append(f"compact full={full}")
                self.check()
            statements = [self.merge] * 3 + [self.update, self.delete, self.insert]
            self.statement(self.rng.choice([*statements, self.overwrite]))
        self.append(4)
        self.java.compact(full=True)
        self.done.append("compact at the end")
        self.check()

    def statement(self, run):
        if self.producer in ("lookup", "full-compaction"):
            self.compact()
        before, first = self.rows(), self.latest() + 1
        run()
        self.check()
        if self.producer == "none" or self.latest() < first:
            return
        changes = changelog_from_java(self.warehouse.path, "d.t", first)
        self.done.append(f"changes {changes}")
        if run == self.overwrite:
            assert not changes, "\n".join(self.done)
            return
        if not changes and self.producer != "input":
            self.compact()
            changes = changelog_from_java(self.warehouse.path, "d.t", first)
        drops = "changelog-producer.row-deduplicate" in self.options
        wrong = wrong_changes(self.key, before, changes, self.rows(), drops_unchanged=drops)
        assert not wrong, ("\n".join(wrong), "\n".join(self.done))

    def compact(self):
        self.java.compact(full=True)
        self.done.append("compact for the changelog")
        self.check()

    def latest(self):
        return self.warehouse.table("d.t").snapshot_manager().get_latest_snapshot().id

    def rows(self):
        return from_arrow(self.arrow(list(self.model.rows.values())))

    def id(self, number):
        if self.kind == "STRING":
            return ("a" if number % 3 else "ä") + "x" * (number % 11) + str(number)
        if self.kind == "DATE":
            return 10_000 + number
        if self.kind.startswith("DECIMAL"):
            return Decimal(number) / 4 - 3
        return number - 7

    def row(self, number):
        self.clock += 1
        pick = self.rng.choice
        return {
            "id": self.id(number),
            "part": pick("pq"),
            "a": pick((None, self.rng.randrange(100))),
            "b": pick((None, pick("uvwxyz"))),
            "c": pick((None, Decimal(self.rng.randrange(10_000)) / 100)),
            "seq": self.clock + 20 - (self.rng.randrange(9) if self.model.sequence else 0),
        }

    def some_rows(self, count):
        return [self.row(number) for number in self.rng.sample(range(40), count)]

    def append(self, count):
        records = []
        for row in self.some_rows(count):
            kind = "+I"
            if self.takes_deletes and self.rng.random() < 0.25:
                kind = "-D"
            elif self.takes_deletes and self.rng.random() < 0.3:
                kind = "+U"
            if self.model.is_buried(row):
                # Whether the delete record is still there depends on Java's compactions.
                row["seq"] = self.clock + 20
            records.append((kind, row))
        self.java.append_records(
            [(kind, from_arrow(self.arrow([row]))[0]) for kind, row in records]
        )
        for kind, row in records:
            self.model.written(kind, row)
        self.done.append(f"java {records}")
        self.check()

    def arrow(self, rows):
        id_type = {
            "INT": pa.int32(),
            "BIGINT": pa.int64(),
            "STRING": pa.string(),
            "DECIMAL(10, 2)": pa.decimal128(10, 2),
            "DECIMAL(22, 3)": pa.decimal128(22, 3),
            "DATE": pa.int32(),
        }[self.kind]
        ids = pa.array([row["id"] for row in rows], id_type)
        if self.kind == "DATE":
            ids = ids.cast(pa.date32())
        return pa.table(
            {
                "id": ids,
                "part": pa.array([row["part"] for row in rows], pa.string()),
                "a": pa.array([row["a"] for row in rows], pa.int32()),
                "b": pa.array([row["b"] for row in rows], pa.string()),
                "c": pa.array([row["c"] for row in rows], pa.decimal128(12, 2)),
                "seq": pa.array([row["seq"] for row in rows], pa.int32()),
            }
        )

    def check(self):
        expected = self.rows()
        text = "\n".join(self.done)
        assert not differences(self.read(), expected), text
        assert not differences(selected(self.spark, self.warehouse, "d.t"), expected), text
        assert not problems_of(self.warehouse.table("d.t")), text

    def read(self):
        """The rows of Java; pypaimon counts twice what a lookup compaction has merged."""
        if self.engine == "aggregation" and {"lookup", "true"} & {
            self.producer,
            self.options.get("force-lookup"),
        }:
            return read_with_java(self.warehouse.path, "d.t")
        return self.warehouse.both_readers("d.t")

    def ended_well(self, name, result):
        self.done.append(f"{name} -> {result.metrics}")
        assert result.error is None, (result.error, "\n".join(self.done))

    def merge(self):
        source = {self.model.key_of(row): row for row in self.some_rows(7)}
        assigned = self.rng.sample(["a", "b", "c", "seq"], 2)
        pinned = self.rng.random() < 0.6
        sets = tuple(Assignment(name, f"s.{name}") for name in assigned)
        if self.rng.random() < 0.4:
            sets += tuple(Assignment(name, f"s.{name}") for name in self.key)
        cases = [
            MergeCase("matched", DeleteAction(), "s.seq % 4 = 0"),
            MergeCase("matched", UpdateAction(sets)),
            MergeCase("not_matched", InsertAllAction(), None if pinned else "s.seq % 3 > 0"),
        ]
        if self.rng.random() < 0.2:
            cases.append(MergeCase("not_matched_by_source", DeleteAction(), "t.seq % 5 = 0"))
        by_source = len(cases) == 4
        on = " AND ".join(f"t.{name} = s.{name}" for name in self.key)
        if not pinned:
            # The same condition, which does not prove that inserted keys are new.
            on = " AND ".join(f"NOT (t.{name} <> s.{name})" for name in self.key)
        result = merge(self.spark, self.warehouse, self.arrow(list(source.values())), cases, on=on)
        for key in [k for k in self.model.rows if k not in source]:
            if by_source and self.model.rows[key]["seq"] % 5 == 0:
                self.model.deleted(key)
        for key, row in source.items():
            old = self.model.rows.get(key)
            if old is None:
                if pinned or row["seq"] % 3 > 0:
                    self.model.stored(row)
            elif row["seq"] % 4 == 0:
                self.model.deleted(key)
            else:
                self.model.stored({**old, **{name: row[name] for name in assigned}})
        self.ended_well(f"merge on {on}: {assigned} {list(source.values())} {by_source}", result)

    def update(self):
        result = update(self.spark, self.warehouse, {"b": "NULL", "a": "a + 1"}, "t.seq % 3 = 1")
        for row in list(self.model.rows.values()):
            if row["seq"] % 3 == 1:
                raised = None if row["a"] is None else row["a"] + 1
                self.model.stored({**row, "b": None, "a": raised})
        self.ended_well("update", result)

    def delete(self):
        low = self.rng.randrange(40)
        result = delete(self.spark, self.warehouse, f"t.seq % 7 = {low % 7} OR t.part = 'z'")
        for key, row in list(self.model.rows.items()):
            if row["seq"] % 7 == low % 7:
                self.model.deleted(key)
        self.ended_well(f"delete {low % 7}", result)

    def insert(self):
        rows = list({self.model.key_of(row): row for row in self.some_rows(5)}.values())
        result = insert(self.spark, self.warehouse, self.arrow(rows))
        for row in rows:
            self.model.inserted(row)
        self.ended_well(f"insert {rows}", result)

    def overwrite(self):
        rows = list({self.model.key_of(row): row for row in self.some_rows(6)}.values())
        mode = self.rng.choice(("dynamic", "table")) if self.partitioned else "table"
        result = overwrite(self.spark, self.warehouse, self.arrow(rows), mode)
        parts = {row["part"] for row in rows}
        for key, row in list(self.model.rows.items()):
            if mode == "table" or row["part"] in parts:
                self.model.deleted(key)
        for row in rows:
            self.model.stored(row)
        self.ended_well(f"overwrite {mode} {rows}", result)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_random_history(spark, warehouse, seed):
    History(spark, warehouse, seed).run()
