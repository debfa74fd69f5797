"""Which change rows meet in a sink task, and in which order."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.engine.runtime.session import fixed_settings
from spark_jobs.engine.write.redistribution import (
    SPREAD_SEED,
    WriteSize,
    keys_of_partitions,
    redistribute,
)
from spark_jobs.errors import DataError, ErrorCode, from_marker
from spark_jobs.packing import packed
from spark_jobs.spi import rows
from spark_jobs.spi.writes import DerivedColumns, RowOrder, SortKey, WriteLayout

pytestmark = pytest.mark.slow

_SCHEMA = (
    f"{rows.OPERATION} TINYINT, {rows.ROW_ID} STRUCT<file: INT, position: BIGINT>,"
    f" {SPREAD_SEED} BIGINT, p STRING"
)
_UPDATES = WriteLayout((f"{rows.ROW_ID}.file",), (f"{rows.ROW_ID}.file", f"{rows.ROW_ID}.position"))
_PACKED = replace(_UPDATES, file_ordinal=f"{rows.ROW_ID}.file")
_INSERTS = WriteLayout(("p",), ("p",))
_FILES, _ROWS_PER_FILE, _NEW = 12, 9, 90


def length_and_first(new_rows: pa.RecordBatch) -> list[pa.Array]:
    lengths = pc.utf8_length(new_rows.column("p"))
    return [lengths, pc.utf8_slice_codeunits(new_rows.column("p"), 0, 1)]


_DERIVED = WriteLayout(
    ("__merge_length",),
    ("__merge_length", "__merge_first"),
    derived=DerivedColumns(
        ("p",), (("__merge_length", "int"), ("__merge_first", "string")), length_and_first
    ),
)


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
    sizes = dict.fromkeys(range(_FILES), 10**5)
    return WriteSize(sizes, _NEW, 100, target_file_size, parallelism)


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


@pytest.mark.parametrize("layout", [_UPDATES, _PACKED], ids=["hashed", "packed"])
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_changes_of_a_file_meet_in_one_task(
    spark: SparkSession, adaptive: str, layout: WriteLayout
) -> None:
    with fixed_settings(spark, {"spark.sql.adaptive.enabled": adaptive}):
        tasks = by_task(redistribute(changes(spark), layout, _INSERTS, size()))

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


def test_derived_columns_decide_where_new_rows_go(spark: SparkSession) -> None:
    texts = [None, "", "b", "a", "bb", "aa", "zz"]
    new = [(rows.INSERT, None, n, texts[n % len(texts)]) for n in range(70)]
    old = [(rows.DELETE, (n % _FILES, n), 0, "not looked at") for n in range(100)]
    frame = spark.createDataFrame([*new, *old], _SCHEMA).repartition(7, F.rand(1))

    tasks = by_task(redistribute(frame, _PACKED, _DERIVED, size()))

    by_length = tasks_of(tasks, inserts=True, key=lambda row: row["__merge_length"])
    assert by_length.keys() == {None, 0, 1, 2}
    assert all(len(found) == 1 for found in by_length.values())
    for of_task in tasks.values():
        found = [row for row in of_task if row[rows.OPERATION] == rows.INSERT]
        for row in found:
            text = row["p"]
            wanted = (None, None) if text is None else (len(text), text[:1])
            assert (row["__merge_length"], row["__merge_first"]) == wanted
        order = [(row["__merge_length"] or 0, row["__merge_first"] or "") for row in found]
        assert order == sorted(order)
        others = [row for row in of_task if row[rows.OPERATION] != rows.INSERT]
        assert {(row["p"], row["__merge_length"], row["__merge_first"]) for row in others} <= {
            ("not looked at", None, None)
        }
    assert sum(map(len, tasks.values())) == 170


def test_new_rows_of_a_place_are_in_their_row_order(spark: SparkSession) -> None:
    order = RowOrder((SortKey("__merge_length", False, False), SortKey("p")), _DERIVED.derived)
    texts = ["", "a", "bb", None, "aa", "b"]
    new = [(rows.INSERT, None, n, text) for n, text in enumerate(texts * 4)]
    old = [(rows.UPDATE, (n % 2, n), 0, "any") for n in range(20)]
    frame = spark.createDataFrame([*new, *old], _SCHEMA).repartition(7, F.rand(1))
    layout = WriteLayout((), (), row_order=order)

    tasks = by_task(redistribute(frame, _PACKED, layout, size()))

    by_place = (
        [row["p"] for row in each if row[rows.OPERATION] == rows.INSERT] for each in tasks.values()
    )
    (found,) = filter(None, by_place)
    assert found == [each for text in ("aa", "bb", "a", "b", "", None) for each in [text] * 4]
    assert len(tasks_of(tasks, inserts=False, key=lambda row: row[rows.ROW_ID]["position"])) == 20


def test_an_error_while_deriving_is_the_job_s_error(spark: SparkSession) -> None:
    derived = replace(_DERIVED.derived, function=_no_place)
    layout = replace(_DERIVED, derived=derived)

    with pytest.raises(PythonException) as raised:
        redistribute(changes(spark), _UPDATES, layout, size()).collect()

    assert from_marker(str(raised.value)).message == "no place for a row"


def _no_place(_: pa.RecordBatch) -> list[pa.Array]:
    raise DataError(ErrorCode.VALUE_NOT_STORABLE, "no place for a row", "Leave it out.")


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
    sizes = dict.fromkeys(range(files), file_bytes // max(files, 1))
    assert WriteSize(sizes, new_rows, 100, 2**20, 4).sink_tasks == tasks


def test_files_share_tasks_by_their_sizes(spark: SparkSession) -> None:
    sizes = {file: 1000 if file == 3 else 100 for file in range(_FILES)}
    wanted = replace(size(), file_sizes=sizes)

    tasks = by_task(redistribute(changes(spark), _PACKED, _INSERTS, wanted))

    by_file = tasks_of(tasks, inserts=False, key=lambda row: row[rows.ROW_ID]["file"])
    files = defaultdict(set)
    for file, (task,) in by_file.items():
        files[task].add(file)
    assert sorted(map(len, files.values())) == [1, 3, 4, 4]
    assert {3} in files.values()


def test_a_task_for_every_file_that_is_left_after_pruning() -> None:
    assert packed({7: 10, 900: 10, 4: 10}, 3) == {4: 0, 7: 1, 900: 2}
    assert packed({0: 5, 1: 3, 2: 3, 3: 2}, 2) == {0: 0, 1: 1, 2: 1, 3: 0}


@pytest.mark.parametrize("partitions", [1, 2, 7, 64])
def test_keys_land_on_their_partitions(spark: SparkSession, partitions: int) -> None:
    keys = keys_of_partitions(partitions)
    frame = spark.createDataFrame([(key,) for key in keys], "key INT")

    placed = frame.repartition(partitions, "key").withColumn("at", F.spark_partition_id())

    assert {row["key"]: row["at"] for row in placed.collect()} == {k: i for i, k in enumerate(keys)}
