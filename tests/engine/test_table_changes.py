"""Changes of tables: applied to the old rows they give the new ones, and each is told once."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engine.changed_tables import KINDS, ChangedTable, applied, random_statement

STATEMENTS = 9


@pytest.mark.slow
@pytest.mark.by_turns(7)
@pytest.mark.parametrize("kind", KINDS)
def test_random_histories(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    table, chance = ChangedTable(spark, tmp_path, kind), random.Random(kind)
    table.make()
    table.do("INSERT INTO db.t VALUES (1L, 'x', 0.0D, map('a', 1), 0), (2L, 'y', NULL, NULL, 1)")
    for number in range(STATEMENTS):
        table.do(random_statement(chance, number))
    ids = table.ids()
    states = {each: table.rows(each) for each in ids}
    single = {}
    for before, after in itertools.pairwise(ids):
        found = table.changes(before, after)
        assert applied(states[before], found) == states[after], (table.statements, before, after)
        assert {each.snapshot for each in found} <= {after}
        rows = [each.row for each in found if each.sign > 0]
        assert not {*rows} & {each.row for each in found if each.sign < 0}
        single[after] = found
    for start in range(0, len(ids) - 1, 3):
        before, after = ids[start], ids[-1]
        found = table.changes(before, after)
        each_once = [one for number in ids[start + 1 :] for one in single[number]]
        assert sorted(map(repr, found)) == sorted(map(repr, each_once))
        net = table.changes(before, after, net=True)
        assert applied(states[before], net) == states[after], (table.statements, before)
        assert {each.snapshot for each in net} <= {after}
        rows = [each.row for each in net if each.sign > 0]
        assert not {*rows} & {each.row for each in net if each.sign < 0}
    everything = table.changes(0, ids[-1])
    assert applied(states[ids[0]] - states[ids[0]], everything) == states[ids[-1]]
