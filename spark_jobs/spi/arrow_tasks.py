"""How functions over Arrow batches run in executors."""

from __future__ import annotations

import sys
import zipimport
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    ArrowFunction = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_in_arrow(frame: DataFrame, function: ArrowFunction, schema: StructType | str) -> DataFrame:
    """Spark's ``mapInArrow``, in workers that read the directories of Python archives once.

    ``function`` is picklable; it makes batches of ``schema`` from the batches of a task.
    """
    return frame.mapInArrow(ArchivesReadOnce(function), schema)


@dataclass(frozen=True, slots=True)
class ArchivesReadOnce:
    """``function``, after which the worker forgets the importers of zip archives.

    PySpark's worker calls ``importlib.invalidate_caches`` before each task. Up to Python 3.11 every
    importer of an archive then reads the archive's directory again: 0.2 s a task for
    ``pyspark.zip``, which has an importer for each package in it. An importer that was forgotten is
    made again by the next import, from a directory that Python keeps in memory.
    """

    function: ArrowFunction

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What ``function`` yields for the batches of one task."""
        try:
            yield from self.function(batches)
        finally:
            _forget_archives()


def _forget_archives() -> None:
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimport.zipimporter):
            sys.path_importer_cache.pop(path, None)
