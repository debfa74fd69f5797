"""Compactions take the records that Java postponed into their buckets, in the order of writing."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from spark_jobs.contract.compaction import CompactSpec
from tests.judge.compacted_table import CompactedTable
from tests.judge.judge import changelog_from_java
from tests.judge.keyed_kinds import FULL_COMPACTION, INPUT, KINDS, LOOKUP, SEQUENCE
from tests.judge.watched_table import NAME, Kind
from tests.judge.writer import JavaTable
from tests.support.compaction_runs import compact

SHOWING = CompactSpec(mode="full", include_pending=True)
OPTIONS = {"bucket": "-2"}


@dataclass(frozen=True)
class PostponedKind(Kind):
    """A table whose appended records are seen only when a compaction has been asked for them."""

    @property
    def hides_level_0(self):
        return True


class PostponingJava(JavaTable):
    """Java's writer, which leaves it to a compaction to choose buckets."""

    def append_records(self, records, bucket=None, *, overwrites=False):
        super().append_records(records, -2, overwrites=overwrites)


class PostponedTable(CompactedTable):
    """Its compactions owe the changelog of postponed records also where writers write it."""

    def check_stream_of_compaction(self, first):
        if not INPUT.items() <= self.kind.options.items():
            super().check_stream_of_compaction(first)


def table_of(warehouse, options, seed):
    rng = random.Random(seed)
    count = rng.choice(("1", "2", "5"))
    kind = PostponedKind(
        {**options, **OPTIONS, "postpone.default-bucket-num": count},
        has_key=True,
        partitioned=rng.random() < 0.5,
    )
    table = PostponedTable(warehouse, kind, rng)
    java = table.java
    table.java = PostponingJava(java.warehouse, java.name, java.kinds)
    return table


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("number", range(len(KINDS)))
def test_random_postponed_records(warehouse, number):
    table = table_of(warehouse, KINDS[number], number)
    steps = [lambda: table.append(6)] * 4 + [table.merge, table.compact]
    table.append(12)
    for _ in range(8):
        table.rng.choice(steps)()
    table.append(6)
    table.compact(SHOWING)
    assert table.rows == table.typed(table.model.rows.values())
    table.append(3)
    table.compact(CompactSpec(include_pending=True))
    table.check_kept()


def records(*numbered):
    """Records of rows with an id and a text, from old to new."""
    found = []
    for seq, (kind, number, text) in enumerate(numbered):
        row = {"id": number, "part": "p", "a": None, "b": text, "c": None, "seq": seq}
        found.append((kind, row))
    return found


PRODUCERS = [INPUT, LOOKUP, FULL_COMPACTION, {**INPUT, **SEQUENCE}]


@pytest.mark.parametrize("options", PRODUCERS, ids=str)
def test_the_changelog_of_postponed_records(warehouse, options):
    table = table_of(warehouse, options, 1)
    first = records(("+I", 1, "a"), ("+I", 2, "a"), ("+U", 1, "b"))
    second = records(("-D", 2, "a"), ("+U", 1, "c"), ("+I", 3, "c"), ("-D", 4, "x"))
    found = []
    for batch in (first, second):
        table.java.append_records([(kind, table.typed([row])[0]) for kind, row in batch])
        result = compact(table.connector, table.catalog, SHOWING, name=NAME)
        assert result.error is None, result.error
        changes = changelog_from_java(warehouse.path, str(NAME), result.new_snapshot_id)
        kept = [(row["id"], at, kind, row["b"]) for at, (kind, row) in enumerate(changes)]
        found.append(sorted(kept))

    by_key = [[(number, kind, text) for number, _, kind, text in each] for each in found]
    if "input" in options.values():
        assert by_key == [
            [(1, "+I", "a"), (1, "+U", "b"), (2, "+I", "a")],
            [(1, "+U", "c"), (2, "-D", "a"), (3, "+I", "c"), (4, "-D", "x")],
        ]
    else:
        assert by_key == [
            [(1, "+I", "b"), (2, "+I", "a")],
            [(1, "-U", "b"), (1, "+U", "c"), (2, "-D", "a"), (3, "+I", "c")],
        ]
