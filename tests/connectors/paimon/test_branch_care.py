"""Branches begin and end once, and nobody's file is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spark_jobs.contract.maintenance import (
    CherryPickSpec,
    CreateBranchSpec,
    CreateTagSpec,
    DeleteBranchSpec,
    ExpireSnapshotsSpec,
    RemoveOrphanFilesSpec,
    SetCurrentSnapshotSpec,
)
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode
from spark_jobs.spi import rows
from spark_jobs.spi.branches import ConnectorBranches, Publishing
from spark_jobs.spi.connector import Connector
from tests.connectors.paimon.branching import (
    BRANCH,
    FIRST,
    begun,
    branches,
    changed,
    ended,
    published,
    refused,
    table,
)
from tests.support.paimon_tables import (
    NAME,
    append,
    change_rows,
    data_files,
    merge,
    read,
)

__all__ = ["branches", "table"]


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
