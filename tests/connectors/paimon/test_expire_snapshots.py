"""Expiring snapshots: whose limits count, what keeps files, and what stops it beforehand."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from pypaimon.schema.schema_change import SchemaChange

from spark_jobs.contract.maintenance import (
    CreateTagSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    Kept,
    MaintenanceReport,
)
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode, JobError, NotSupportedError
from spark_jobs.spi.connector import Connector
from tests.support.paimon_tables import (
    NAME,
    append,
    append_with_pypaimon,
    begin,
    create,
    inserts,
    overwrite,
    read,
    snapshot_ids,
    store,
)
from tests.support.reachable import needed, stored

NOW = ExpireSnapshotsSpec(retain_min=1, older_than="0 s")
_WEEK = 7 * 86_400


def expire(
    connector: Connector, spec: ExpireSnapshotsSpec = NOW, **more: bool
) -> MaintenanceReport:
    assert connector.maintenance is not None
    return connector.maintenance.expire_snapshots(NAME, spec, dry_run=more.get("dry_run", False))


@pytest.fixture
def table(connector: Connector, warehouse: Path) -> Path:
    """A table whose rows were replaced four times: snapshots 1 to 5."""
    create(connector, {"id": "int", "k": "string"}, ["k"])
    for number in range(1, 6):
        overwrite(connector, number)
    return warehouse / "shop.db/orders"


def options(connector: Connector, **values: str) -> None:
    native = connector.metadata.load_table(NAME).native.table
    changes = [SchemaChange.set_option(name.replace("_", "-"), v) for name, v in values.items()]
    native.catalog_environment.catalog_loader.load().alter_table(str(NAME), changes)


def contents(table: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in table.rglob("*") if path.is_file()}


def consume(table: Path, name: str, following: int) -> Path:
    path = table / f"consumer/consumer-{name}"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"nextSnapshot": following}))
    return path


def test_the_latest_snapshot_stays_with_its_files_alone(connector: Connector, table: Path) -> None:
    report = expire(connector)

    assert snapshot_ids(connector) == [5]
    assert read(connector) == [{"id": 5, "k": "x"}]
    assert stored(table) == needed(table)
    assert len(list(table.rglob("*.parquet"))) == 1
    assert (report.snapshots, report.data_files) == (4, 4)
    assert (report.earliest_snapshot_id, report.latest_snapshot_id) == (5, 5)
    assert report.bytes_removed > 4 * 300
    assert (table / "snapshot/EARLIEST").read_text() == "5"


def test_a_dry_run_tells_the_same_and_changes_nothing(connector: Connector, table: Path) -> None:
    def files() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in table.rglob("*") if path.is_file()}

    before = files()

    preview = expire(connector, dry_run=True)

    assert files() == before
    assert expire(connector) == preview


def test_by_default_nothing_young_expires(connector: Connector, table: Path) -> None:
    report = expire(connector, ExpireSnapshotsSpec(retain_min=1))

    assert not report.changes
    assert snapshot_ids(connector) == [1, 2, 3, 4, 5]


def test_by_default_the_latest_ten_stay(connector: Connector, table: Path) -> None:
    for number in range(6, 13):
        overwrite(connector, number)

    expire(connector, ExpireSnapshotsSpec(older_than="0 s"))

    assert snapshot_ids(connector) == list(range(3, 13))


@pytest.mark.parametrize(
    ("spec", "left"),
    [
        (ExpireSnapshotsSpec(retain_max=2, retain_min=1), [4, 5]),
        (ExpireSnapshotsSpec(retain_min=3, older_than="0 s"), [3, 4, 5]),
        (ExpireSnapshotsSpec(retain_min=1, older_than="0 s", max_deletes=1), [2, 3, 4, 5]),
        (ExpireSnapshotsSpec(retain_max=1, retain_min=1, max_deletes=2), [3, 4, 5]),
    ],
)
def test_limits(
    connector: Connector, table: Path, spec: ExpireSnapshotsSpec, left: list[int]
) -> None:
    expire(connector, spec)

    assert snapshot_ids(connector) == left
    assert stored(table) == needed(table)


def test_the_state_at_the_limit_stays(connector: Connector, table: Path) -> None:
    third = json.loads((table / "snapshot/snapshot-3").read_text())["timeMillis"]
    time.sleep(0.002)
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(third // 1000))

    spec = ExpireSnapshotsSpec(retain_min=1, older_than=f"{moment}.{third % 1000:03}Z")
    expire(connector, spec)

    # Snapshot 2 was the latest one until the limit, when 3 took its place.
    assert snapshot_ids(connector) == [2, 3, 4, 5]


def test_the_options_of_the_table_are_respected(connector: Connector, table: Path) -> None:
    values = {
        "snapshot.num_retained.min": "2",
        "snapshot.time_retained": "0 ms",
    }
    options(connector, **values)

    expire(connector, ExpireSnapshotsSpec())

    assert snapshot_ids(connector) == [4, 5]


def test_an_option_without_a_unit_is_in_milliseconds(connector: Connector, table: Path) -> None:
    options(connector, **{"snapshot.time_retained": "1", "snapshot.num_retained.min": "1"})
    time.sleep(0.002)

    expire(connector, ExpireSnapshotsSpec())

    assert snapshot_ids(connector) == [5]


def test_limits_that_contradict_the_table_are_refused(connector: Connector, table: Path) -> None:
    with pytest.raises(JobError) as raised:
        expire(connector, ExpireSnapshotsSpec(retain_max=3, older_than="0 s"))

    assert raised.value.code is ErrorCode.REQUEST_INVALID
    assert raised.value.message == (
        "retain_min: 10 (default of option snapshot.num-retained.min) is more than retain_max, 3 "
        "(as given)."
    )
    assert snapshot_ids(connector) == [1, 2, 3, 4, 5]


def test_an_option_that_is_none_is_named(connector: Connector, table: Path) -> None:
    options(connector, **{"snapshot.time_retained": "soon"})

    with pytest.raises(NotSupportedError, match=r"snapshot\.time-retained: 'soon'"):
        expire(connector, ExpireSnapshotsSpec())


def test_a_consumer_keeps_its_snapshot_and_later_ones(connector: Connector, table: Path) -> None:
    consume(table, "reader", 3)

    report = expire(connector)

    assert snapshot_ids(connector) == [3, 4, 5]
    assert report.kept == (Kept("consumer reader", snapshots=2),)


def test_the_base_of_a_running_merge_is_kept(connector: Connector, table: Path) -> None:
    merging = connector.metadata.load_table(NAME)
    handle = begin(connector, merging, "mine")
    fragments = store(handle, inserts(merging, [{"id": 60, "k": "y"}]))
    overwrite(connector, 6)
    overwrite(connector, 7)

    report = expire(connector)

    assert snapshot_ids(connector) == [5, 6, 7]
    assert report.kept == (Kept("operation mine", snapshots=2),)
    assert len(list(table.rglob("*.parquet"))) == 4, "its new file is there, too"
    # What is in its way is found in the history that was kept.
    with pytest.raises(JobError) as raised:
        connector.writes.finish_merge(merging, handle, fragments, {})
    assert raised.value.code is ErrorCode.COMMIT_CONFLICT
    connector.writes.abort_merge(merging, handle)
    expire(connector)
    assert snapshot_ids(connector) == [7]


def test_a_guard_counts_up_to_its_maximum_age(connector: Connector, table: Path) -> None:
    guard = consume(table, "merge-forgotten", 2)
    reader = consume(table, "reader", 4)
    old = time.time() - _WEEK - 60
    for path in (guard, reader):
        os.utime(path, (old, old))

    expire(connector)

    assert snapshot_ids(connector) == [4, 5]


def test_a_tag_keeps_files_but_no_snapshot(connector: Connector, table: Path) -> None:
    maintenance = connector.maintenance
    assert maintenance is not None
    maintenance.create_tag(NAME, CreateTagSpec("second", 2))

    report = expire(connector)

    assert snapshot_ids(connector) == [5]
    assert report.kept == (Kept("tag second", files=1),)
    assert stored(table) == needed(table)
    before = contents(table)
    preview = maintenance.delete_tag(NAME, DeleteTagSpec("second"), dry_run=True)
    assert contents(table) == before
    deleted = maintenance.delete_tag(NAME, DeleteTagSpec("second"), dry_run=False)
    assert deleted == preview
    assert (deleted.tags, deleted.data_files) == (1, 1)
    assert deleted.manifests == len(before) - len(contents(table)) - 2
    assert len(list(table.rglob("*.parquet"))) == 1
    assert stored(table) == needed(table)


def test_a_branch_keeps_what_it_shares(connector: Connector, table: Path) -> None:
    maintenance = connector.maintenance
    assert maintenance is not None
    maintenance.create_tag(NAME, CreateTagSpec("second", 2))
    connector.metadata.load_table(NAME).native.table.branch_manager().create_branch("b", "second")
    (table / "tag/tag-second").unlink()
    branch = TableName("shop", "orders$branch_b")
    append(connector, [{"id": 20, "k": "y"}], "of-branch", branch)

    report = expire(connector)

    assert report.kept == (Kept("branch b", files=1),)
    assert read(connector, branch) == [{"id": 2, "k": "x"}, {"id": 20, "k": "y"}]
    assert stored(table) == needed(table)


def test_snapshots_of_a_branch_expire_on_their_own(connector: Connector, table: Path) -> None:
    maintenance = connector.maintenance
    assert maintenance is not None
    maintenance.create_tag(NAME, CreateTagSpec("second", 2))
    connector.metadata.load_table(NAME).native.table.branch_manager().create_branch("b", "second")
    branch = TableName("shop", "orders$branch_b")
    append_with_pypaimon(connector.metadata.load_table(branch), [{"id": 20, "k": "y"}])

    report = maintenance.expire_snapshots(branch, NOW, dry_run=False)

    assert report.snapshots == 1
    assert snapshot_ids(connector, branch) == [3]
    assert snapshot_ids(connector) == [1, 2, 3, 4, 5]
    assert stored(table) == needed(table)
    assert len(list(table.rglob("*.parquet"))) == 6


@pytest.mark.parametrize(
    "victim",
    [
        "consumer/consumer-reader",
        "tag/tag-second",
        "branch/branch-b/snapshot/snapshot-2",
        "snapshot/snapshot-2",
        "snapshot/snapshot-5",
    ],
)
def test_what_can_not_be_read_stops_it(connector: Connector, table: Path, victim: str) -> None:
    assert connector.maintenance is not None
    connector.maintenance.create_tag(NAME, CreateTagSpec("second", 2))
    connector.metadata.load_table(NAME).native.table.branch_manager().create_branch("b", "second")
    consume(table, "reader", 5)
    (table / victim).write_text('{"id": ')
    before = set(table.rglob("*"))

    with pytest.raises(JobError) as raised:
        expire(connector)

    assert raised.value.code is ErrorCode.METADATA_UNREADABLE
    assert set(table.rglob("*")) == before


@pytest.mark.parametrize("damage", ["gone", "torn"])
def test_unreadable_manifests_of_what_stays_stop_it(
    connector: Connector, table: Path, damage: str
) -> None:
    assert connector.maintenance is not None
    connector.maintenance.create_tag(NAME, CreateTagSpec("second", 2))
    tag = json.loads((table / "tag/tag-second").read_text())
    manifests = table / "manifest" / tag["deltaManifestList"]
    if damage == "gone":
        manifests.unlink()
    else:
        manifests.write_bytes(manifests.read_bytes()[:-20])
    before = set(table.rglob("*"))

    with pytest.raises(JobError) as raised:
        expire(connector)

    assert raised.value.code is ErrorCode.METADATA_UNREADABLE
    assert set(table.rglob("*")) == before


def test_what_another_engine_began_to_expire_goes(connector: Connector, table: Path) -> None:
    """Paimon removes data files and manifests before the snapshot itself."""
    first = json.loads((table / "snapshot/snapshot-1").read_text())
    (table / "manifest" / first["deltaManifestList"]).unlink()

    expire(connector)

    assert snapshot_ids(connector) == [5]
    assert read(connector) == [{"id": 5, "k": "x"}]


def test_schemas_are_not_removed(connector: Connector, table: Path) -> None:
    before = contents(table)
    with pytest.raises(
        NotSupportedError, match=r"clean_expired_metadata: shop\.orders is a Paimon"
    ):
        expire(connector, ExpireSnapshotsSpec(clean_expired_metadata=True))
    assert contents(table) == before


def test_a_table_without_snapshots_is_left_alone(connector: Connector) -> None:
    create(connector, {"id": "int"})

    assert not expire(connector).changes


def test_a_hostile_note_removes_nothing(connector: Connector, table: Path) -> None:
    kept = [str(table / "schema/schema-0"), str(table.parents[1] / "other"), str(table / "x")]
    for path in kept:
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).touch()
        (table / "removal").mkdir(exist_ok=True)
        note = {"files": [[path, "data"]]}
        (table / "removal/removal-1.json").write_text(json.dumps(note))

        with pytest.raises(JobError) as raised:
            expire(connector)

        assert raised.value.code is ErrorCode.METADATA_UNREADABLE
        assert Path(path).exists()
    assert snapshot_ids(connector) == [1, 2, 3, 4, 5]


def test_a_note_does_not_take_what_is_needed(connector: Connector, table: Path) -> None:
    (live,) = connector.metadata.plan_files(connector.metadata.load_table(NAME))
    (table / "removal").mkdir()
    note = table / "removal/removal-1.json"
    note.write_text(json.dumps({"files": [[live.path, "data"]]}))

    expire(connector)

    assert read(connector) == [{"id": 5, "k": "x"}]
    assert not note.exists()
