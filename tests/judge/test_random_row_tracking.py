"""Random histories of tables that track rows: Java has the rows and the ids of the model.

``MERGE_TRACKED_TABLES`` sets the number of tables, ``MERGE_TRACKED_TABLES_SEED`` the first seed.
The statements of this project run in this process, without Spark.
"""

from __future__ import annotations

import os
import random

import pytest

from spark_jobs.spi.rows import UPDATE
from tests.judge.judge import read_with_java
from tests.judge.tracked_table import TrackedTable
from tests.judge.watched_table import NAME, Kind
from tests.support.paimon_tables import change_rows, merge

COUNT = int(os.environ.get("MERGE_TRACKED_TABLES", "4"))
FIRST = int(os.environ.get("MERGE_TRACKED_TABLES_SEED", "1"))
STEPS = 9
VECTORS = {"deletion-vectors.enabled": "true"}


def kind_of(seed, rng):
    options = {"row-tracking.enabled": "true", **(VECTORS if seed % 2 else {})}
    # Java cannot read the ids of Avro files.
    options["file.format"] = rng.choice(("parquet", "parquet", "orc"))
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


def test_rows_of_avro_files_keep_their_ids(warehouse):
    """Java reads them again once the files are replaced."""
    options = {"row-tracking.enabled": "true", "file.format": "avro"}
    table = TrackedTable(warehouse, Kind(options, has_key=False, partitioned=False), None)
    rows = [{"id": n, "part": "p", "a": n, "b": "x", "c": None, "seq": n} for n in range(4)]
    table.java.append_rows(table.typed(rows))
    connector = table.connector
    handle = connector.metadata.load_table(NAME)
    update = change_rows(handle, UPDATE, [{"file": 0, "position": 2, "a": 7}])
    merge(connector, handle, update, assigned=(("a",),))

    found = read_with_java(warehouse.path, str(NAME), tracked=True)

    seen = {row["id"]: (row["a"], row["_ROW_ID"], row["_SEQUENCE_NUMBER"]) for row in found}
    assert seen == {0: (0, 0, 1), 1: (1, 1, 1), 2: (7, 2, 2), 3: (3, 3, 1)}


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_random_histories(warehouse, seed):
    rng = random.Random(seed)
    history(TrackedTable(warehouse, kind_of(seed, rng), rng))
