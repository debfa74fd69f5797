"""Removing files in a table's folders to which no metadata refers. Driver only.

The files are listed first, and then is read which are in use: so a commit in between is not missed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final, Protocol, TypeVar

from spark_jobs.connectors.shared.maintenance.stored_files import (
    StoredFile,
    microseconds,
    orphans_among,
)
from spark_jobs.contract.durations import parse_limit
from spark_jobs.contract.maintenance import MaintenanceReport, RemoveOrphanFilesSpec
from spark_jobs.errors import ErrorCode, RequestError
from spark_jobs.spi.writes import always_wanted
from spark_jobs.storage.removal import FileRemover

# The number of orphans that a report names.
NAMED_FILES: Final = 1000
# The number of files that are removed at a time, of which the driver never holds more.
_PART: Final = 10_000

L = TypeVar("L")


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
