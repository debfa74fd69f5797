"""The same compactions of an Iceberg table, in a file of SQLite, on a REST server or in Glue.

Some rewrite manifests, too, or nothing else; some nothing but position deletes.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.compaction import CompactMode, CompactSpec, Manifests
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.direct import DirectWrite
from tests.faults.compaction_matrix import CompactionMatrix
from tests.faults.compactions import CHANGED, COMMITS, NEW, PARTITIONS, Compaction, found_orphans
from tests.faults.drivers import Drivers
from tests.faults.iceberg import (
    IcebergWork,
    Server,
    address_of,
    files_of,
    needed_files,
    path_of,
    rows_as_table,
)
from tests.faults.looking import Seen
from tests.faults.matrix import Fault
from tests.support.iceberg_tables import IcebergTable
from tests.support.paimon_tables import NAME


@dataclass(frozen=True)
class IcebergCompaction(Compaction):
    """``server``, ``token`` and ``glue`` are those of ``IcebergWork``.

    ``moves``: the files are of an older spec, without partitions.
    ``deletes``: each data file has two files of position deletes, one of which is about all of its
    partition; they alone are rewritten. ``manifests`` is that of ``CompactSpec``.
    """

    server: str = ""
    token: str = ""
    glue: bool = False
    moves: bool = False
    deletes: bool = False
    manifests: Manifests = "keep"

    @property
    def spec(self) -> CompactSpec:
        """The statement."""
        if self.deletes:
            return CompactSpec(mode="deletes", min_files=2)
        mode: CompactMode = "minor" if self.manifests == "only" else "full"
        return CompactSpec(mode=mode, manifests=self.manifests)

    @property
    def snapshots(self) -> int:
        """How many it makes."""
        return {"keep": self.groups, "rewrite": PARTITIONS + 1, "only": 1}[self.manifests]

    @property
    def files_left(self) -> int:
        """How many files are live behind it, if it meets nobody."""
        if self.manifests != "only" and not self.deletes:
            return PARTITIONS
        return COMMITS * PARTITIONS * (2 if self.marks else 1)

    @property
    def _work(self) -> IcebergWork:
        address = {"server": self.server, "token": self.token, "glue": self.glue}
        return IcebergWork("", 0, marks=True, **address)  # type: ignore[arg-type]

    def _table(self, warehouse: Path) -> Any:
        return self._work.library(warehouse).load_table((NAME.database, NAME.table))

    def new_table(self, warehouse: Path) -> None:
        """As Paimon's; rows are marked by a file of position deletes for each data file."""
        self._work.new_table(warehouse, rows=[])
        if self.moves:
            with self._table(warehouse).update_spec() as spec:
                spec.remove_field("p")
        for commit in range(COMMITS):
            numbers = range(4 * commit, 4 * commit + 4)
            rows = [{"id": 10 * n + p, "v": f"v{n}", "p": p} for n in numbers for p in (0, 1)]
            self._table(warehouse).append(rows_as_table(rows))
        if self.deletes:
            self._mark_twice(warehouse)
        elif self.marks:
            connector = open_connector(self.catalog(warehouse), self._work.credentials)
            write = DirectWrite(connector, rewrite_share=1.0, name=NAME)
            for file in range(COMMITS * (1 if self.moves else PARTITIONS)):
                write.delete(file, 0)
            write.publish()
        if self.moves:
            with self._table(warehouse).update_spec() as spec:
                spec.add_identity("p")

    def _mark_twice(self, warehouse: Path) -> None:
        """Mark the first row of each data file, by a file of its own and by one for several."""
        identifier = (NAME.database, NAME.table)
        table = IcebergTable(self._work.library(warehouse), identifier)
        for p in range(PARTITIONS):
            scan = self._table(warehouse).scan(f"p = {p}")
            paths = [each.file.file_path for each in scan.plan_files()]
            for path in paths:
                table.mark_positions({path: [0]}, p)
            table.mark_positions({path: [0] for path in paths}, p)

    def change_by_others(self, warehouse: Path) -> None:
        """A file of the second partition is rewritten by pyiceberg, and one comes."""
        table = self._table(warehouse)
        table.overwrite(rows_as_table([CHANGED, NEW]), f"id = {CHANGED['id']}")

    def opened(self, warehouse: Path) -> Connector:
        """The connector, all of whose changes and commits are visible to audit hooks."""
        return self._work.opened(warehouse)

    def catalog(self, warehouse: Path) -> CatalogSpec:
        """The catalog for a job; the token is left out."""
        return self._work.catalog(warehouse)

    def look(self, warehouse: Path) -> Seen:
        """The table now, as pyiceberg sees it."""
        return self._work.look(warehouse)

    def require_sound_manifests(self, warehouse: Path) -> None:
        """No snapshot has a file twice, and what entries say of a file is the same in all."""
        table, said = self._table(warehouse), dict[str, tuple[Any, ...]]()
        for snapshot in table.snapshots():
            entries = [
                entry
                for manifest in snapshot.manifests(table.io)
                for entry in manifest.fetch_manifest_entry(table.io)
            ]
            paths = [each.data_file.file_path for each in entries]
            assert len(paths) == len(set(paths)), snapshot
            for path, each in zip(paths, entries, strict=True):
                origin = each.snapshot_id, each.sequence_number, each.file_sequence_number
                assert said.setdefault(path, origin) == origin, (path, said[path], origin, snapshot)

    def orphans_left(self, warehouse: Path) -> tuple[int, set[str]]:
        """How many files the orphan search removes, and which it should have, too."""
        table = self._table(warehouse)
        root = Path(path_of(table.location()))
        found = found_orphans(self.opened(warehouse), root)
        return found, files_of(root) - needed_files(table)


WORKS = {
    "compaction": IcebergCompaction(),
    "compaction with deletes beside others": IcebergCompaction(marks=True, meets_others=True),
    "compaction of older files": IcebergCompaction(moves=True, groups=1),
    "manifests behind a compaction": IcebergCompaction(marks=True, manifests="rewrite"),
    "deletes": IcebergCompaction(marks=True, deletes=True),
    "deletes beside others": IcebergCompaction(marks=True, deletes=True, meets_others=True),
    "manifests": IcebergCompaction(marks=True, manifests="only"),
    "manifests beside others": IcebergCompaction(marks=True, meets_others=True, manifests="only"),
}


@dataclass
class IcebergCompactionMatrix(CompactionMatrix):
    """Faults of compactions of Iceberg tables; ``place`` is the folder of the catalog."""

    place: Path = Path()
    reports: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def on(cls, drivers: Drivers, folder: Path, server: Server | None) -> IcebergCompactionMatrix:
        """On a catalog of SQLite in ``folder``, or on a server."""
        address, place = address_of(server, folder)
        works = {name: replace(work, **address) for name, work in WORKS.items()}
        return cls(drivers, folder, works=works, place=place)

    def run(self, fault: Fault) -> tuple[str, str]:
        """As ``CompactionMatrix.run``."""
        # Its table is at the path of the others.
        self._clean(fault.work)
        return super().run(fault)

    def _require_done(
        self, fault: Fault, warehouse: Path, expected: list[dict[str, Any]], report: dict[str, Any]
    ) -> None:
        super()._require_done(fault, warehouse, expected, report)
        work = self.works[fault.work]
        assert isinstance(work, IcebergCompaction)
        work.require_sound_manifests(warehouse)

    @property
    def _warehouse(self) -> Path:
        return self.place

    def _clean(self, work: str) -> dict[str, Any]:
        """The report of a run without faults."""
        if work not in self.reports:
            _, _, report = self._do("try compacting", work, self._fresh(work))["value"]
            self.reports[work] = dict(report)
        return self.reports[work]

    def _fresh(self, work: str) -> Path:
        """A new table, always at one and the same path."""
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()
        self.works[work].new_table(self.place)
        return self.place
