"""Compactions without Spark, of two partitions that are published one after the other."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.maintenance import RemoveOrphanFilesSpec
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.contract.result import JobResult
from spark_jobs.spi.connector import Connector
from tests.faults.looking import Seen, look
from tests.faults.merges import opened
from tests.support.compaction_runs import compact, in_groups_of
from tests.support.direct_merges import merge_rows
from tests.support.paimon_tables import NAME, create
from tests.support.reachable import needed, stored

Row = dict[str, Any]
OPERATION = "compaction-1"
PARTITIONS = 2
COMMITS = 3
CHANGED: Row = {"id": 11, "v": "by others", "p": 1}
NEW: Row = {"id": 500, "v": "other", "p": 1}
_TWO_DAYS = 2 * 24 * 3600


@dataclass(frozen=True)
class Compaction:
    """A compaction of a table with three small files in each partition.

    ``marks``: with deletion vectors; ``has_key``: with a primary key and records that nobody has
    put into the changelog. ``meets_others``: before its first publication, somebody changes a row
    and adds one in the second partition. ``groups`` are published one by one.
    """

    marks: bool = False
    has_key: bool = False
    meets_others: bool = False
    groups: int = PARTITIONS

    @property
    def spec(self) -> CompactSpec:
        """The statement."""
        return CompactSpec(mode="full")

    @property
    def snapshots(self) -> int:
        """How many it makes."""
        return self.groups

    @property
    def files_left(self) -> int:
        """How many files are live behind it, if it meets nobody."""
        return PARTITIONS

    def new_table(self, warehouse: Path) -> None:
        """The table; where rows can be marked or buried, every fourth of a file is."""
        _make_table(warehouse, self)

    def change_by_others(self, warehouse: Path) -> None:
        """What ``meets_others`` says."""
        connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
        merge_rows(connector, NAME, ("p", "id"), [CHANGED, NEW], ("v",), lambda _: False)

    def opened(self, warehouse: Path) -> Connector:
        """The connector, all of whose changes to the warehouse are visible to audit hooks."""
        return opened(warehouse)

    def catalog(self, warehouse: Path) -> CatalogSpec:
        """The catalog for a job."""
        return CatalogSpec("paimon", str(warehouse))

    def look(self, warehouse: Path) -> Seen:
        """The table now, as others see it."""
        return look(warehouse, str(NAME))

    def run(
        self, warehouse: Path, try_number: int, between: Callable[[], None] = lambda: None
    ) -> JobResult:
        """One try of the compaction; ``between`` runs before its first publication."""
        waiting = [between]

        def once() -> None:
            if waiting:
                waiting.pop()()

        return compact(
            in_groups_of(self.opened(warehouse), 1),
            self.catalog(warehouse),
            self.spec,
            operation_id=OPERATION,
            try_number=try_number,
            before_publication=once,
        )

    def orphans_left(self, warehouse: Path) -> tuple[int, set[str]]:
        """How many files the orphan search removes, and which it should have, too.

        If the others died as well, their guard would keep their files: it goes first.
        """
        folder = warehouse / f"{NAME.database}.db" / NAME.table
        for guard in folder.glob("consumer/consumer-*"):
            guard.unlink()
        found = found_orphans(open_connector(self.catalog(warehouse), {}), folder)
        return found, stored(folder) - needed(folder)


def found_orphans(connector: Connector, folder: Path) -> int:
    """How many files below ``folder`` the orphan search removes, once they are old."""
    long_ago = time.time() - _TWO_DAYS
    for path in folder.rglob("*"):
        os.utime(path, (long_ago, long_ago))
    assert connector.maintenance is not None
    report = connector.maintenance.remove_orphan_files(NAME, RemoveOrphanFilesSpec(), dry_run=False)
    return len(report.files)


def rows_of(work: Compaction, *, others: bool) -> list[Row]:
    """The rows of the table, before and after; ``others``: they have changed it."""
    ids = [n for n in range(COMMITS * 4) if not (work.marks or work.has_key) or n % 4]
    rows = {(n, p): {"id": 10 * n + p, "v": f"v{n}", "p": p} for n in ids for p in (0, 1)}
    found = {row["id"]: row for row in rows.values()}
    if others:
        found |= {row["id"]: row for row in (CHANGED, NEW)}
    return sorted(found.values(), key=repr)


def _make_table(warehouse: Path, work: Compaction) -> None:
    connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
    options = {"deletion-vectors.enabled": "true"} if work.marks and not work.has_key else {}
    key = ("p", "id") if work.has_key else ()
    if work.has_key:
        options |= {"bucket": "1", "changelog-producer": "lookup"}
    create(connector, {"id": "int", "v": "string", "p": "int"}, ["p"], options, primary_key=key)
    for commit in range(COMMITS):
        numbers = range(4 * commit, 4 * commit + 4)
        rows = [{"id": 10 * n + p, "v": f"v{n}", "p": p} for n in numbers for p in (0, 1)]
        merge_rows(connector, NAME, ("p", "id"), rows, ("v",), lambda _: False)
    if work.marks or work.has_key:
        gone = [
            {"id": 10 * n + p, "v": "", "p": p} for n in range(0, COMMITS * 4, 4) for p in (0, 1)
        ]
        merge_rows(connector, NAME, ("p", "id"), gone, ("v",), lambda _: True)
