"""Running functions over Arrow batches on executors."""

from __future__ import annotations

import sys
import zipimport
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from spark_jobs.contract.access_rights import named_denials
from spark_jobs.errors import job_mark, marked_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    ArrowFunction = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

Part = TypeVar("Part")
Part_contra = TypeVar("Part_contra", contravariant=True)


class PartReader(Protocol[Part_contra]):
    """Reads the parts of one task, which are files or splits of files. Picklable."""

    def read(self, parts: Sequence[Part_contra]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ``parts``, one part after another."""
        ...


@dataclass(frozen=True, slots=True)
class ScanTasks(Generic[Part]):
    """A function for ``map_tasks`` that reads the parts of each of ``tasks``. Picklable."""

    reader: PartReader[Part]
    tasks: tuple[tuple[Part, ...], ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the tasks whose numbers are in the only column."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self.reader.read(self.tasks[number])


def map_tasks(
    spark: SparkSession, tasks: int, function: ArrowFunction, schema: StructType | str
) -> DataFrame:
    """Run ``function`` in ``tasks`` Spark tasks, each of which gets its number as the only row."""
    return map_in_arrow(spark.range(0, tasks, 1, max(tasks, 1)), function, schema)


def map_in_arrow(frame: DataFrame, function: ArrowFunction, schema: StructType | str) -> DataFrame:
    """Spark's ``mapInArrow``, with workers that read the directory of a Python archive only once.

    ``function`` is picklable. It turns the batches of a task into batches of ``schema``. Its
    ``JobError`` reaches the driver as a marker.
    """
    return frame.mapInArrow(ExecutorTask(function, job_mark()), schema)


@dataclass(frozen=True, slots=True)
class ExecutorTask:
    """Runs ``function``, then makes the worker forget its importers of zip archives.

    ``mark``: as in ``errors.marked_errors``.

    PySpark's worker calls ``importlib.invalidate_caches`` before each task. Up to Python 3.11,
    every importer of an archive then reads the archive's directory again. For ``pyspark.zip``,
    which has one importer per package, this takes 0.2 s per task. The next import recreates a
    forgotten importer from a directory that Python keeps in memory.
    """

    function: ArrowFunction
    mark: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run ``function`` on the batches of one task.

        Raises:
            RuntimeError: carries the marker of a ``JobError``.
        """
        try:
            # Here, because the user of an executor may be another than the driver's.
            with marked_errors(self.mark), named_denials():
                yield from self.function(batches)
        finally:
            _forget_archives()


def _forget_archives() -> None:
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimport.zipimporter):
            sys.path_importer_cache.pop(path, None)
