"""Changelogs live as long as their snapshots: expiry removes them, and nothing that needs them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pypaimon.schema.schema_change import SchemaChange

from spark_jobs.contract.maintenance import (
    CreateTagSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    MaintenanceReport,
    RemoveOrphanFilesSpec,
    RollbackSpec,
)
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.maintenance import ConnectorMaintenance
from tests.support.paimon_changelogs import with_changelogs
from tests.support.paimon_tables import NAME, append_with_pypaimon, snapshot_ids
from tests.support.reachable import needed, stored

NOW = ExpireSnapshotsSpec(retain_min=1, older_than="0 s")


@pytest.fixture
def table(connector: Connector, warehouse: Path) -> Path:
    """Snapshots 1 to 5, each with a changelog."""
    return with_changelogs(connector, warehouse, 5)


@pytest.fixture
def maintenance(connector: Connector) -> ConnectorMaintenance:
    assert connector.maintenance is not None
    return connector.maintenance


def expire(
    maintenance: ConnectorMaintenance, spec: ExpireSnapshotsSpec = NOW, *, dry_run: bool = False
) -> MaintenanceReport:
    return maintenance.expire_snapshots(NAME, spec, dry_run=dry_run)


def changelogs(table: Path) -> set[str]:
    return {path.name for path in (table / "bucket-0").glob("changelog-*")}


def lists(table: Path) -> dict[int, str | None]:
    """The changelog's manifest list of each snapshot."""
    documents = [json.loads(path.read_text()) for path in (table / "snapshot").glob("snapshot-*")]
    return {each["id"]: each.get("changelogManifestList") for each in documents}


def test_the_changelog_of_an_expired_snapshot_goes(
    maintenance: ConnectorMaintenance, table: Path
) -> None:
    before, all_lists = stored(table), lists(table)
    assert len(changelogs(table)) == 5

    spec = ExpireSnapshotsSpec(retain_min=2, older_than="0 s")
    preview = expire(maintenance, spec, dry_run=True)
    assert stored(table) == before
    report = expire(maintenance, spec)

    assert report == preview
    assert (report.snapshots, report.data_files) == (3, 3)
    assert len(changelogs(table)) == 2
    assert lists(table) == {number: all_lists[number] for number in (4, 5)}
    assert stored(table) == needed(table)


def test_a_tag_does_not_keep_the_changelog(
    connector: Connector, maintenance: ConnectorMaintenance, table: Path
) -> None:
    maintenance.create_tag(NAME, CreateTagSpec("two", 2))

    expire(maintenance)
    assert len(changelogs(table)) == 1
    assert stored(table) == needed(table)
    maintenance.delete_tag(NAME, DeleteTagSpec("two"), dry_run=False)

    assert stored(table) == needed(table)
    assert snapshot_ids(connector) == [5]


def test_a_tag_restores_its_snapshot_without_a_changelog(
    connector: Connector, maintenance: ConnectorMaintenance, table: Path
) -> None:
    maintenance.create_tag(NAME, CreateTagSpec("two", 2))
    expire(maintenance)

    back = RollbackSpec(tag="two", force=True)
    maintenance.roll_back(NAME, back, dag_id="", dry_run=False)

    assert lists(table) == {2: None}
    append_with_pypaimon(connector.metadata.load_table(NAME), [{"id": 9, "v": "x"}])
    expire(maintenance)
    assert list(lists(table)) == [3]
    assert lists(table)[3] is not None


def test_a_changelog_that_another_engine_removed_is_missed_by_nobody(
    maintenance: ConnectorMaintenance, table: Path
) -> None:
    name = lists(table)[4]
    assert name is not None
    (table / "manifest" / name).unlink()

    report = expire(maintenance, ExpireSnapshotsSpec(retain_min=3, older_than="0 s"))

    assert report.snapshots == 2
    assert set(lists(table)) == {3, 4, 5}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("changelog.num-retained.max", "11"),
        ("changelog.num-retained.min", "3"),
        ("changelog.time-retained", "2 h"),
    ],
)
def test_changelogs_that_are_kept_longer_are_refused(
    connector: Connector, maintenance: ConnectorMaintenance, table: Path, option: str, value: str
) -> None:
    spec = ExpireSnapshotsSpec(retain_min=2, retain_max=10, older_than="1 h")
    native = connector.metadata.load_table(NAME).native.table
    catalog = native.catalog_environment.catalog_loader.load()
    catalog.alter_table(str(NAME), [SchemaChange.set_option(option, value)])
    before = stored(table)

    with pytest.raises(NotSupportedError, match=f"{option} = {value}"):
        expire(maintenance, spec)
    assert stored(table) == before
    longer = ExpireSnapshotsSpec(retain_min=3, retain_max=11, older_than="2 h")
    assert expire(maintenance, longer).snapshots == 0


Care = Callable[[ConnectorMaintenance], MaintenanceReport]
CARE: dict[str, Care] = {
    "expire": expire,
    "orphans": lambda m: m.remove_orphan_files(NAME, RemoveOrphanFilesSpec(), dry_run=False),
    "tags": lambda m: m.delete_tag(NAME, DeleteTagSpec("two"), dry_run=False),
    "rollback": lambda m: m.roll_back(NAME, RollbackSpec(2, force=True), dag_id="", dry_run=False),
}


@pytest.mark.parametrize("care", CARE)
def test_changelogs_without_snapshots_are_refused(
    maintenance: ConnectorMaintenance, table: Path, care: str
) -> None:
    maintenance.create_tag(NAME, CreateTagSpec("two", 2))
    (table / "changelog").mkdir()
    (table / "changelog/changelog-1").write_text("{}")
    before = stored(table)

    with pytest.raises(NotSupportedError, match="changelogs that outlive their snapshots"):
        CARE[care](maintenance)

    assert stored(table) == before
    assert set(lists(table)) == {1, 2, 3, 4, 5}
