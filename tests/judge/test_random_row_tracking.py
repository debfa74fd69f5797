"""Random histories of tables that track rows: rows and ids are those of the model, as Java has them.

``MERGE_TRACKED_TABLES`` sets the number of tables, ``MERGE_TRACKED_TABLES_SEED`` the first seed.
The statements of this project run in this process, without Spark.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.judge.tracked_table import TrackedTable
from tests.judge.watched_table import Kind

COUNT = int(os.environ.get("MERGE_TRACKED_TABLES", "4"))
FIRST = int(os.environ.get("MERGE_TRACKED_TABLES_SEED", "1"))
STEPS = 9
VECTORS = {"deletion-vectors.enabled": "true"}


def kind_of(seed, rng):
    options = {"row-tracking.enabled": "true", **(VECTORS if seed % 2 else {})}
    options["file.format"] = rng.choice(("parquet", "parquet", "orc", "avro"))
    options["compaction.min.file-num"] = rng.choice(("2", "3", "5"))
    return Kind(options, has_key=False, partitioned=rng.random() < 0.6)


def history(table):
    rng, marks = table.rng, 0
    table.append(12)
    steps = [table.merge] * 6 + [table.compact] * 3 + [lambda: table.append(5)] * 2
    steps += [lambda: table.compact_by_java(full=True), table.insert, table.overwrite, table.alter]
    steps += [lambda: table.expire(by_java=rng.random() < 0.3)]
    if "deletion-vectors.enabled" in table.kind.options:
        steps += [table.delete_by_java]
    for _ in range(STEPS):
        rng.choice(steps)()
        if rng.random() < 0.2:
            marks += 1
            rng.choice((table.tag, table.branch))(f"m{marks}")
    table.check_kept()
    table.append(4)
    table.compact_by_java(full=True)
    table.merge()


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_random_histories(warehouse, seed):
    rng = random.Random(seed)
    history(TrackedTable(warehouse, kind_of(seed, rng), rng))
