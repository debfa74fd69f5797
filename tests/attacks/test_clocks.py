"""Machines whose clocks are wrong by days, beside statements that run where they are right."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.inserts import DropPartitionsSpec, TruncateTableSpec
from spark_jobs.contract.maintenance import (
    CreateTagSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    RemoveOrphanFilesSpec,
)
from spark_jobs.contract.request import CatalogSpec, Statement
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.writes import MergeWrite, Operation
from spark_jobs.storage.clock import StoreClock
from tests.attacks.elsewhere import Elsewhere, elsewhere, wrong_clocks
from tests.support.iceberg_changes import inserted
from tests.support.iceberg_files import catalog_spec, open_catalog
from tests.support.paimon_tables import (
    NAME,
    append,
    begin,
    create,
    inserts,
    read,
    snapshot_ids,
    store,
)
from tests.support.stores import ObjectStore, moto

__all__ = ["elsewhere", "moto", "wrong_clocks"]

DAY = 86_400
APPEND = MergeWrite(
    Operation("running", "digest", {}), (), ((),), (), 1 << 27, read_set=lambda _: ()
)
COLUMNS = {"id": "int", "k": "string"}
# Whatever a clock can tempt a job to remove.
CARE = (
    RemoveOrphanFilesSpec("1 d"),
    ExpireSnapshotsSpec(retain_min=1, older_than="1 d"),
    DeleteTagSpec(None),
)


@dataclass
class Place:
    """A warehouse, and machines whose clocks are wrong beside it."""

    elsewhere: Elsewhere
    catalog: CatalogSpec
    credentials: Mapping[str, str] = field(default_factory=dict)

    def open(self) -> Connector:
        return open_connector(self.catalog, dict(self.credentials))

    def run(
        self, days: float, *statements: Statement, retry: bool = False
    ) -> tuple[list[JobResult], str]:
        """Where clocks are so many days ahead."""
        return self.elsewhere.run(days, self.catalog, self.credentials, *statements, retry=retry)


@pytest.fixture
def local(tmp_path: Path, wrong_clocks: None, elsewhere: Elsewhere) -> Place:
    return Place(elsewhere, CatalogSpec("paimon", str(tmp_path)))


@pytest.fixture
def s3(moto: ObjectStore, wrong_clocks: None, elsewhere: Elsewhere) -> Place:
    return Place(elsewhere, moto.new_catalog(), moto.credentials)


def succeeded(results: list[JobResult]) -> list[JobResult]:
    assert [each.error for each in results] == [None] * len(results)
    return results


def aged(path: Path, days: float) -> None:
    """Let a file, or a folder with all that is in it, be so old."""
    moment = time.time() - days * DAY
    for each in (*path.rglob("*"), path):
        os.utime(each, (moment, moment))


@pytest.mark.parametrize(("store_name", "days"), [("local", 10), ("local", -10), ("s3", 10)])
def test_a_running_statement_publishes_whatever_time_its_neighbours_have(
    store_name: str, days: float, request: pytest.FixtureRequest
) -> None:
    place: Place = request.getfixturevalue(store_name)
    connector = place.open()
    create(connector, COLUMNS, ["k"])
    append(connector, [{"id": 1, "k": "x"}], "first")
    append(connector, [{"id": 2, "k": "gone"}], "second")
    care = connector.maintenance
    assert care is not None
    care.create_tag(NAME, CreateTagSpec("week", 1, "7 d"))
    running = connector.metadata.load_table(NAME)
    handle = connector.writes.begin_merge(running, APPEND)
    fragments = store(handle, inserts(running, [{"id": 3, "k": "x"}]))
    log = OperationLog(connector.storage)
    scratch = log.begin("running", 1)

    results, said = place.run(days, *CARE, DropPartitionsSpec(({"k": "'gone'"},)), retry=True)

    *cared, dropped = succeeded(results)
    assert not any(each.maintenance.changes for each in cared if each.maintenance)
    assert dropped.new_snapshot_id == 3
    ahead = "ahead of" if days > 0 else "behind"
    assert f"WARNING the clock of this machine is 10 d {ahead} that of the storage" in said
    assert log.lease(scratch).is_held()
    connector.writes.finish_merge(running, handle, fragments, {})
    assert read(place.open()) == [{"id": 1, "k": "x"}, {"id": 3, "k": "x"}]
    assert snapshot_ids(connector) == [1, 2, 3, 4]


def test_what_is_old_by_the_stores_clock_goes_although_the_own_is_behind(
    local: Place, tmp_path: Path
) -> None:
    connector = local.open()
    create(connector, COLUMNS, ["k"])
    append(connector, [{"id": 1, "k": "x"}], "first")
    connector.writes.release_guard(connector.metadata.load_table(NAME), "first")
    table = tmp_path / "shop.db/orders"
    orphan = table / "k=x/bucket-0/data-lost"
    orphan.write_text("x")
    aged(orphan, 3)
    begin(connector, connector.metadata.load_table(NAME), "killed")
    aged(table / "consumer/consumer-merge-killed", 8)
    left = tmp_path / OperationLog(connector.storage).begin("killed", 1)
    aged(left, 8)

    (removed, _), _ = local.run(-10, *CARE[:2])

    assert removed.maintenance is not None
    assert (removed.maintenance.data_files, removed.maintenance.leftovers) == (1, 1)
    assert not orphan.exists()
    assert not left.exists()
    (truncated,), _ = local.run(-10, TruncateTableSpec())
    assert truncated.error is None
    assert not list((table / "consumer").iterdir())


def test_results_of_a_month_are_kept_by_the_stores_clock(local: Place, tmp_path: Path) -> None:
    create(local.open(), COLUMNS)
    operations = tmp_path / "_operations"
    operations.mkdir(exist_ok=True)
    for name, days in (("young", 25), ("old", 35)):
        (operations / f"{name}.json").write_text("{}")
        aged(operations / f"{name}.json", days)

    results, _ = local.run(10, TruncateTableSpec(), retry=True)

    succeeded(results)
    assert (operations / "young.json").exists()
    assert not (operations / "old.json").exists()
    assert not list(operations.glob("*.clock"))


def test_a_retention_begins_when_the_store_got_the_tag(local: Place) -> None:
    connector = local.open()
    create(connector, COLUMNS)
    append(connector, [{"id": 1, "k": "x"}], "first")

    tag = CreateTagSpec("week", retention="7 d")
    succeeded(local.run(-10, tag)[0])

    care = connector.maintenance
    assert care is not None
    assert not care.delete_tag(NAME, DeleteTagSpec(None), dry_run=False).changes


def test_snapshots_of_a_clock_that_is_behind_are_as_young_as_their_files(
    local: Place, tmp_path: Path
) -> None:
    connector = local.open()
    create(connector, COLUMNS)
    for number in range(4):
        append(connector, [{"id": number, "k": "x"}], f"op-{number}")
        connector.writes.release_guard(connector.metadata.load_table(NAME), f"op-{number}")
    snapshots = sorted((tmp_path / "shop.db/orders/snapshot").glob("snapshot-*"))
    for path in snapshots:
        document = json.loads(path.read_text())
        document["timeMillis"] -= 10 * DAY * 1000
        path.write_text(json.dumps(document))
    care, week = connector.maintenance, ExpireSnapshotsSpec(retain_min=1, older_than="7 d")
    assert care is not None

    assert not care.expire_snapshots(NAME, week, dry_run=False).changes
    for path in snapshots:
        aged(path, 10)
    assert care.expire_snapshots(NAME, week, dry_run=False).snapshots == 3


def test_snapshots_of_the_future_stay(local: Place) -> None:
    connector = local.open()
    create(connector, COLUMNS)
    for number in range(2):
        append(connector, [{"id": number, "k": "x"}], f"op-{number}")
        connector.writes.release_guard(connector.metadata.load_table(NAME), f"op-{number}")
        succeeded(local.run(10, TruncateTableSpec())[0])
    care, now = connector.maintenance, ExpireSnapshotsSpec(retain_min=1, older_than="0 s")
    assert care is not None

    care.expire_snapshots(NAME, now, dry_run=False)

    # The first successor that is not old keeps all that follow.
    assert snapshot_ids(connector) == [1, 2, 3, 4]


def test_a_running_statement_on_an_iceberg_table_keeps_what_it_noted(
    tmp_path: Path, wrong_clocks: None, elsewhere: Elsewhere
) -> None:
    open_catalog(tmp_path).close()  # makes the tables of the catalog's database
    place = Place(elsewhere, catalog_spec(tmp_path))
    connector = place.open()
    create(connector, {"id": "int", "v": "string"})
    running = connector.metadata.load_table(NAME)
    log = OperationLog(connector.storage)
    scratch = log.begin("running", 1)
    handle = connector.writes.begin_merge(running, APPEND)
    fragments = store(handle, inserted(connector, running, [{"id": 1, "v": "a"}]))

    results, _ = place.run(40, TruncateTableSpec(), retry=True)

    succeeded(results)
    assert log.lease(scratch).is_held()
    assert sorted(each.suffix for each in (tmp_path / "_operations").glob("running.*")) == [
        ".base",
        ".running",
    ]
    connector.writes.finish_merge(running, handle, fragments, {})
    found = connector.metadata.load_table(NAME)
    files = connector.metadata.plan_files(found)
    assert sum(each.live_row_count for each in files) == 1


def test_the_time_of_a_store_goes_on(tmp_path: Path) -> None:
    clock = StoreClock(pafs.LocalFileSystem(), str(tmp_path))

    first = clock.now()
    time.sleep(0.01)

    assert clock.now() > first
    assert abs(first.timestamp() - time.time()) < DAY
    assert not list(tmp_path.iterdir())
