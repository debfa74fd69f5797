"""Others begin to use snapshots while these expire: between the plan and the removal."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from spark_jobs.connectors.paimon.maintenance.branch_history import BranchHistory
from spark_jobs.connectors.paimon.maintenance.removal_plan import (
    Dropping,
    RemovalPlan,
    RemovalPlanner,
)
from spark_jobs.contract.maintenance import CreateTagSpec, ExpireSnapshotsSpec
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from tests.support.paimon_tables import NAME, begin, create, inserts, read, snapshot_ids, store

BRANCH = TableName("shop", "orders$branch_b")


@pytest.fixture
def table(connector: Connector, warehouse: Path) -> Path:
    """Three snapshots; each replaced the only row."""
    create(connector, {"id": "int"})
    for number in range(1, 4):
        overwrite(connector, number)
    return warehouse / "shop.db/orders"


def overwrite(connector: Connector, number: int) -> None:
    handle = connector.metadata.load_table(NAME)
    merging = begin(connector, handle, f"op-{number}")
    files = connector.metadata.plan_files(handle)
    fragments = connector.writes.drop_files(handle, merging, files)
    fragments += store(merging, inserts(handle, [{"id": number}]))
    connector.writes.finish_merge(handle, merging, fragments, {})
    connector.writes.release_guard(handle, f"op-{number}")


def all_but_the_latest(history: BranchHistory) -> Dropping:
    return Dropping(frozenset(list(history.snapshots)[:-1]))


def planned(connector: Connector) -> tuple[RemovalPlanner, RemovalPlan]:
    maintenance: Any = connector.maintenance
    native = connector.metadata.load_table(NAME).native
    planner = RemovalPlanner(native, maintenance._storage, datetime.now(UTC))
    return planner, planner.plan(all_but_the_latest)


def rows(connector: Connector, handle: TableHandle) -> list[dict[str, Any]]:
    """The rows of the snapshot that a handle is pinned at."""
    files = connector.metadata.plan_files(handle)
    return [row for file in files for row in pq.read_table(file.path).to_pylist()]


def test_a_new_tag_and_branch_keep_their_files(connector: Connector, table: Path) -> None:
    planner, plan = planned(connector)
    assert connector.maintenance is not None
    connector.maintenance.create_tag(NAME, CreateTagSpec("t", 2))
    connector.metadata.load_table(NAME).native.table.branch_manager().create_branch("b", "t")
    (table / "tag/tag-t").unlink()

    done = planner.carry_out(plan)

    assert snapshot_ids(connector) == [3]
    assert read(connector, BRANCH) == [{"id": 2}]
    assert done.files < plan.files
    assert not list(table.glob("removal/*"))


def test_a_statement_that_began_reads_its_base(connector: Connector, table: Path) -> None:
    base = connector.metadata.load_table(NAME)
    overwrite(connector, 4)
    planner, plan = planned(connector)
    begin(connector, base, "mine")

    planner.carry_out(plan)

    assert rows(connector, base) == [{"id": 3}]


def test_a_statement_that_is_late_runs_again(connector: Connector, table: Path) -> None:
    base = connector.metadata.load_table(NAME)
    connector.metadata.plan_files(base)
    overwrite(connector, 4)
    assert connector.maintenance is not None
    spec = ExpireSnapshotsSpec(retain_min=1, older_than="0 s")
    connector.maintenance.expire_snapshots(NAME, spec, dry_run=False)

    with pytest.raises(JobError) as raised:
        begin(connector, base, "mine")

    assert raised.value.code is ErrorCode.COMMIT_CONFLICT
    assert "Snapshot 3 of shop.orders expired" in raised.value.message


@pytest.mark.parametrize("moment", [1, 2])
def test_a_consumer_that_appears_is_seen(connector: Connector, table: Path, moment: int) -> None:
    asked: list[int] = []

    def choose(history: BranchHistory) -> Dropping:
        held = min((each.next_snapshot for each in history.consumers), default=9)
        asked.append(held)
        if len(asked) == moment:
            consume(table, 2)
        return Dropping(frozenset(each for each in list(history.snapshots)[:-1] if each < held))

    maintenance: Any = connector.maintenance
    native = connector.metadata.load_table(NAME).native
    planner = RemovalPlanner(native, maintenance._storage, datetime.now(UTC))
    plan = planner.plan(choose)

    expected = {1} if moment == 1 else {1, 2}
    assert plan.dropping.snapshots == expected
    planner.carry_out(plan)
    # Seen after the snapshots went, it keeps at least the files.
    assert len(list(table.rglob("*.parquet"))) == 2


def consume(table: Path, following: int) -> None:
    (table / "consumer").mkdir(exist_ok=True)
    (table / "consumer/consumer-reader").write_text(f'{{"nextSnapshot": {following}}}')


def test_what_changes_all_the_time_is_a_conflict(connector: Connector, table: Path) -> None:
    turns: list[int] = []

    def choose(_: BranchHistory) -> Dropping:
        turns.append(len(turns))
        return Dropping(frozenset({1 + len(turns) % 2}))

    maintenance: Any = connector.maintenance
    native = connector.metadata.load_table(NAME).native
    planner = RemovalPlanner(native, maintenance._storage, datetime.now(UTC))
    with pytest.raises(JobError) as raised:
        planner.plan(choose)

    assert raised.value.code is ErrorCode.COMMIT_CONFLICT
    assert snapshot_ids(connector) == [1, 2, 3]
