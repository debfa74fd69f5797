"""Removing files in a table's directory to which no metadata refers. Driver only.

Modelled on Paimon's ``OrphanFilesClean``: it lists the files first and then reads which files are
in use, so that it does not miss a commit in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from spark_jobs.spi.writes import always_wanted
from spark_jobs.storage.warehouse import Warehouse

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

    def orphans(self, listed: L, planner: RemovalPlanner, before: int) -> Orphans:
        """The listed files that were stored ``before`` and that nothing needs now.

        Raises:
            CatalogError: METADATA_UNREADABLE: some metadata of files in use cannot be read.
        """
        ...


def remove(
    table: PinnedTable,
    storage: Warehouse,
    search: OrphanSearch[L],
    limit: datetime,
    now: datetime,
    require_wanted: Callable[[], None] = always_wanted,
    *,
    dry_run: bool,
) -> MaintenanceReport:
    """Remove orphan files that are older than ``limit`` and than any running operation.

    ``now`` is the time of the table's store; ``require_wanted`` is called before each removal.

    Raises:
        CatalogError: METADATA_UNREADABLE: some metadata of files in use cannot be read.
        InternalError: STORAGE_UNAVAILABLE.
    """
    listed = search.list_files(microseconds(limit))
    planner = RemovalPlanner(table, storage, now)
    before = microseconds(min([limit, *planner.operations_since()]))
    orphans = search.orphans(listed, planner, before)
    summary = orphans.summary()
    if not dry_run:
        paths = orphans.paths()
        while part := list(islice(paths, _PART)):
            require_wanted()
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
        """The stored files below the table's directory."""
        files = stored_files(self.filesystem, self.table.path, self.table.path)
        return [each for each in files if each.stored < before]

    def orphans(
        self, listed: Sequence[StoredFile], planner: RemovalPlanner, before: int
    ) -> DriverOrphans:
        """The listed files that were stored ``before`` and are not in use, compared by name."""
        needed = {path.rpartition("/")[2] for path in planner.in_use()}
        return DriverOrphans(orphans_among(listed, needed, before))


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
