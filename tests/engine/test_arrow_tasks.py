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

_SEEN = "pid bigint, archives bigint"


def archives_known(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many importers of archives the worker has when a task begins."""
    import sys
    import zipimport

    list(batches)
    known = sum(isinstance(x, zipimport.zipimporter) for x in sys.path_importer_cache.values())
    yield pa.RecordBatch.from_pydict({"pid": [os.getpid()], "archives": [known]})


def value_of_archive(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a module says that the worker imports from an archive."""
    import importlib

    list(batches)
    yield pa.RecordBatch.from_pydict({"value": [importlib.import_module("zipped_part").VALUE]})


def test_archives_are_read_for_a_workers_first_task_only(spark: SparkSession) -> None:
    def seen() -> dict[int, int]:
        rows = map_in_arrow(spark.range(0, 1, 1, 1), archives_known, _SEEN).collect()
        return {row["pid"]: row["archives"] for row in rows}

    tasks = [seen() for _ in range(4)]

    again = [
        found for number, found in enumerate(tasks) if any(found.keys() & t for t in tasks[:number])
    ]
    assert again, f"no worker ran two tasks: {tasks}"
    assert [list(found.values()) for found in again] == [[0]] * len(again)


def test_a_worker_still_imports_from_archives(spark: SparkSession, tmp_path: Path) -> None:
    archive = tmp_path / "zipped_part.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("zipped_part.py", "VALUE = 7\n")
    map_in_arrow(spark.range(2), archives_known, _SEEN).collect()
    spark.sparkContext.addPyFile(str(archive))

    rows = map_in_arrow(spark.range(2), value_of_archive, "value bigint").collect()

    assert {row["value"] for row in rows} == {7}


def test_a_failed_task_leaves_its_error(spark: SparkSession) -> None:
    def fails(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        list(batches)
        raise ValueError("nothing is right here")
        yield

    with pytest.raises(Exception, match="nothing is right here"):
        map_in_arrow(spark.range(1), fails, "value bigint").collect()
