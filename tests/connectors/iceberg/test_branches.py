"""Branches: each change is one commit, that replaces and loses nothing of others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.contract.maintenance import (
    CreateBranchSpec,
    DeleteBranchSpec,
    FastForwardSpec,
    SetCurrentSnapshotSpec,
)
from spark_jobs.contract.properties import DAG_ID
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode
from spark_jobs.spi.branches import ConnectorBranches, Publishing
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.answers import answering, lost_answer, lost_request
from tests.connectors.iceberg.plain_history import (
    NAME,
    SCHEMA,
    append,
    ids,
    made,
    references,
    refusal,
    snapshots,
    table,
)
from tests.connectors.iceberg.plain_tables import PlainCatalog

AUDIT = TableName("db", "t$branch_audit")
MAKER = Publishing({})
_DAY = 86_400_000


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    """Three snapshots, which append the ids 0, 1 and 2."""
    return made(tmp_path)


@pytest.fixture
def branches(connector: Connector) -> ConnectorBranches:
    assert connector.branches is not None
    return connector.branches


def test_a_branch_begins_at_a_snapshot_a_tag_or_the_head(
    catalog: PlainCatalog, branches: ConnectorBranches
) -> None:
    first, second, newest = snapshots(catalog)
    table(catalog).manage_snapshots().create_tag(second, "kept").commit()
    whole = CreateBranchSpec("all", first, None, "9 d", "2 d", 4)

    assert branches.create_branch(NAME, whole).snapshot_id == first
    assert branches.create_branch(NAME, CreateBranchSpec("audit", tag="kept")).changes
    assert branches.create_branch(NAME, CreateBranchSpec("newest")).snapshot_id == newest
    assert branches.create_branch(AUDIT, CreateBranchSpec("of audit")).snapshot_id == second

    found = table(catalog).metadata.refs
    assert references(catalog)["all"] == ("branch", first, 9 * _DAY)
    assert (found["all"].max_snapshot_age_ms, found["all"].min_snapshots_to_keep) == (2 * _DAY, 4)
    assert references(catalog)["newest"] == ("branch", newest, None)
    append(catalog, 7, "audit")
    assert ids(catalog) == [0, 1, 2]


def test_nothing_is_replaced_by_a_branch(
    catalog: PlainCatalog, branches: ConnectorBranches
) -> None:
    first = snapshots(catalog)[0]
    manage = table(catalog).manage_snapshots()
    manage.create_tag(first, "daily").create_branch(first, "audit").commit()
    before = references(catalog)

    for name, kind in (("daily", "tag"), ("audit", "branch")):
        spec = CreateBranchSpec(name)
        code, text = refusal(lambda spec=spec: branches.create_branch(NAME, spec))
        assert code is ErrorCode.BRANCH_EXISTS
        assert f"db.t has a {kind} {name} already" in text
    quiet = CreateBranchSpec("audit", if_not_exists=True)
    assert not branches.create_branch(NAME, quiet).changes
    tagged = CreateBranchSpec("daily", if_not_exists=True)
    assert refusal(lambda: branches.create_branch(NAME, tagged))[0] is ErrorCode.BRANCH_EXISTS
    unknown = CreateBranchSpec("new", 77)
    code, _ = refusal(lambda: branches.create_branch(NAME, unknown))
    assert code is ErrorCode.SNAPSHOT_NOT_FOUND
    no_tag = CreateBranchSpec("new", tag="audit")
    assert refusal(lambda: branches.create_branch(NAME, no_tag))[0] is ErrorCode.TAG_NOT_FOUND
    assert references(catalog) == before


def test_a_branch_of_somebody_who_was_faster_stays(
    catalog: PlainCatalog,
    connector: Connector,
    branches: ConnectorBranches,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = snapshots(catalog)[0]

    def made_meanwhile(commit: Callable[[], Any]) -> Any:
        table(catalog).manage_snapshots().create_branch(first, "audit").commit()
        return commit()

    answering(connector, monkeypatch, made_meanwhile)

    code, text = refusal(lambda: branches.create_branch(NAME, CreateBranchSpec("audit")))

    assert code is ErrorCode.COMMIT_CONFLICT
    assert "somebody else changed the branch audit" in text
    assert references(catalog)["audit"] == ("branch", first, None)


@pytest.mark.parametrize("lost", [lost_answer, lost_request])
def test_what_a_lost_answer_did_is_found(
    catalog: PlainCatalog,
    connector: Connector,
    branches: ConnectorBranches,
    monkeypatch: pytest.MonkeyPatch,
    lost: Callable[[Any], Any],
) -> None:
    first, _, newest = snapshots(catalog)

    answering(connector, monkeypatch, lost)
    assert branches.create_branch(NAME, CreateBranchSpec("audit", first)).snapshot_id == first
    answering(connector, monkeypatch, lost)
    forwarded = branches.fast_forward(AUDIT, FastForwardSpec("main"), MAKER, dry_run=False)
    assert forwarded.snapshot_id == newest
    assert references(catalog)["audit"] == ("branch", newest, None)
    answering(connector, monkeypatch, lost)
    assert branches.delete_branch(NAME, DeleteBranchSpec("audit"), dry_run=False).tags == 1
    assert references(catalog).keys() == {"main"}


def test_a_branch_is_deleted_by_name(catalog: PlainCatalog, branches: ConnectorBranches) -> None:
    first = snapshots(catalog)[0]
    manage = table(catalog).manage_snapshots()
    manage.create_tag(first, "daily").create_branch(first, "audit").commit()
    before = references(catalog)

    assert branches.delete_branch(NAME, DeleteBranchSpec("audit"), dry_run=True).tags == 1
    for name in ("daily", "lost"):
        spec = DeleteBranchSpec(name)
        code, text = refusal(lambda spec=spec: branches.delete_branch(NAME, spec, dry_run=False))
        assert code is ErrorCode.BRANCH_NOT_FOUND
        assert "Use one of: audit, main" in text
    missing = DeleteBranchSpec("lost", if_exists=True)
    assert not branches.delete_branch(NAME, missing, dry_run=False).changes
    assert references(catalog) == before
    # It may be the target itself.
    assert branches.delete_branch(AUDIT, DeleteBranchSpec("audit"), dry_run=False).tags == 1
    assert references(catalog).keys() == {"main", "daily"}
    assert len(snapshots(catalog)) == 3


def test_a_branch_goes_forward_to_what_builds_on_it(
    catalog: PlainCatalog, branches: ConnectorBranches
) -> None:
    newest = snapshots(catalog)[-1]
    table(catalog).manage_snapshots().create_branch(newest, "audit").commit()
    append(catalog, 3, "audit")
    append(catalog, 4, "audit")
    head = references(catalog)["audit"][1]

    preview = branches.fast_forward(NAME, FastForwardSpec("audit"), MAKER, dry_run=True)
    assert (preview.snapshot_id, ids(catalog)) == (head, [0, 1, 2])
    assert branches.fast_forward(NAME, FastForwardSpec("audit"), MAKER, dry_run=False) == preview
    assert ids(catalog) == [0, 1, 2, 3, 4]
    assert not branches.fast_forward(NAME, FastForwardSpec("audit"), MAKER, dry_run=False).changes
    code, text = refusal(
        lambda: branches.fast_forward(NAME, FastForwardSpec("lost"), MAKER, dry_run=False)
    )
    assert code is ErrorCode.BRANCH_NOT_FOUND
    assert "Use one of: audit, main" in text


def test_a_branch_with_commits_of_its_own_does_not_go_forward(
    catalog: PlainCatalog,
    connector: Connector,
    branches: ConnectorBranches,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    newest = snapshots(catalog)[-1]
    table(catalog).manage_snapshots().create_branch(newest, "audit").commit()
    append(catalog, 3, "audit")

    def appended_meanwhile(commit: Callable[[], Any]) -> Any:
        append(catalog, 4)
        return commit()

    answering(connector, monkeypatch, appended_meanwhile)

    code, text = refusal(
        lambda: branches.fast_forward(NAME, FastForwardSpec("audit"), MAKER, dry_run=False)
    )

    assert code is ErrorCode.BRANCHES_DIVERGED
    assert f"does not come from snapshot {snapshots(catalog)[-1]} (append) of another" in text
    assert ids(catalog) == [0, 1, 2, 4]


def test_the_current_snapshot_is_any_that_the_table_has(
    catalog: PlainCatalog, branches: ConnectorBranches
) -> None:
    first, second, newest = snapshots(catalog)
    table(catalog).manage_snapshots().create_tag(newest, "newest").set_current_snapshot(
        first
    ).commit()

    def set_to(*to: Any, dag_id: str = "d") -> Any:
        spec = SetCurrentSnapshotSpec(*to)
        return branches.set_current_snapshot(NAME, spec, dag_id=dag_id, dry_run=False)

    # Nothing of anybody is left behind on the way forward.
    assert (set_to(None, "newest").snapshots, ids(catalog)) == (0, [0, 1, 2])
    code, text = refusal(lambda: set_to(second))
    assert code is ErrorCode.COMMITS_OF_OTHERS
    assert f"Setting db.t to snapshot {second} would take from others: snapshot {newest}" in text
    assert (set_to(second, None, True).snapshots, ids(catalog)) == (1, [0, 1])
    rows = pa.table({"id": [5]}, schema=SCHEMA)
    table(catalog).append(rows, snapshot_properties={DAG_ID: "d"})
    # The newest is no ancestor: a rollback would refuse it.
    assert refusal(lambda: set_to(newest, dag_id="e"))[0] is ErrorCode.COMMITS_OF_OTHERS
    assert set_to(newest).snapshot_id == newest
    assert ids(catalog) == [0, 1, 2]
    assert not set_to(newest).changes
    assert refusal(lambda: set_to(77))[0] is ErrorCode.SNAPSHOT_NOT_FOUND
    assert refusal(lambda: set_to(None, "lost"))[0] is ErrorCode.TAG_NOT_FOUND
