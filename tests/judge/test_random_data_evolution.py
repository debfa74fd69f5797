"""Random histories of tables with data evolution: everybody has the model's rows and ids.

``MERGE_EVOLVED_TABLES`` sets the number of tables, ``MERGE_EVOLVED_TABLES_SEED`` the first seed.
The statements of this project run in this process, without Spark.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.judge.evolved_table import EvolvedTable
from tests.judge.watched_table import Kind

COUNT = int(os.environ.get("MERGE_EVOLVED_TABLES", "4"))
FIRST = int(os.environ.get("MERGE_EVOLVED_TABLES_SEED", "1"))
STEPS = 10
OPTIONS = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}


def history(table):
    """The number of statements that were checked."""
    rng, marks = table.rng, 0
    table.append(12)
    steps = [table.merge] * 8 + [lambda: table.append(5)] * 2 + [table.insert, table.overwrite]
    if not table.marks_rows:
        steps += [lambda: table.compact_by_java(full=True), table.alter]
        steps += [lambda: table.expire(by_java=rng.random() < 0.3)]
        if not table.kind.partitioned:
            steps += [table.write_columns_by_java] * 2
    for _ in range(STEPS):
        rng.choice(steps)()
        if not table.marks_rows and rng.random() < 0.2:
            marks += 1
            rng.choice((table.tag, table.branch))(f"m{marks}")
    if not table.marks_rows:
        table.check_kept()
        table.compact_by_java(full=True)
    table.append(4)
    table.merge()
    return table.statements


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_random_histories(warehouse, seed):
    rng = random.Random(seed)
    options = {**OPTIONS, "file.format": rng.choice(("parquet", "parquet", "orc"))}
    kind = Kind(options, has_key=False, partitioned=rng.random() < 0.5)
    assert history(EvolvedTable(warehouse, kind, rng, marks_rows=seed % 4 == 0)) > 0
