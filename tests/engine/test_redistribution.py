"""Which change rows meet in a sink task, and in which order."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.engine.cases import SPREAD_SEED
from spark_jobs.engine.redistribution import WriteSize, redistribute
from spark_jobs.engine.session import fixed_settings
from spark_jobs.spi import rows
from spark_jobs.spi.writes import WriteLayout

_SCHEMA = (
    f"{rows.OPERATION} TINYINT, {rows.ROW_ID} STRUCT<file: INT, position: BIGINT>,"
    f" {SPREAD_SEED} BIGINT, p STRING"
)
_UPDATES = WriteLayout((f"{rows.ROW_ID}.file",), (f"{rows.ROW_ID}.file", f"{rows.ROW_ID}.position"))
_INSERTS = WriteLayout(("p",), ("p",))
_FILES, _ROWS_PER_FILE, _NEW = 12, 9, 90


def changes(spark: SparkSession) -> DataFrame:
    """Updates and deletes of twelve files, and new rows of two partitions, in no order."""
    old = [
        (rows.UPDATE if n % 2 else rows.DELETE, (file, n), 0, "x")
        for file in range(_FILES)
        for n in range(_ROWS_PER_FILE)
    ]
    new = [(rows.INSERT, None, n, None if n < 10 else "new") for n in range(_NEW)]
    return spark.createDataFrame([*old, *new], _SCHEMA).repartition(7, F.rand(1))


def size(*, target_file_size: int = 10**9, parallelism: int = 2) -> WriteSize:
    return WriteSize(_FILES, 10**6, _NEW, 100, target_file_size, parallelism)


def by_task(frame: DataFrame) -> dict[int, list[Any]]:
    tasks: dict[int, list[Any]] = defaultdict(list)
    for row in frame.withColumn("task", F.spark_partition_id()).collect():
        tasks[row["task"]].append(row)
    return tasks


def tasks_of(tasks: dict[int, list[Any]], *, inserts: bool, key: Any) -> dict[Any, set[int]]:
    found = defaultdict(set)
    for task, of_task in tasks.items():
        for row in of_task:
            if (row[rows.OPERATION] == rows.INSERT) is inserts:
                found[key(row)].add(task)
    return found


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_changes_of_a_file_meet_in_one_task(spark: SparkSession, adaptive: str) -> None:
    with fixed_settings(spark, {"spark.sql.adaptive.enabled": adaptive}):
        tasks = by_task(redistribute(changes(spark), _UPDATES, _INSERTS, size()))

    files = tasks_of(tasks, inserts=False, key=lambda row: row[rows.ROW_ID]["file"])
    partitions = tasks_of(tasks, inserts=True, key=lambda row: row["p"])
    assert len(files) == _FILES
    assert all(len(found) == 1 for found in [*files.values(), *partitions.values()])
    assert sum(map(len, tasks.values())) == _FILES * _ROWS_PER_FILE + _NEW
    assert 1 < len(tasks) <= size().sink_tasks


def test_a_task_sees_changes_in_file_order_then_new_rows_by_partition(spark: SparkSession) -> None:
    tasks = by_task(redistribute(changes(spark), _UPDATES, _INSERTS, size()))

    for of_task in tasks.values():
        is_insert = [row[rows.OPERATION] == rows.INSERT for row in of_task]
        assert is_insert == sorted(is_insert)
        places = [tuple(row[rows.ROW_ID]) for row in of_task if row[rows.ROW_ID] is not None]
        assert places == sorted(places)
        partitions = [row["p"] or "" for row in of_task if row[rows.OPERATION] == rows.INSERT]
        assert partitions == sorted(partitions)


def test_new_rows_beyond_the_target_size_spread_over_tasks(spark: SparkSession) -> None:
    # 80 rows of 100 bytes in "new" fill 8 files, the ten of the NULL partition one.
    wanted = size(target_file_size=1000, parallelism=8)

    tasks = by_task(redistribute(changes(spark), _UPDATES, _INSERTS, wanted))

    partitions = tasks_of(tasks, inserts=True, key=lambda row: row["p"])
    assert 3 <= len(partitions["new"]) <= 8
    assert len(partitions[None]) == 1
    files = tasks_of(tasks, inserts=False, key=lambda row: row[rows.ROW_ID]["file"])
    assert all(len(found) == 1 for found in files.values())


def test_new_rows_of_a_table_without_partitions_spread_too(spark: SparkSession) -> None:
    wanted = size(target_file_size=1000, parallelism=8)

    tasks = by_task(redistribute(changes(spark), _UPDATES, WriteLayout((), ()), wanted))

    assert 4 <= len(tasks_of(tasks, inserts=True, key=lambda _: "all")["all"]) <= 9


def test_only_what_the_sink_needs_arrives(spark: SparkSession) -> None:
    arrived = redistribute(changes(spark), _UPDATES, _INSERTS, size())

    assert arrived.columns == [rows.OPERATION, rows.ROW_ID, "p"]


@pytest.mark.parametrize(
    ("files", "file_bytes", "new_rows", "tasks"),
    [
        (1, 10, 0, 2),  # never more than files and new files
        (100, 10, 0, 8),  # twice the cores
        (100, 50 * 2**30, 0, 50),  # at most 1 GiB of files in a task
        (0, 0, 10**6, 96),  # one for each new file of the target size
    ],
)
def test_number_of_sink_tasks(files: int, file_bytes: int, new_rows: int, tasks: int) -> None:
    assert WriteSize(files, file_bytes, new_rows, 100, 2**20, 4).sink_tasks == tasks
