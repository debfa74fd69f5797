"""What a Python worker of Spark does between two tasks."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_jobs.spi.arrow_tasks import map_in_arrow

_SEEN = "pid bigint, before bigint, after bigint, value bigint"


def import_from_archive(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A module's value, and the importers of archives that the worker has before and after it."""
    import importlib
    import sys
    import zipimport

    def archives() -> int:
        importers = sys.path_importer_cache.values()
        return sum(isinstance(each, zipimport.zipimporter) for each in importers)

    list(batches)
    before = archives()
    sys.modules.pop("zipped_part", None)
    value = importlib.import_module("zipped_part").VALUE
    seen = {"pid": os.getpid(), "before": before, "after": archives(), "value": value}
    yield pa.RecordBatch.from_pylist([seen])


def test_a_worker_forgets_the_archives_from_which_it_imported(
    spark: SparkSession, tmp_path: Path
) -> None:
    archive = tmp_path / "zipped_part.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("zipped_part.py", "VALUE = 7\n")
    spark.sparkContext.addPyFile(str(archive))

    frame = map_in_arrow(spark.range(0, 1, 1, 1), import_from_archive, _SEEN)
    # Spark takes the worker that has been idle for longest, of those of all earlier tests.
    tasks = [frame.collect()[0] for _ in range(16)]

    assert {task["value"] for task in tasks} == {7}
    assert min(task["after"] for task in tasks) >= 1
    again = [task for n, task in enumerate(tasks) if task["pid"] in [t["pid"] for t in tasks[:n]]]
    assert again, f"no worker ran two tasks: {tasks}"
    assert {task["before"] for task in again} == {0}


def test_what_the_daemon_imported_is_no_garbage_to_look_for(spark: SparkSession) -> None:
    def counts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import gc

        list(batches)
        counted = {"frozen": gc.get_freeze_count(), "tracked": len(gc.get_objects())}
        yield pa.RecordBatch.from_pylist([counted])

    frame = map_in_arrow(spark.range(0, 1, 1, 1), counts, "frozen bigint, tracked bigint")
    found = frame.collect()[0]

    assert found["frozen"] > found["tracked"] > 0


def test_a_failed_task_leaves_its_error(spark: SparkSession) -> None:
    def fails(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        list(batches)
        raise ValueError("nothing is right here")
        yield

    with pytest.raises(Exception, match="nothing is right here"):
        map_in_arrow(spark.range(1), fails, "value bigint").collect()
