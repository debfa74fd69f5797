"""A branch is published as one snapshot, once, and nobody's commit is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pypaimon.schema.data_types import AtomicType
from pypaimon.schema.schema_change import SchemaChange

from spark_jobs.contract.maintenance import (
    CreateBranchSpec,
    MaintenanceReport,
)
from spark_jobs.errors import ErrorCode
from spark_jobs.spi import rows
from spark_jobs.spi.branches import ConnectorBranches
from spark_jobs.spi.connector import Connector
from spark_jobs.storage.hard_link import HardLinkFiles
from spark_jobs.storage.removal import SingleRemover
from tests.connectors.paimon.branching import (
    BRANCH,
    FIRST,
    THIRD,
    begun,
    branches,
    changed,
    ended,
    latest,
    published,
    refused,
    table,
)
from tests.support.noted import Noted
from tests.support.paimon_tables import (
    NAME,
    append,
    append_with_pypaimon,
    change_rows,
    create,
    merge,
    read,
    snapshot_ids,
)

__all__ = ["branches", "table"]


def test_main_gets_all_of_the_branch_as_one_snapshot(
    connector: Connector, branches: ConnectorBranches, table: Path
) -> None:
    begun(branches)
    changed(connector)
    append(connector, [{"id": 4, "k": "x"}], "more", BRANCH)
    wanted, head = read(connector, BRANCH), latest(table, "branch/branch-b/")
    assert published(branches, dry_run=True).snapshot_id == 3
    assert read(connector) == FIRST

    report = published(branches)

    assert (report.snapshot_id, report.latest_snapshot_id) == (3, 3)
    assert read(connector) == wanted == [{"id": 2, "k": "y"}, THIRD, {"id": 4, "k": "x"}]
    found = latest(table)
    assert (found["id"], found["commitKind"], found["commitUser"]) == (3, "OVERWRITE", "publish")
    assert found["totalRecordCount"] == head["totalRecordCount"]
    assert found["deltaRecordCount"] == 1
    assert found["properties"]["merge.published-branch"] == "b"
    assert not published(branches, "again").changes
    append(connector, [{"id": 5, "k": "x"}], "on", NAME)
    assert len(read(connector)) == 4


def test_appends_stay_appends(
    connector: Connector, branches: ConnectorBranches, table: Path
) -> None:
    begun(branches)
    append(connector, [THIRD], "a", BRANCH)
    append(connector, [{"id": 4, "k": "x"}], "b", BRANCH)

    published(branches)

    assert latest(table)["commitKind"] == "APPEND"
    assert latest(table)["deltaRecordCount"] == 2


def test_a_branch_goes_on_and_is_published_again(
    connector: Connector, branches: ConnectorBranches, table: Path
) -> None:
    begun(branches)
    append(connector, [THIRD], "a", BRANCH)
    append(connector, [{"id": 4, "k": "x"}], "b", BRANCH)
    published(branches, "first")
    append(connector, [{"id": 5, "k": "x"}], "c", BRANCH)

    report = published(branches, "second")

    assert report.snapshot_id == 4
    assert read(connector) == read(connector, BRANCH)
    assert latest(table)["deltaRecordCount"] == 1
    # And the other way round: main goes on, the branch follows.
    append(connector, [{"id": 6, "k": "x"}], "d")
    assert published(branches, "third", BRANCH, "main").snapshot_id == 6
    assert read(connector, BRANCH) == read(connector)


def test_a_branch_that_main_has_left_is_refused(
    connector: Connector, branches: ConnectorBranches, table: Path
) -> None:
    begun(branches)
    changed(connector)
    append_with_pypaimon(connector.metadata.load_table(NAME), [{"id": 9, "k": "x"}])
    before = read(connector)

    code, text = refused(lambda: published(branches))

    assert code is ErrorCode.BRANCHES_DIVERGED
    assert "snapshot 3 (APPEND) of user" in text
    assert read(connector) == before
    assert snapshot_ids(connector) == [1, 2, 3]


def test_columns_of_the_branch_come_first(
    connector: Connector, branches: ConnectorBranches, table: Path
) -> None:
    begun(branches)
    catalog = connector.metadata.load_table(NAME).native.table.catalog_environment.catalog_loader
    catalog.load().alter_table(str(BRANCH), [SchemaChange.add_column("n", AtomicType("INT"))])
    append(connector, [{**THIRD, "n": 7}], "n", BRANCH)

    published(branches)

    assert read(connector) == read(connector, BRANCH)
    assert latest(table)["schemaId"] == 1
    catalog.load().alter_table(str(NAME), [SchemaChange.add_column("m", AtomicType("INT"))])
    append(connector, [{"id": 8, "k": "x", "n": 1}], "o", BRANCH)
    code, text = refused(lambda: published(branches, "again"))
    assert (code, "schema 2" in text) == (ErrorCode.BRANCHES_DIVERGED, True)


def test_row_ids_go_on_where_the_branch_ended(
    connector: Connector, branches: ConnectorBranches, warehouse: Path
) -> None:
    options = {"row-tracking.enabled": "true"}
    create(connector, {"id": "int", "k": "string"}, [], options)
    append(connector, FIRST, "one")
    begun(branches)
    append(connector, [THIRD], "two", BRANCH)
    append(connector, [{"id": 4, "k": "x"}], "three", BRANCH)

    published(branches)
    append(connector, [{"id": 5, "k": "x"}], "four")

    found = latest(warehouse / "shop.db/orders")
    assert (found["id"], found["nextRowId"]) == (3, 5)
    assert len(read(connector)) == 5


def test_several_commits_of_columns_are_refused(
    connector: Connector, branches: ConnectorBranches, warehouse: Path
) -> None:
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    create(connector, {"id": "int", "k": "string"}, [], options)
    append(connector, FIRST, "one")
    begun(branches)
    for number in (1, 2):
        branch = connector.metadata.load_table(BRANCH)
        values = {"file": 0, "position": 0, "k": f"new {number}"}
        update = change_rows(branch, rows.UPDATE, [values])
        merge(connector, branch, update, operation_id=f"u{number}", assigned=(("k",),))

    code, text = refused(lambda: published(branches))

    assert (code, "data evolution" in text) == (ErrorCode.NOT_SUPPORTED, True)
    assert read(connector) == FIRST


def test_two_publishers_at_once_publish_once(
    connector: Connector, branches: ConnectorBranches, table: Path
) -> None:
    begun(branches)
    changed(connector)
    reports: list[MaintenanceReport] = []
    barrier = threading.Barrier(2)

    def publish(operation_id: str) -> None:
        barrier.wait()
        reports.append(published(branches, operation_id))

    threads = [threading.Thread(target=publish, args=(f"p{n}",)) for n in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(each.changes for each in reports) == [False, True]
    assert snapshot_ids(connector) == [1, 2, 3]
    assert read(connector) == [FIRST[1], THIRD]


def test_a_writer_of_main_that_is_faster_is_not_lost(
    connector: Connector,
    branches: ConnectorBranches,
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun(branches)
    changed(connector)
    real = HardLinkFiles.create

    def overtaken(files: Any, path: str, text: str) -> bool:
        if path.endswith("orders/snapshot/snapshot-3"):
            monkeypatch.setattr(HardLinkFiles, "create", real)
            append(connector, [{"id": 9, "k": "x"}], "faster")
        return real(files, path, text)

    monkeypatch.setattr(HardLinkFiles, "create", overtaken)
    code, text = refused(lambda: published(branches))

    assert (code, "snapshot 3" in text) == (ErrorCode.BRANCHES_DIVERGED, True)
    assert [row["id"] for row in read(connector)] == [1, 2, 9]


class Died(BaseException):
    """As if the process were killed."""


def at_each_step(
    act: Callable[[Noted], Any],
    again: Callable[[Noted], Any],
    prepare: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> int:
    """Die before and after each change of the storage, then try again; the number of steps."""
    counted = {"left": 0, "after": False}

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any) -> Any:
            counted["left"] -= 1
            if counted["left"] == 0 and not counted["after"]:
                raise Died
            done = real(*arguments)
            if counted["left"] == 0:
                raise Died
            return done

        return step

    creating, removing, noting = HardLinkFiles.create, SingleRemover._remove, Noted.write
    number = 0
    while True:
        number += 1
        for after in (False, True):
            prepare()
            note = Noted()
            counted.update(left=number, after=after)
            with monkeypatch.context() as patched:
                patched.setattr(HardLinkFiles, "create", dying(creating))
                patched.setattr(SingleRemover, "_remove", dying(removing))
                patched.setattr(Noted, "write", dying(noting))
                try:
                    act(note)
                except Died:
                    pass
                else:
                    return number - 1
            again(note)


def test_each_step_may_be_the_last(
    connector: Connector,
    branches: ConnectorBranches,
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without_branch() -> None:
        ended(branches, if_exists=True)

    def begin(note: Noted) -> None:
        report = branches.create_branch(NAME, CreateBranchSpec("b"), note=note)
        assert report.snapshot_id == latest(table)["id"]

    def begin_again(note: Noted) -> None:
        begin(note)
        assert read(connector, BRANCH) == read(connector)

    assert at_each_step(begin, begin_again, without_branch, monkeypatch) >= 5

    def with_commit() -> None:
        without_branch()
        begun(branches)
        append(connector, [{"id": 4, "k": "x"}], "more", BRANCH)

    def publish(note: Noted) -> MaintenanceReport:
        return published(branches, note=note)

    def publish_again(note: Noted) -> None:
        before = len(snapshot_ids(connector))
        assert publish(note).snapshot_id == snapshot_ids(connector)[-1]
        assert len(snapshot_ids(connector)) - before in (0, 1)
        assert read(connector) == read(connector, BRANCH)
        tags = {path.name for path in table.glob("tag/*")}
        assert f"tag-merge-branch-b-published-{snapshot_ids(connector)[-1]}" in tags

    assert at_each_step(publish, publish_again, with_commit, monkeypatch) >= 4

    def end_again(note: Noted) -> None:
        assert ended(branches, note).tags == 1
        assert not (table / "branch/branch-b").exists()
        assert not list(table.glob("tag/*"))

    assert (
        at_each_step(lambda note: ended(branches, note), end_again, with_commit, monkeypatch) >= 3
    )
