"""Files in a table's directory that nothing knows. Driver only.

After Paimon's ``OrphanFilesClean``: files are listed first and what is in use is read afterwards,
so a file that is committed in between is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final, Protocol, TypeVar

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.maintenance.removal_plan import RemovalPlanner
from spark_jobs.connectors.paimon.maintenance.stored_files import (
    StoredFile,
    microseconds,
    orphans_among,
    stored_files,
)
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.contract.maintenance import MaintenanceReport
from spark_jobs.storage.warehouse import Warehouse

# Of orphans, in a report.
NAMED_FILES: Final = 1000
# Removed at a time: as much of the list as the driver ever holds.
_PART: Final = 10_000

L = TypeVar("L")


@dataclass(frozen=True, slots=True)
class Summary:
    """``counts`` are by kind, ``size`` is in bytes, ``first`` the paths that a report names."""

    counts: Mapping[str, int]
    size: int
    first: Sequence[str]


class Orphans(Protocol):
    """What a search found."""

    def summary(self) -> Summary:
        """How many there are, and the first of them by path."""
        ...

    def paths(self) -> Iterator[str]:
        """All of them, in any order."""
        ...


class OrphanSearch(Protocol[L]):
    """Where the work is done that grows with a table's files; ``L`` is a list of them."""

    def list_files(self, before: int) -> L:
        """The files that are stored now, and were before a moment, and can be orphans."""
        ...

    def orphans(self, listed: L, planner: RemovalPlanner, before: int) -> Orphans:
        """Those that were stored before a moment, and that nothing needs now.

        Raises:
            CatalogError: METADATA_UNREADABLE: not everything that is in use can be read.
        """
        ...


def remove(
    table: PinnedTable,
    storage: Warehouse,
    search: OrphanSearch[L],
    limit: datetime,
    now: datetime,
    *,
    dry_run: bool,
) -> MaintenanceReport:
    """Remove files stored before ``limit``, and before any operation that is at work began.

    Raises:
        CatalogError: METADATA_UNREADABLE: not everything that is in use can be read.
        InternalError: STORAGE_UNAVAILABLE.
    """
    listed = search.list_files(microseconds(limit))
    planner = RemovalPlanner(table, storage)
    before = microseconds(min([limit, *planner.operations_since(now)]))
    orphans = search.orphans(listed, planner, before)
    summary = orphans.summary()
    if not dry_run:
        paths = orphans.paths()
        while part := list(islice(paths, _PART)):
            storage.remover.remove(part)
    return MaintenanceReport(
        data_files=summary.counts.get("data", 0),
        index_files=summary.counts.get("index", 0),
        manifests=summary.counts.get("manifest", 0),
        bytes_removed=summary.size,
        earliest_snapshot_id=None,
        latest_snapshot_id=table.snapshot.id if table.snapshot else None,
        files=tuple(path.removeprefix(f"{table.path}/") for path in summary.first),
    )


@dataclass(frozen=True, slots=True)
class DriverSearch:
    """Implements ``OrphanSearch`` without Spark: the driver lists and reads everything."""

    table: PinnedTable
    filesystem: pafs.FileSystem

    def list_files(self, before: int) -> list[StoredFile]:
        """The files below the table's directory."""
        files = stored_files(self.filesystem, self.table.path, self.table.path)
        return [each for each in files if each.stored < before]

    def orphans(
        self, listed: Sequence[StoredFile], planner: RemovalPlanner, before: int
    ) -> DriverOrphans:
        """Those whose names are not among those of the files in use."""
        needed = {path.rpartition("/")[2] for path in planner.in_use()}
        return DriverOrphans(orphans_among(listed, needed, before))


@dataclass(frozen=True, slots=True)
class DriverOrphans:
    """Implements ``Orphans``."""

    files: Sequence[StoredFile]

    def summary(self) -> Summary:
        """Counts, and the first of them."""
        counts = Counter[str](each.kind for each in self.files)
        first = sorted(self.paths())[:NAMED_FILES]
        return Summary(counts, sum(each.size for each in self.files), first)

    def paths(self) -> Iterator[str]:
        """All of them."""
        return (each.path for each in self.files)
