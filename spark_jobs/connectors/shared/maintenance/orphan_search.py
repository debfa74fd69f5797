"""A search for orphan files with Spark, which never collects all files on the driver. Driver only.

It is an anti join of the stored files with the files that manifests name. Both are partitioned by
file name, so each task finds the orphans among its names on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F

from spark_jobs.connectors.shared.maintenance.orphan_tasks import (
    LISTED,
    NAMED,
    ORPHANS,
    FindOrphans,
    ListFiles,
    ListFolders,
    NamesOf,
    NeededNames,
    ReadManifests,
)
from spark_jobs.connectors.shared.maintenance.orphans import NAMED_FILES, Summary
from spark_jobs.spi.arrow_tasks import map_in_arrow

if TYPE_CHECKING:
    import pyarrow.fs as pafs
    from pyspark.sql import DataFrame, SparkSession

_TASKS_PER_CORE: Final = 4
# The number of stored files and manifest entries that one task compares.
_NAMES_PER_TASK: Final = 100_000
_MOST_TASKS: Final = 2_000

_TYPES: Final = {
    pa.string(): "string",
    pa.binary(): "binary",
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "bigint",
}


# A folder to list, and whether the folders in it, too.
Folder = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class InUse:
    """What is in use, for tasks: they read ``manifests`` by path, whose number is their place here.

    ``entries`` is about how many entries they have; ``metadata`` are the names of files in use that
    they do not name; ``names`` and ``needed`` run in tasks.
    """

    manifests: Sequence[str]
    entries: int
    metadata: frozenset[str]
    names: NamesOf
    needed: NeededNames


class SparkSearch:
    """Implements ``OrphanSearch``: tasks list folders, read manifests and compare names.

    ``folders`` splits the table's folders into about as many as it is told; ``files`` lists one of
    them, in a task; ``in_use`` tells what is in use now.
    """

    def __init__(
        self,
        spark: SparkSession,
        filesystem: pafs.FileSystem,
        folders: Callable[[int], Sequence[Folder]],
        files: ListFiles,
        in_use: Callable[[], InUse],
    ) -> None:
        self._spark = spark
        self._filesystem = filesystem
        self._folders = folders
        self._files = files
        self._in_use = in_use
        self._tasks = _TASKS_PER_CORE * spark.sparkContext.defaultParallelism

    def list_files(self, before: int) -> DataFrame:
        """The stored files; columns: ``LISTED``."""
        listed = self._rows(self._folders(self._tasks), "folder string, is_deep boolean")
        return _kept(map_in_arrow(listed, ListFolders(self._files, before), _ddl(LISTED)))

    def orphans(self, listed: DataFrame, before: int) -> SparkOrphans:
        """The listed files that were stored ``before`` and are not in use, compared by name."""
        used = self._in_use()
        unread = self._rows(list(enumerate(used.manifests)), "manifest int, path string")
        named = map_in_arrow(unread, ReadManifests(self._filesystem, used.names), _ddl(NAMED))
        decide = FindOrphans(used.needed, used.metadata, before)
        tasks = min(1 + (listed.count() + used.entries) // _NAMES_PER_TASK, _MOST_TASKS)
        rows = listed.unionByName(named, allowMissingColumns=True).repartition(tasks, "name")
        return SparkOrphans(_kept(map_in_arrow(rows, decide, _ddl(ORPHANS))))

    def _rows(self, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
        """A frame with the rows, spread over tasks."""
        frame = self._spark.createDataFrame(rows, schema)
        return frame.repartition(max(1, min(len(rows), self._tasks)))


@dataclass(frozen=True, slots=True)
class SparkOrphans:
    """Implements ``Orphans``; the columns of ``frame`` are ``ORPHANS``."""

    frame: DataFrame

    def summary(self) -> Summary:
        """The counts, the total size and the first paths."""
        kinds = self.frame.groupBy("kind").agg(F.count("*"), F.sum("size")).collect()
        first = self.frame.orderBy("path").limit(NAMED_FILES).select("path").collect()
        return Summary(
            {kind: count for kind, count, _ in kinds},
            sum(size for _, _, size in kinds),
            [path for (path,) in first],
        )

    def paths(self) -> Iterator[str]:
        """The paths of all orphans, fetched one partition at a time."""
        return (path for (path,) in self.frame.select("path").toLocalIterator())


def _kept(frame: DataFrame) -> DataFrame:
    """The rows as they are now: if a partition is lost, the job fails and does not recompute it."""
    return frame.localCheckpoint(eager=True)


def _ddl(schema: pa.Schema) -> str:
    """A schema in Spark's DDL form; PySpark 3.5's own conversion needs distutils."""
    return ", ".join(f"{field.name} {_TYPES[field.type]}" for field in schema)
