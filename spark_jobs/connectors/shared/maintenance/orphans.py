"""Removing files to which no metadata refers, found on the driver or with Spark. Driver only.

The files are listed first, and then is read which are in use: so a commit in between is not missed.

With Spark, it is an anti join of the stored files with the files that manifests name. Both are
partitioned by file name, so each task finds the orphans among its names on its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

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
    StoredFile,
    microseconds,
    orphans_among,
)
from spark_jobs.contract.durations import parse_limit
from spark_jobs.contract.maintenance import MaintenanceReport, RemoveOrphanFilesSpec
from spark_jobs.errors import ErrorCode, RequestError
from spark_jobs.spi.arrow_tasks import map_in_arrow
from spark_jobs.spi.writes import always_wanted
from spark_jobs.storage.removal import FileRemover

if TYPE_CHECKING:
    import pyarrow.fs as pafs
    from pyspark.sql import DataFrame, SparkSession


# The number of orphans that a report names.
NAMED_FILES: Final = 1000
# The number of files that are removed at a time, of which the driver never holds more.
_PART: Final = 10_000

L = TypeVar("L")
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
class Summary:
    """The ``counts`` by kind, the ``size`` in bytes, and the ``first`` paths, for a report."""

    counts: Mapping[str, int]
    size: int
    first: Sequence[str]


class Orphans(Protocol):
    """The orphan files that a search found."""

    def summary(self) -> Summary:
        """The counts, the total size and the first paths in ascending order."""
        ...

    def paths(self) -> Iterator[str]:
        """The paths of all orphans, in any order."""
        ...


class OrphanSearch(Protocol[L]):
    """The part of the work that grows with the number of files; ``L`` is a list of files."""

    def list_files(self, before: int) -> L:
        """The files that can be orphans and were stored ``before`` (in microseconds)."""
        ...

    def orphans(self, listed: L, before: int) -> Orphans:
        """The listed files that were stored ``before`` and that nothing needs now.

        Raises:
            CatalogError: METADATA_UNREADABLE: some metadata of files in use cannot be read.
        """
        ...


def remove(
    search: OrphanSearch[L],
    remover: FileRemover,
    limit: datetime,
    operations_since: Callable[[], Iterable[datetime]],
    require_wanted: Callable[[], None] = always_wanted,
    *,
    dry_run: bool,
) -> Summary:
    """Remove orphan files that are older than ``limit`` and than any running operation.

    ``operations_since`` tells when the operations at work began; ``require_wanted`` is called
    before each removal.

    Raises:
        CatalogError: METADATA_UNREADABLE: some metadata of files in use cannot be read.
        InternalError: STORAGE_UNAVAILABLE.
    """
    listed = search.list_files(microseconds(limit))
    before = microseconds(min([limit, *operations_since()]))
    orphans = search.orphans(listed, before)
    summary = orphans.summary()
    if not dry_run:
        paths = orphans.paths()
        while part := list(islice(paths, _PART)):
            require_wanted()
            remover.remove(part)
    return summary


def report(summary: Summary, folder: str, latest_snapshot_id: int | None) -> MaintenanceReport:
    """The report on removed files; it names them relative to the table's ``folder``."""
    return MaintenanceReport(
        data_files=summary.counts.get("data", 0),
        index_files=summary.counts.get("index", 0),
        manifests=summary.counts.get("manifest", 0),
        bytes_removed=summary.size,
        earliest_snapshot_id=None,
        latest_snapshot_id=latest_snapshot_id,
        files=tuple(path.removeprefix(f"{folder}/") for path in summary.first),
    )


def safe_limit(spec: RemoveOrphanFilesSpec, now: datetime) -> datetime:
    """The time before which orphans were stored; in the past, as others may be writing now.

    Raises:
        RequestError: REQUEST_INVALID: it is not in the past.
    """
    limit = parse_limit(spec.older_than, now)
    if limit >= now:
        raise RequestError(
            ErrorCode.REQUEST_INVALID,
            f"older_than: {spec.older_than} is not before now: files that others are writing "
            "would go.",
            "Give more than the longest write takes, such as 1 d.",
        )
    return limit


@dataclass(frozen=True, slots=True)
class DriverSearch:
    """Implements ``OrphanSearch`` without Spark: the driver lists and reads everything.

    ``stored`` lists the files that can be orphans, ``needed`` tells the names of those in use.
    """

    stored: Callable[[], Iterable[StoredFile]]
    needed: Callable[[], set[str]]

    def list_files(self, before: int) -> list[StoredFile]:
        """The stored files in the table's folders."""
        return [each for each in self.stored() if each.stored < before]

    def orphans(self, listed: Sequence[StoredFile], before: int) -> DriverOrphans:
        """The listed files that were stored ``before`` and are not in use, compared by name."""
        return DriverOrphans(orphans_among(listed, self.needed(), before))


@dataclass(frozen=True, slots=True)
class DriverOrphans:
    """Implements ``Orphans``."""

    files: Sequence[StoredFile]

    def summary(self) -> Summary:
        """The counts, the total size and the first paths."""
        counts = Counter[str](each.kind for each in self.files)
        first = sorted(self.paths())[:NAMED_FILES]
        return Summary(counts, sum(each.size for each in self.files), first)

    def paths(self) -> Iterator[str]:
        """The paths of all orphans."""
        return (each.path for each in self.files)


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
