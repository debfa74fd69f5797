"""Scans with pyarrow: which tasks read which files, and rows that came or went.

The driver imports this module, and so do executors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from spark_jobs.datafiles.file_changes import Positions
from spark_jobs.datafiles.key_probe import KeyProbe
from spark_jobs.packing import scan_tasks
from spark_jobs.spi.arrow_rows import ArrowRows
from spark_jobs.spi.arrow_tasks import PartReader, ScanTasks
from spark_jobs.spi.tables import PlannedFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Part = TypeVar("Part")

TASKS_PER_CORE: Final = 2
_BYTES_PER_TASK: Final = 2**30


def arrow_rows(
    spark: SparkSession | None,
    files: Sequence[PlannedFile],
    reader: PartReader[Part],
    parts: Mapping[int, Part],
    tasks_per_core: int = TASKS_PER_CORE,
) -> ArrowRows:
    """What ``reader`` reads of ``files``; ``parts`` are by ordinal. Much data gets more tasks."""
    sizes = {each.ordinal: each.size for each in files}
    tasks = 1 if spark is None else tasks_per_core * spark.sparkContext.defaultParallelism
    packed = scan_tasks(sizes, max(tasks, sum(sizes.values()) // _BYTES_PER_TASK))
    scan = ScanTasks(reader, tuple(tuple(parts[each] for each in task) for task in packed))
    return ArrowRows(scan, tuple(map(tuple, packed)))


class _File(Protocol):
    """A data file; ``row_count`` counts deleted rows, too."""

    @property
    def row_count(self) -> int | None: ...


F = TypeVar("F", bound=_File)
F_contra = TypeVar("F_contra", bound=_File, contravariant=True)


class FileRows(Protocol[F_contra]):
    """Reads single files in a task."""

    def deleted_rows(self) -> Callable[[F_contra], Positions]:
        """What finds the deleted rows of the files of a task."""
        ...

    def rows(
        self, file: F_contra, deleted: Positions, probes: Mapping[str, KeyProbe]
    ) -> Iterator[pa.RecordBatch]:
        """The columns and the row ids of a file, without the rows at ``deleted``."""
        ...


class ChangedPart(NamedTuple, Generic[F]):
    """A file; ``before``, with other deletes: only rows that these do not delete, but its do."""

    file: F
    before: F | None = None


@dataclass(frozen=True, slots=True)
class ChangedScan(Generic[F]):
    """Implements ``PartReader`` for rows that came or went. Picklable."""

    scan: FileRows[F]

    def read(self, parts: Sequence[ChangedPart[F]]) -> Iterator[pa.RecordBatch]:
        """Read the files of one task; yields as ``scan`` does."""
        deleted_rows = self.scan.deleted_rows()
        for part in parts:
            left_out = deleted_rows(part.file)
            if part.before is not None:
                before = deleted_rows(part.before)
                chosen = np.setdiff1d(left_out, before, assume_unique=True)
                if not len(chosen):
                    continue
                assert part.file.row_count is not None  # noqa: S101 - manifests tell it
                is_left_out = np.ones(part.file.row_count, dtype=bool)
                is_left_out[chosen] = False
                left_out = np.flatnonzero(is_left_out)
            yield from self.scan.rows(part.file, left_out, {})
