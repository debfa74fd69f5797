"""Branches are made, published and deleted once, and nobody's commit or file is lost."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pypaimon.schema.data_types import AtomicType
from pypaimon.schema.schema_change import SchemaChange

from spark_jobs.contract.maintenance import (
    CherryPickSpec,
    CreateBranchSpec,
    CreateTagSpec,
    DeleteBranchSpec,
    ExpireSnapshotsSpec,
    FastForwardSpec,
    MaintenanceReport,
    RemoveOrphanFilesSpec,
    SetCurrentSnapshotSpec,
)
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi import rows
from spark_jobs.spi.branches import ConnectorBranches, Publishing
from spark_jobs.spi.change_notes import NO_NOTE
from spark_jobs.spi.connector import Connector
from spark_jobs.storage.hard_link import HardLinkFiles
from spark_jobs.storage.removal import SingleRemover
from tests.support.noted import Noted
from tests.support.paimon_tables import (
    NAME,
    append,
    append_with_pypaimon,
    change_rows,
    create,
    data_files,
    inserts,
    merge,
    read,
    snapshot_ids,
)

BRANCH = TableName("shop", "orders$branch_b")
FIRST = [{"id": 1, "k": "x"}, {"id": 2, "k": "y"}]
THIRD = {"id": 3, "k": "z"}


@pytest.fixture
def branches(connector: Connector) -> ConnectorBranches:
    assert connector.branches is not None
    return connector.branches


@pytest.fixture
def table(connector: Connector, warehouse: Path) -> Path:
    """Two snapshots, the second of which added nothing but row 2."""
    create(connector, {"id": "int", "k": "string"}, ["k"], {"deletion-vectors.enabled": "true"})
    append(connector, FIRST[:1], "one")
    append(connector, FIRST[1:], "two")
    for guard in (warehouse / "shop.db/orders").rglob("consumer-*"):
        guard.unlink()
    return warehouse / "shop.db/orders"


def begun(branches: ConnectorBranches, **spec: Any) -> MaintenanceReport:
    return branches.create_branch(NAME, CreateBranchSpec("b", **spec))


def published(
    branches: ConnectorBranches,
    operation_id: str = "publish",
    name: TableName = NAME,
    to: str = "b",
    note: Any = NO_NOTE,
    *,
    dry_run: bool = False,
) -> MaintenanceReport:
    publishing = Publishing({OPERATION_ID: operation_id})
    return branches.fast_forward(name, FastForwardSpec(to), publishing, dry_run=dry_run, note=note)


def ended(branches: ConnectorBranches, note: Any = NO_NOTE, **spec: Any) -> MaintenanceReport:
    return branches.delete_branch(NAME, DeleteBranchSpec("b", **spec), dry_run=False, note=note)


def refused(act: Callable[[], object]) -> tuple[ErrorCode, str]:
    with pytest.raises(JobError) as raised:
        act()
    return raised.value.code, raised.value.message


def changed(connector: Connector) -> None:
    """The branch loses row 1 and gets row 3."""
    branch = connector.metadata.load_table(BRANCH)
    gone = change_rows(branch, rows.DELETE, [{"file": 0, "position": 0}])
    merge(connector, branch, gone, inserts(branch, [THIRD]), operation_id="change")
    connector.writes.release_guard(branch, "change")


def latest(table: Path, branch: str = "") -> dict[str, Any]:
    found = sorted(table.glob(f"{branch}snapshot/snapshot-*"), key=lambda p: int(p.name[9:]))
    document: dict[str, Any] = json.loads(found[-1].read_text())
    return document


def test_a_branch_begins_at_the_latest_snapshot_another_one_or_a_tag(
    connector: Connector, branches: ConnectorBranches, table: Path
) -> None:
    assert connector.maintenance is not None
    connector.maintenance.create_tag(NAME, CreateTagSpec("start", 1))
    made = [
        branches.create_branch(NAME, CreateBranchSpec(*each)).snapshot_id
        for each in [("b",), ("first", 1), ("tagged", None, "start")]
    ]

    assert made == [2, 1, 1]
    assert read(connector, BRANCH) == FIRST
    for name in ("first", "tagged"):
        assert read(connector, TableName("shop", f"orders$branch_{name}")) == FIRST[:1]
    files = {
        str(p.relative_to(table)) for p in (table / "branch/branch-b").rglob("*-*") if p.is_file()
    }
    folder = "branch/branch-b/"
    assert files == {
        f"{folder}tag/tag-merge-branch-b",
        f"{folder}snapshot/snapshot-2",
        f"{folder}schema/schema-0",
    }
    assert (table / "tag/tag-merge-branch-b").read_text() == (
        table / "snapshot/snapshot-2"
    ).read_text()


def test_nothing_is_replaced_and_what_is_missing_is_named(
    connector: Connector, branches: ConnectorBranches, table: Path
) -> None:
    begun(branches)
    changed(connector)

    assert refused(lambda: begun(branches))[0] is ErrorCode.BRANCH_EXISTS
    assert not begun(branches, if_not_exists=True).changes
    assert len(read(connector, BRANCH)) == 2
    for act, code in [
        (
            lambda: branches.create_branch(NAME, CreateBranchSpec("c", 7)),
            ErrorCode.SNAPSHOT_NOT_FOUND,
        ),
        (
            lambda: branches.create_branch(NAME, CreateBranchSpec("c", None, "no")),
            ErrorCode.TAG_NOT_FOUND,
        ),
        (lambda: published(branches, to="c"), ErrorCode.BRANCH_NOT_FOUND),
        (
            lambda: branches.delete_branch(NAME, DeleteBranchSpec("c"), dry_run=False),
            ErrorCode.BRANCH_NOT_FOUND,
        ),
        (lambda: branches.create_branch(BRANCH, CreateBranchSpec("c")), ErrorCode.NOT_SUPPORTED),
    ]:
        assert refused(act)[0] is code
    missing = DeleteBranchSpec("c", if_exists=True)
    assert not branches.delete_branch(NAME, missing, dry_run=False).changes


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        (CreateBranchSpec("c", retention="7 d"), "retention"),
        (CreateBranchSpec("c", max_snapshot_age="7 d"), "max_snapshot_age"),
        (CreateBranchSpec("c", min_snapshots_to_keep=2), "min_snapshots_to_keep"),
        (CreateBranchSpec("c$d"), "branch"),
        (CreateBranchSpec("c-published-7"), "branch"),
    ],
)
def test_what_has_no_meaning_is_refused_by_name(
    branches: ConnectorBranches, table: Path, spec: CreateBranchSpec, word: str
) -> None:
    code, text = refused(lambda: branches.create_branch(NAME, spec))

    assert (code, text.startswith(f"{word}: ")) == (ErrorCode.NOT_SUPPORTED, True)
    assert not (table / "branch").exists()


def test_only_a_publication_moves_a_table_forward(branches: ConnectorBranches, table: Path) -> None:
    pick, to = CherryPickSpec(1), SetCurrentSnapshotSpec(1)
    code, text = refused(lambda: branches.cherry_pick(NAME, pick, Publishing({}), dry_run=False))
    assert (code, text.split(":")[0]) == (ErrorCode.NOT_SUPPORTED, "cherry_pick")
    code, text = refused(lambda: branches.set_current_snapshot(NAME, to, dag_id="d", dry_run=False))
    assert (code, text.split(":")[0]) == (ErrorCode.NOT_SUPPORTED, "set_current_snapshot")


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


def test_appends_stay_appends_and_compactions_are_no_change(
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


def test_deleting_leaves_what_others_need(
    connector: Connector, branches: ConnectorBranches, table: Path, warehouse: Path
) -> None:
    assert connector.maintenance is not None
    begun(branches)
    changed(connector)
    published(branches)
    append(connector, [{"id": 4, "k": "lost"}], "late", BRANCH)
    wanted = read(connector)

    assert ended(branches).tags == 1

    assert not (table / "branch/branch-b").exists()
    assert not list(table.glob("tag/*"))
    assert refused(lambda: ended(branches))[0] is ErrorCode.BRANCH_NOT_FOUND
    assert read(connector) == wanted
    orphans = RemoveOrphanFilesSpec("1 d")
    for file in table.rglob("*"):
        os.utime(file, (0, 0))
    for guard in table.rglob("consumer-*"):
        guard.unlink()
    report = connector.maintenance.remove_orphan_files(NAME, orphans, dry_run=False)
    assert [file.split("/")[0] for file in report.files if "bucket" in file] == ["k=lost"]
    assert read(connector) == wanted
    assert begun(branches).snapshot_id == 3


def test_expiry_heeds_a_branch_and_what_was_published(
    connector: Connector, branches: ConnectorBranches, table: Path, warehouse: Path
) -> None:
    assert connector.maintenance is not None
    begun(branches)
    branch = connector.metadata.load_table(NAME)
    files = connector.metadata.plan_files(branch)
    merge(
        connector,
        branch,
        *[
            change_rows(branch, rows.DELETE, [{"file": each.ordinal, "position": 0}])
            for each in files
        ],
        operation_id="all",
    )
    connector.writes.release_guard(branch, "all")
    expire = ExpireSnapshotsSpec(retain_max=1, retain_min=1, older_than="0 s")

    connector.maintenance.expire_snapshots(NAME, expire, dry_run=False)

    assert read(connector) == []
    assert read(connector, BRANCH) == FIRST
    assert len(data_files(warehouse)) == 2


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
