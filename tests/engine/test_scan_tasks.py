"""Parts of files in scan tasks: each part is read once, in its task, and errors keep their code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_jobs.engine.runtime.tasks import task_key
from spark_jobs.errors import CatalogError, ErrorCode, from_marker, job_mark
from spark_jobs.packing import filled, in_order, scan_tasks
from spark_jobs.spi.arrow_tasks import ExecutorTask, ScanTasks, map_tasks


@dataclass(frozen=True)
class Parts:
    """Yields the parts themselves, and the Spark task that they were read in."""

    def read(self, parts: Sequence[str]) -> Iterator[pa.RecordBatch]:
        keys = [task_key()] * len(parts)
        yield pa.RecordBatch.from_pydict({"part": list(parts), "task": keys})


@dataclass(frozen=True)
class Damaged:
    """Refuses every part."""

    def read(self, parts: Sequence[str]) -> Iterator[pa.RecordBatch]:
        raise CatalogError(ErrorCode.SOURCE_UNREADABLE, f"{parts[0]} is damaged", "Write it again.")
        yield


def numbers(*tasks: int) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pydict({"id": list(tasks)})]


@pytest.mark.slow
def test_each_task_reads_its_parts_in_one_spark_task(spark: SparkSession) -> None:
    tasks = (("a", "b"), ("c",), ("d", "e"))

    frame = map_tasks(spark, 3, ScanTasks(Parts(), tasks), "part string, task string")
    found = frame.collect()

    assert [row["part"] for row in found] == ["a", "b", "c", "d", "e"]
    by_part = {row["part"]: row["task"] for row in found}
    assert by_part["a"] == by_part["b"]
    assert by_part["d"] == by_part["e"]
    assert len(set(by_part.values())) == 3


@pytest.mark.slow
def test_no_task_reads_nothing(spark: SparkSession) -> None:
    frame = map_tasks(spark, 0, ScanTasks(Parts(), ()), "part string, task string")

    assert frame.collect() == []


def test_an_error_keeps_its_code() -> None:
    scan = ScanTasks(Damaged(), (("a",),))

    with pytest.raises(RuntimeError) as raised:
        list(ExecutorTask(scan, job_mark())(numbers(0)))

    error = from_marker(str(raised.value))
    assert error is not None
    assert (error.code, error.message) == (ErrorCode.SOURCE_UNREADABLE, "a is damaged")


def test_parts_in_order() -> None:
    assert in_order("abcdefg", 3) == (("a", "b"), ("c", "d"), ("e", "f", "g"))
    assert in_order("ab", 5) == (("a",), ("b",))
    assert in_order("", 5) == ()


def test_neighbours_fill_groups() -> None:
    assert filled([3, 4, 3, 1, 12, 1], lambda each: each, 10) == [[3, 4, 3], [1], [12], [1]]
    assert filled([], lambda each: each, 10) == []


def test_packed_tasks_have_all_files_and_none_is_empty() -> None:
    tasks = scan_tasks({3: 10, 5: 1, 8: 1, 9: 8}, 2)

    assert sorted(map(sorted, tasks)) == [[3], [5, 8, 9]]
    assert scan_tasks({3: 10}, 4) == [[3]]
