"""Tags are made once and deleted with what they kept; a rollback takes nothing unasked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.connectors.paimon.maintenance.table_maintenance import PaimonMaintenance
from spark_jobs.contract.maintenance import (
    CreateTagSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    MaintenanceReport,
    RollbackSpec,
)
from spark_jobs.contract.properties import DAG_ID
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.maintenance import ConnectorMaintenance
from tests.support.paimon_tables import (
    NAME,
    append,
    append_with_pypaimon,
    begin,
    create,
    inserts,
    merge,
    read,
    snapshot_ids,
)

ROWS = [{"id": number, "k": "x"} for number in range(1, 5)]


@pytest.fixture
def maintenance(connector: Connector) -> ConnectorMaintenance:
    assert connector.maintenance is not None
    return connector.maintenance


@pytest.fixture
def table(connector: Connector, warehouse: Path) -> Path:
    """Snapshots 1 to 4 of the DAG ``mine``, a row in each."""
    create(connector, {"id": "int", "k": "string"}, ["k"])
    for number, row in enumerate(ROWS, 1):
        handle = connector.metadata.load_table(NAME)
        batch, properties = inserts(handle, [row]), {DAG_ID: "mine"}
        merge(connector, handle, batch, operation_id=f"op-{number}", properties=properties)
        connector.writes.release_guard(handle, f"op-{number}")
    return warehouse / "shop.db/orders"


def back(maintenance: ConnectorMaintenance, dag_id: str = "mine", **spec: Any) -> MaintenanceReport:
    return maintenance.roll_back(NAME, RollbackSpec(**spec), dag_id=dag_id, dry_run=False)


def at_tag(connector: Connector, name: str) -> list[dict[str, Any]]:
    native = connector.metadata.load_table(NAME).native.table.copy({"scan.tag-name": name})
    builder = native.new_read_builder()
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()
    return sorted(rows, key=repr)


@pytest.mark.parametrize(("snapshot_id", "expected"), [(None, ROWS), (2, ROWS[:2])])
def test_a_tag_reads_as_its_snapshot(
    connector: Connector,
    maintenance: ConnectorMaintenance,
    table: Path,
    snapshot_id: int | None,
    expected: list[dict[str, Any]],
) -> None:
    report = maintenance.create_tag(NAME, CreateTagSpec("t=1 ü", snapshot_id, "7 d"))

    assert report.snapshot_id == (snapshot_id or 4)
    append(connector, [{"id": 9, "k": "y"}])
    assert at_tag(connector, "t=1 ü") == expected
    document = json.loads((table / "tag/tag-t=1 ü").read_text())
    assert document["tagTimeRetained"] == 7 * 86_400
    assert len(document["tagCreateTime"]) >= 5


def test_a_tag_of_the_name_is_left_alone(maintenance: ConnectorMaintenance, table: Path) -> None:
    maintenance.create_tag(NAME, CreateTagSpec("t", 2))
    before = (table / "tag/tag-t").read_bytes()

    with pytest.raises(JobError) as raised:
        maintenance.create_tag(NAME, CreateTagSpec("t", 3))
    assert raised.value.code is ErrorCode.TAG_EXISTS
    assert not maintenance.create_tag(NAME, CreateTagSpec("t", 3, if_not_exists=True)).changes

    assert (table / "tag/tag-t").read_bytes() == before


def test_unknown_snapshots_and_tags_are_named(
    maintenance: ConnectorMaintenance, table: Path
) -> None:
    maintenance.create_tag(NAME, CreateTagSpec("known", 2))
    cases = [
        (
            lambda: maintenance.create_tag(NAME, CreateTagSpec("t", 7)),
            "SNAPSHOT_NOT_FOUND",
            "snapshot 7",
        ),
        (lambda: back(maintenance, snapshot_id=7), "SNAPSHOT_NOT_FOUND", "snapshot 7"),
        (lambda: back(maintenance, tag="lost"), "TAG_NOT_FOUND", "no tag lost"),
        (
            lambda: maintenance.delete_tag(NAME, DeleteTagSpec("lost"), dry_run=False),
            "TAG_NOT_FOUND",
            "no tag lost",
        ),
    ]
    for call, code, text in cases:
        with pytest.raises(JobError, match=text) as raised:
            call()
        assert raised.value.code.name == code
    assert "known" in raised.value.remedy
    assert not maintenance.delete_tag(
        NAME, DeleteTagSpec("lost", if_exists=True), dry_run=False
    ).changes


def test_tags_whose_retention_is_over_go(maintenance: ConnectorMaintenance, table: Path) -> None:
    maintenance.create_tag(NAME, CreateTagSpec("forever", 1))
    maintenance.create_tag(NAME, CreateTagSpec("long", 2, "1 h"))
    maintenance.create_tag(NAME, CreateTagSpec("short", 2, "1 ms"))

    preview = maintenance.delete_tag(NAME, DeleteTagSpec(None), dry_run=True)
    assert len(list((table / "tag").iterdir())) == 3
    report = maintenance.delete_tag(NAME, DeleteTagSpec(None), dry_run=False)

    assert report == preview
    assert report.tags == 1
    assert {path.name for path in (table / "tag").iterdir()} == {"tag-forever", "tag-long"}


@pytest.mark.parametrize("spec", [{"snapshot_id": 2}, {"tag": "t"}])
def test_rollback(
    connector: Connector, maintenance: ConnectorMaintenance, table: Path, spec: dict[str, Any]
) -> None:
    maintenance.create_tag(NAME, CreateTagSpec("t", 2))
    preview = maintenance.roll_back(NAME, RollbackSpec(**spec), dag_id="mine", dry_run=True)
    assert snapshot_ids(connector) == [1, 2, 3, 4]

    report = back(maintenance, **spec)

    assert report == preview
    assert (report.snapshots, report.latest_snapshot_id) == (2, 2)
    assert snapshot_ids(connector) == [1, 2]
    assert read(connector) == ROWS[:2]
    append_with_pypaimon(connector.metadata.load_table(NAME), [{"id": 30, "k": "y"}])
    assert read(connector) == [*ROWS[:2], {"id": 30, "k": "y"}]
    assert snapshot_ids(connector) == [1, 2, 3]


def test_a_tag_of_an_expired_snapshot_comes_back(
    connector: Connector, maintenance: ConnectorMaintenance, table: Path
) -> None:
    maintenance.create_tag(NAME, CreateTagSpec("t", 2, "7 d"))
    expire = ExpireSnapshotsSpec(retain_min=1, older_than="0 s")
    maintenance.expire_snapshots(NAME, expire, dry_run=False)
    assert snapshot_ids(connector) == [4]

    back(maintenance, tag="t")

    assert snapshot_ids(connector) == [2]
    assert read(connector) == ROWS[:2]
    append(connector, [{"id": 30, "k": "y"}])
    assert read(connector) == [*ROWS[:2], {"id": 30, "k": "y"}]


def test_commits_of_others_are_not_dropped(
    connector: Connector, maintenance: ConnectorMaintenance, table: Path
) -> None:
    append_with_pypaimon(connector.metadata.load_table(NAME), [{"id": 9, "k": "y"}])

    for dag_id, number in (("mine", 5), ("", 3), ("another", 3)):
        with pytest.raises(JobError, match=rf"snapshot {number} \(APPEND\) of") as raised:
            back(maintenance, dag_id, snapshot_id=2)
        assert raised.value.code is ErrorCode.COMMITS_OF_OTHERS
    assert snapshot_ids(connector) == [1, 2, 3, 4, 5]

    back(maintenance, snapshot_id=2, force=True)
    assert read(connector) == ROWS[:2]


def test_what_others_count_on_is_not_dropped(
    connector: Connector, maintenance: ConnectorMaintenance, table: Path
) -> None:
    maintenance.create_tag(NAME, CreateTagSpec("later", 3))
    begin(connector, connector.metadata.load_table(NAME), "running")
    (table / "consumer/consumer-reader").write_text('{"nextSnapshot": 5}')

    with pytest.raises(JobError) as raised:
        back(maintenance, snapshot_id=2)

    assert raised.value.code is ErrorCode.COMMITS_OF_OTHERS
    assert "tag later, operation running, consumer reader" in raised.value.message
    report = back(maintenance, snapshot_id=2, force=True)
    assert report.tags == 1
    assert not list((table / "tag").iterdir())


def test_the_base_of_a_running_operation_is_not_dropped(
    connector: Connector, maintenance: ConnectorMaintenance, table: Path
) -> None:
    begin(connector, connector.metadata.load_table(NAME), "running")

    with pytest.raises(JobError) as raised:
        back(maintenance, snapshot_id=3)

    assert raised.value.code is ErrorCode.COMMITS_OF_OTHERS
    assert raised.value.message.endswith("would take from others: operation running.")
    assert snapshot_ids(connector) == [1, 2, 3, 4]
    assert not back(maintenance, snapshot_id=4).changes


def test_a_reader_that_has_read_no_dropped_snapshot_hinders_nothing(
    connector: Connector, maintenance: ConnectorMaintenance, table: Path
) -> None:
    (table / "consumer").mkdir(exist_ok=True)
    (table / "consumer/consumer-reader").write_text('{"nextSnapshot": 4}')

    assert back(maintenance, snapshot_id=3).snapshots == 1
    assert snapshot_ids(connector) == [1, 2, 3]


class CommitsMeanwhile:
    """A remover beside which somebody commits when the first snapshot is dropped."""

    def __init__(self, connector: Connector, remover: Any) -> None:
        self._connector, self._remover, self._is_first = connector, remover, True

    def remove_in_order(self, paths: Sequence[str]) -> None:
        if self._is_first:
            self._is_first = False
            append(self._connector, [{"id": 5, "k": "x"}], "late")
        self._remover.remove_in_order(paths)


def overtaken(connector: Connector) -> PaimonMaintenance:
    own: Any = connector.maintenance
    storage = replace(own._storage, remover=CommitsMeanwhile(connector, own._storage.remover))
    return PaimonMaintenance(own._metadata, storage)


def test_a_commit_during_a_rollback_stays(connector: Connector, table: Path) -> None:
    with pytest.raises(JobError, match="Somebody else committed") as raised:
        back(overtaken(connector), snapshot_id=2)

    assert raised.value.code is ErrorCode.COMMIT_CONFLICT
    assert snapshot_ids(connector) == [1, 2, 3, 4, 5]
    assert len(read(connector)) == 5


def test_a_commit_during_a_forced_rollback_goes_too(connector: Connector, table: Path) -> None:
    report = back(overtaken(connector), snapshot_id=2, force=True)

    assert (report.snapshots, report.latest_snapshot_id) == (3, 2)
    assert snapshot_ids(connector) == [1, 2]
    assert read(connector) == ROWS[:2]
