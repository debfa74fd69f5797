"""Random ALTERs between random statements: oracle, this project, Java and pypaimon agree.

``MERGE_HISTORIES`` sets the number of tables, ``MERGE_HISTORIES_SEED`` the first seed.
"""

from __future__ import annotations

import os
import random
import re
from datetime import UTC

import pyarrow as pa
import pytest
from pypaimon.schema.data_types import DataField, DataTypeParser, PyarrowFieldParser

from spark_jobs.contract.statements import (
    Assignment,
    DeleteAction,
    InsertAction,
    InsertAllAction,
    MergeCase,
    UpdateAction,
    UpdateAllAction,
)
from tests.judge.altered_table import ATOMIC, AlteredTable, Field
from tests.judge.merging import delete, merge, overwrite, update
from tests.judge.writer import JavaTable
from tests.support.judged_values import differences, from_arrow
from tests.support.turns import EVERYTHING, part

COUNT = int(os.environ.get("MERGE_HISTORIES", "3" if EVERYTHING else "1"))
FIRST = int(os.environ.get("MERGE_HISTORIES_SEED", 1 + part(3)))
VECTORS = {"deletion-vectors.enabled": "true"}
BUCKETS = {"bucket": "2", "bucket-key": "id"}
ORC = {"file.format": "orc"}
AVRO = {"file.format": "avro"}
KINDS = (
    ([], {}),
    (["part"], {}),
    ([], VECTORS),
    (["part"], VECTORS),
    ([], BUCKETS),
    (["part"], {**BUCKETS, **VECTORS}),
    ([], ORC),
    (["part"], {**ORC, **VECTORS}),
    (["part"], {**AVRO, **VECTORS}),
    ([], {**AVRO, **BUCKETS}),
)
# Nested timestamps in ORC are refused, and Java reads some nested 0.0 in ORC as -0.0.
NOT_IN_ORC = re.compile("TIMESTAMP|FLOAT|DOUBLE")
ORC_TYPES = tuple(kind for kind in ATOMIC if not NOT_IN_ORC.match(kind))
# Spark has no such types; new columns become STRING and TIMESTAMP(6).
NOT_IN_SPARK = ("VARCHAR(5)", "TIMESTAMP(3)")
ROUNDS = 4


class History:
    """One table: ALTERs, commits of Java, and statements, each with a look at all rows."""

    def __init__(self, spark, warehouse, seed):
        self.rng = random.Random(seed)
        self.spark, self.warehouse = spark, warehouse
        keys, options = KINDS[seed % len(KINDS)]
        self.types = ORC_TYPES if options.get("file.format") == "orc" else ATOMIC
        self.model = AlteredTable(self.rng, self.types)
        self.partitioned = bool(keys)
        kinds = {each.name: each.json for each in self.model.columns}
        self.java = JavaTable.of_types(warehouse.path, "d.t", kinds, keys, options)
        self.done = [f"{options} {self.model}"]
        self.next_id = 0

    def run(self):
        self.append(12)
        for _ in range(ROUNDS):
            for _ in range(self.rng.randrange(2, 4)):
                change = self.model.alter()
                self.done.append(str(change))
                self.java = self.java.alter(change)
            if self.rng.random() < 0.6:
                self.append(6)
            statements = (self.merge, self.merge, self.evolving_merge, self.update, self.delete)
            statement = self.rng.choice(statements)
            if self.partitioned and self.rng.random() < 0.2:
                statement = self.overwrite
            statement()
            self.check()

    def append(self, count):
        rows = self.model.new_rows(range(self.next_id, self.next_id + count))
        self.next_id += count
        self.model.add(rows)
        self.java.append(self.arrow(rows))

    def arrow(self, rows, columns=None):
        """Rows as an Arrow table with the columns of the model, or some of them."""
        shown = [zoned(self.model.shown(row), self.model.columns) for row in rows]
        fields = [
            DataField(number, each.name, DataTypeParser.parse_data_type(each.json))
            for number, each in enumerate(columns or self.model.columns)
        ]
        return pa.Table.from_pylist(shown, PyarrowFieldParser.from_paimon_schema(fields))

    def check(self):
        expected = from_arrow(self.arrow(self.model.rows.values()))
        text = "\n".join(self.done)
        assert not differences(self.warehouse.both_readers("d.t"), expected), text
        self.warehouse.checked_files("d.t")

    def ended_well(self, name, result):
        self.done.append(name)
        assert result.error is None, (result.error, "\n".join(self.done))

    def chosen(self):
        ids = list(self.model.rows)
        return self.rng.sample(ids, min(len(ids), self.rng.randrange(1, 5)))

    def merge(self):
        assigned = self.rng.sample(self.model.free, self.rng.randrange(1, len(self.model.free) + 1))
        rows = self.model.new_rows(range(self.next_id, self.next_id + 2))
        self.next_id += 2
        key, part, *_ = self.model.columns
        changed = self.model.new_rows(range(0))
        for id_ in self.chosen():
            (row,) = self.model.new_rows(range(id_, id_ + 1))
            changed.append(row)
        source = self.arrow([*changed, *rows], [key, part, *assigned])
        names = ["id", "part", *(each.name for each in assigned)]
        sets = tuple(Assignment(f"`{n}`", f"s.`{n}`") for n in names[2:])
        cases = [
            MergeCase("matched", DeleteAction(), "s.id % 4 = 0"),
            MergeCase("matched", UpdateAction(sets)),
            MergeCase(
                "not_matched",
                InsertAction(
                    values=tuple(f"s.`{n}`" for n in names), columns=tuple(f"`{n}`" for n in names)
                ),
            ),
        ]
        result = merge(self.spark, self.warehouse, source, cases)
        self.ended_well(f"MERGE {names} {[row[key.identity] for row in changed]}", result)
        for row in changed:
            id_ = row[key.identity]
            if id_ % 4 == 0:
                del self.model.rows[id_]
                continue
            self.model.rows[id_] |= {each.identity: row[each.identity] for each in assigned}
        known = [key, part, *assigned]
        self.model.add([{each.identity: row[each.identity] for each in known} for row in rows])

    def evolving_merge(self):
        """A source with more columns and fields than the table, which lacks some columns of it."""
        known = {each.identity: each.json for each in self.model.free}
        kept = self.rng.sample(sorted(known), self.rng.randrange(len(known) + 1))
        types = [each for each in self.types if each not in NOT_IN_SPARK]
        for _ in range(self.rng.randrange(1, 3)):
            self.model.add_any(types)
        key, part, *free = self.model.columns
        evolved = [each for each in free if known.get(each.identity) != each.json]
        given = [key, part, *(n for n in free if n.identity in kept or n in evolved)]
        changed = [self.model.new_rows(range(id_, id_ + 1))[0] for id_ in self.chosen()]
        rows = self.model.new_rows(range(self.next_id, self.next_id + 2))
        self.next_id += 2
        cases = [
            MergeCase("matched", UpdateAllAction()),
            MergeCase("not_matched", InsertAllAction()),
        ]
        source = self.arrow([*changed, *rows], given)
        result = merge(self.spark, self.warehouse, source, cases, evolves=True)
        self.ended_well(f"EVOLVING MERGE {[each.name for each in given]} {self.model}", result)
        for row in changed:
            self.model.rows[row[key.identity]] |= {n.identity: row[n.identity] for n in given}
        self.model.add([{each.identity: row[each.identity] for each in given} for row in rows])
        self.java = self.java.reloaded()

    def update(self):
        ids, column = self.chosen(), self.rng.choice(self.model.free)
        where = f"t.id IN ({', '.join(map(str, ids))})" if ids else "false"
        result = update(self.spark, self.warehouse, {f"`{column.name}`": "NULL"}, where)
        self.ended_well(f"UPDATE {column.name} {ids}", result)
        for id_ in ids:
            self.model.rows[id_][column.identity] = None

    def delete(self):
        column = self.rng.choice(self.model.free)
        result = delete(self.spark, self.warehouse, f"`{column.name}` IS NULL AND id % 2 = 0")
        self.ended_well(f"DELETE {column.name}", result)
        for id_, row in list(self.model.rows.items()):
            if row.get(column.identity) is None and id_ % 2 == 0:
                del self.model.rows[id_]

    def overwrite(self):
        rows = self.model.new_rows(range(self.next_id, self.next_id + 3))
        self.next_id += 3
        result = overwrite(self.spark, self.warehouse, self.arrow(rows), "dynamic")
        self.ended_well("OVERWRITE", result)
        part = self.model.columns[1].identity
        new = {row[part] for row in rows}
        for id_, row in list(self.model.rows.items()):
            if row[part] in new:
                del self.model.rows[id_]
        self.model.add(rows)


def zoned(row, columns):
    """The row with the time zone of the types that have one."""
    return {each.name: in_utc(each, row[each.name]) for each in columns}


def in_utc(kind: Field, value):
    if value is None:
        return None
    if kind.kind.endswith("ZONE"):
        return value.replace(tzinfo=UTC)
    if kind.kind == "ROW":
        return zoned(value, kind.fields)
    if kind.kind == "ARRAY":
        return [None if each is None else zoned(each, kind.fields) for each in value]
    if kind.kind == "MAP":
        return {key: zoned(each, kind.fields) for key, each in value.items()}
    return value


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_random_histories(spark, warehouse, seed):
    History(spark, warehouse, seed).run()
