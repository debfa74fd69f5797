"""Random compactions, by this project and by Java, between merges, commits of Java and expiry.

After every step the model, this project, Java and pypaimon have the same rows, the checker finds
nothing, and streams read what happened. Tags and branches keep their rows. ``MERGE_COMPACTIONS``
sets the number of tables, ``MERGE_COMPACTIONS_SEED`` the first seed. The statements of this project
run in this process; every tenth table is compacted by Spark tasks.
"""

from __future__ import annotations

import os
import random
import uuid

import pytest

from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import JobRequest
from spark_jobs.run import run
from tests.judge.compacted_table import NAME, CompactedTable, Kind
from tests.judge.keyed_kinds import KINDS, VECTORS

COUNT = int(os.environ.get("MERGE_COMPACTIONS", "4"))
FIRST = int(os.environ.get("MERGE_COMPACTIONS_SEED", "1"))
STEPS = 7
_SPARK = 10

BUCKETS = {"bucket": "2", "bucket-key": "id"}
APPEND_KINDS = ({}, VECTORS, BUCKETS, {**BUCKETS, **VECTORS})


def kind_of(seed, rng):
    """Append tables and those with a key take turns."""
    formats = {"file.format": rng.choice(("parquet", "parquet", "orc", "avro"))}
    partitioned = rng.random() < 0.5
    number = seed // 2
    if seed % 2:
        options = {**APPEND_KINDS[number % len(APPEND_KINDS)], **formats}
        options["compaction.min.file-num"] = rng.choice(("2", "3", "5"))
        if rng.random() < 0.3:
            options["target-file-size"] = "4 kb"
        if rng.random() < 0.2:
            options["file-index.bloom-filter.columns"] = "id"
        return Kind(options, has_key=False, partitioned=partitioned)
    options = {**KINDS[number % len(KINDS)], **formats}
    options["bucket"] = rng.choice(("1", "2", "-1"))
    if options["bucket"] == "-1":
        options["dynamic-bucket.target-row-num"] = rng.choice(("6", "13", "1000"))
    options["num-sorted-run.compaction-trigger"] = rng.choice(("2", "3", "5"))
    if rng.random() < 0.5:
        options["write-only"] = "true"
    id_type = rng.choice(("BIGINT", "BIGINT", "STRING", "DECIMAL(22, 3)"))
    return Kind(options, has_key=True, partitioned=partitioned, id_type=id_type)


def history(table):
    """Random steps, and at the end Java writes and compacts."""
    rng, marks = table.rng, 0
    table.append(12)
    steps = [table.merge] * 3 + [table.compact] * 4 + [lambda: table.append(5)] * 3
    steps += [lambda: table.compact_by_java(full=rng.random() < 0.5)]
    steps += [lambda: table.expire(by_java=rng.random() < 0.3), table.alter]
    if not table.kind.has_key and "deletion-vectors.enabled" in table.kind.options:
        steps += [table.delete_by_java]
    for _ in range(STEPS):
        rng.choice(steps)()
        if rng.random() < 0.2:
            marks += 1
            rng.choice((table.tag, table.tag, table.branch))(f"m{marks}")
    table.check_kept()
    table.compact(CompactSpec(mode="full", include_pending=True))
    table.append(4)
    table.compact_by_java(full=True)
    table.check_kept()


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_random_compactions(warehouse, request, seed):
    rng = random.Random(seed)
    table = CompactedTable(warehouse, kind_of(seed, rng), rng)
    if seed % _SPARK == 0:
        table.run = jobs_of(request.getfixturevalue("spark"), table)
    history(table)


def jobs_of(spark, table):
    """Runs compactions as jobs with Spark tasks."""

    def job(spec):
        request = JobRequest(f"compaction-{uuid.uuid4().hex}", NAME, table.catalog, spec)
        return run(request, spark)

    return job
