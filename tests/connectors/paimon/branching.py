"""A table with a branch, and what is done with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contract.maintenance import (
    CreateBranchSpec,
    DeleteBranchSpec,
    FastForwardSpec,
    MaintenanceReport,
)
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi import rows
from spark_jobs.spi.alterations import NO_NOTE
from spark_jobs.spi.branches import ConnectorBranches, Publishing
from spark_jobs.spi.connector import Connector
from tests.support.noted import Noted
from tests.support.paimon_tables import (
    NAME,
    append,
    change_rows,
    create,
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


def from_begin_to_end(connector: Connector) -> None:
    """A branch of any store's table begins, is published and deleted; the retries find so."""
    found = connector.branches
    assert found is not None
    notes = [Noted(), Noted(), Noted()]
    create_ = CreateBranchSpec("b")
    before = read(connector)
    for _ in range(2):
        assert found.create_branch(NAME, create_, note=notes[0]).snapshot_id is not None
    append(connector, [THIRD], "third", BRANCH)
    append(connector, [{"id": 4, "k": "z"}], "fourth", BRANCH)
    assert read(connector) == before
    told = [published(found, note=notes[1]).snapshot_id for _ in range(2)]
    assert told[0] == told[1] == snapshot_ids(connector)[-1]
    assert len(read(connector)) == len(before) + 2
    assert [ended(found, notes[2]).tags for _ in range(2)] == [1, 1]
    with pytest.raises(JobError):
        connector.metadata.load_table(BRANCH)
    assert len(read(connector)) == len(before) + 2
    assert begun(found).snapshot_id == told[0]
