"""What Airflow's side says there is to compact and to expire is what jobs do: random histories."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_merge.metadata.iceberg.base_notes import BaseNotes
from airflow_provider_merge.metadata.iceberg.catalogs import IcebergCatalog
from airflow_provider_merge.metadata.iceberg.page_facts import IcebergPageFacts
from airflow_provider_merge.metadata.iceberg.table import IcebergTable
from spark_jobs.connectors.iceberg.maintenance.expire_snapshots import SnapshotExpiry
from spark_jobs.connectors.iceberg.maintenance.removable_files import ManifestReader
from spark_jobs.connectors.iceberg.maintenance.table_maintenance import IcebergMaintenance
from spark_jobs.connectors.iceberg.table.pinned_table import pinned_table
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec
from spark_jobs.contract.partition_names import partition_name
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.direct import DirectWrite
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog
from tests.support import compaction_runs, iceberg_tables

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Delete operation did not match any records"),
]

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string()), ("p", pa.int64()), ("q", pa.int64())])
# All small files of a partition fit into one. Where that needs several, pages estimate: how a
# compaction distributes files depends on their ages.
SPEC = CompactSpec(target_file_size="256 kb", min_files=3, deleted_share=0.3)
SMALL, LARGE = 10, 5000
STEPS = {
    "append": 6,
    "mark": 5,
    "mark_again": 2,
    "remove": 1,
    "overwrite": 1,
    "compact": 1,
    "spec": 1,
    "end": 2,
    "tag": 1,
    "back": 1,
}


class History:
    """A table, and steps that change it; ``kinds`` counts them."""

    def __init__(self, folder: Path, seed: int, kinds: Counter[str]) -> None:
        self._catalog = PlainCatalog(folder)
        self._random = Random(seed)
        self._kinds = kinds
        self._running: list[str] = []
        self._version = self._random.choice((1, 2, 2, 2))
        properties = {"format-version": str(self._version), "write.merge.mode": "merge-on-read"}
        made = self._catalog.create(SCHEMA, properties, None)
        with made.update_spec() as spec:
            spec.add_identity("p")

    @property
    def connector(self) -> Connector:
        return self._catalog.open()

    @property
    def _table(self) -> Any:
        return self._catalog.library().load_table(("db", "t"))

    def step(self) -> None:
        """Change the table; no two snapshots are of the same millisecond."""
        time.sleep(0.002)
        chosen = self._random.choices(list(STEPS), list(STEPS.values()))[0]
        self._kinds[chosen] += 1
        getattr(self, f"_{chosen}")()

    def _rows(self) -> pa.Table:
        p, count = self._random.choice((0, 1, None)), self._random.choice((SMALL, SMALL, LARGE))
        ids = [self._random.randrange(10**6) for _ in range(count)]
        texts = [self._random.randbytes(40).hex() for _ in ids]
        q = self._random.choice((0, 1))
        return pa.table({"id": ids, "s": texts, "p": [p] * count, "q": [q] * count}, schema=SCHEMA)

    def _append(self) -> None:
        self._table.append(self._rows())

    def _mark(self) -> None:
        """Mark some rows of a file, perhaps some that are marked already."""
        connector = self.connector
        files = pinned_table(connector.metadata.load_table(NAME)).files
        if not files:
            return
        write = DirectWrite(connector, rewrite_share=1.0)
        file = self._random.randrange(len(files))
        rows = files[file].entry.row_count
        most = rows // 2 if rows < LARGE else rows // 10
        marked = self._random.sample(range(rows), self._random.randint(1, max(1, most)))
        write.delete(file, *sorted(marked)).publish()
        # Its note stays, as if it were still running.
        self._running.append(write.operation_id)

    def _end(self) -> None:
        """One of the statements is not running any more."""
        if self._running:
            ended = self._running.pop(self._random.randrange(len(self._running)))
            connector = self.connector
            connector.writes.release_guard(connector.metadata.load_table(NAME), ended)

    def _mark_again(self) -> None:
        """Others mark rows of a file beside those that are marked, perhaps the same."""
        if self._version == 1:
            return
        table = self._table
        current = table.spec()
        files = [each.file for each in table.scan().plan_files()]
        files = [each for each in files if each.spec_id == current.spec_id]
        if files:
            file = self._random.choice(files)
            values = [file.partition[place] for place in range(len(current.fields))]
            most = max(1, file.record_count // 3)
            positions = self._random.sample(range(file.record_count), self._random.randint(1, most))
            others = iceberg_tables.IcebergTable(self._catalog.library(), ("db", "t"))
            others.mark_positions({file.file_path: positions}, *values)

    def _remove(self) -> None:
        self._table.delete(f"p = {self._random.choice((0, 1))}")

    def _overwrite(self) -> None:
        self._table.overwrite(self._rows())

    def _compact(self) -> None:
        result = self._compacted(dry_run=False)
        assert result.error is None, result.error

    def _spec(self) -> None:
        with self._table.update_spec() as spec:
            name = self._random.choice("pq")
            if name in [each.name for each in self._table.spec().fields]:
                spec.remove_field(name)
            else:
                spec.add_identity(name)

    def _tag(self) -> None:
        snapshots = self._table.snapshots()
        if snapshots:
            chosen = self._random.choice(snapshots).snapshot_id
            self._table.manage_snapshots().create_tag(chosen, f"tag-{chosen}").commit()

    def _back(self) -> None:
        history = self._table.history()
        if history:
            chosen = self._random.choice(history).snapshot_id
            self._table.manage_snapshots().set_current_snapshot(chosen).commit()

    def _compacted(self, *, dry_run: bool) -> Any:
        catalog = CatalogSpec("iceberg", str(self._catalog.folder), self._catalog.options)
        return compaction_runs.compact(self.connector, catalog, SPEC, name=NAME, dry_run=dry_run)

    def _count_moved(self) -> None:
        """Whether files would move to another spec."""
        table = pinned_table(self.connector.metadata.load_table(NAME))
        current = table.metadata.default_spec_id
        older = any(each.entry.spec_id != current for each in table.files)
        self._kinds["moved"] += older and current not in table.unpartitioned

    def due(self) -> tuple[dict[str, tuple[int, int]], dict[str, tuple[int, int]]]:
        """The number and the bytes of due files by partition, of pages and of a dry run."""
        pages = {
            each.name: (each.due.files, each.due.size)
            for each in self._pages().compaction_facts(SPEC)
            if each.due.files
        }
        report = self._compacted(dry_run=True).compaction
        if any(not each.values for each in report.partitions):
            self._count_moved()
        job = {
            partition_name(each.values): (each.files_before, each.bytes_before)
            for each in report.partitions
        }
        return pages, job

    def expiring(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """What expires of the branch, the first snapshot that stays, and the bytes that go."""
        times = [each.timestamp_ms for each in self._table.snapshots()] or [1]
        limit = datetime.fromtimestamp(self._random.choice(times) / 1000, UTC).isoformat()
        spec = ExpireSnapshotsSpec(older_than=limit, retain_min=self._random.choice((1, 1, 3)))
        table = self._pages()
        facts = IcebergPageFacts(table, BaseNotes(str(self._catalog.folder), {}))
        page = facts.expiry(int(time.time() * 1000), spec)
        plan = self._plan(spec)
        report = self._care.expire_snapshots(NAME, spec, dry_run=True)
        branch = {each.snapshot_id for each in table.branch.newest_first()}
        gone = [each for each in plan.expiring.snapshots if each in branch]
        told = [page.expiring, page.first_retained, {each.name for each in facts.holds()}]
        done = [gone, report.earliest_snapshot_id or 0, set(self._running)]
        self._kinds["held"] += any(each.startswith("operation") for each in plan.expiring.kept)
        metadata = self._table.metadata
        is_plain = len(metadata.refs) == 1 and len(branch) == len(metadata.snapshots)
        if is_plain:
            self._kinds["plain expiry"] += bool(gone)
            removing = [table.snapshot(each) for each in page.removing]
            changes = [facts.change(each) for each in removing if each is not None]
            told.append(sum(each.bytes_removed for each in changes if each is not None))
            files = plan.files.facts.values()
            done.append(sum(each.size for each in files if each.kind != "manifest"))
        return tuple(told), tuple(done)

    @property
    def _care(self) -> IcebergMaintenance:
        found = self.connector.maintenance
        assert isinstance(found, IcebergMaintenance)
        return found

    def _plan(self, spec: ExpireSnapshotsSpec) -> Any:
        care = self._care
        commits = care._commits(NAME)
        expiry = SnapshotExpiry(commits, care._notes, spec, datetime.now(UTC), lambda: None)
        table = commits.table()
        return expiry._plan(table, ManifestReader(table))

    def _pages(self) -> IcebergTable:
        return IcebergTable.of(NAME, IcebergCatalog(self._catalog.options).load(NAME))


@pytest.mark.by_turns(10)
@pytest.mark.parametrize("seed", range(40))
def test_pages_and_jobs_agree(tmp_path: Path, seed: int) -> None:
    kinds: Counter[str] = Counter()
    history = History(tmp_path, seed, kinds)
    for number in range(18):
        history.step()
        if number % 3 == 2:
            pages, job = history.due()
            assert pages == job, f"after {number}"
            told, done = history.expiring()
            assert told == done, f"after {number}"
