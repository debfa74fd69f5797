"""A branch is read and changed as a table of its own, over the data files that it shares."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pypaimon.schema.data_types import AtomicType
from pypaimon.schema.schema_change import SchemaChange

from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.errors import ErrorCode, JobError, NotSupportedError
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from tests.support.paimon_tables import (
    NAME,
    append,
    append_with_pypaimon,
    begin,
    change_rows,
    create,
    inserts,
    merge,
    read,
    snapshot_ids,
    store,
)

BRANCH = TableName("shop", "orders$branch_b")
FIRST = [{"id": 1, "k": "x"}, {"id": 2, "k": "y"}]


@pytest.fixture
def folder(connector: Connector, warehouse: Path) -> Path:
    """The branch's own folder; main went on after it was made."""
    table = create(connector, {"id": "int", "k": "string"}, ["k"])
    append(connector, FIRST)
    native = connector.metadata.load_table(NAME).native.table
    native.create_tag("start")
    native.branch_manager().create_branch("b", "start")
    append_with_pypaimon(table, [{"id": 9, "k": "x"}])
    return warehouse / "shop.db/orders/branch/branch-b"


def test_a_merge_changes_the_branch_alone(connector: Connector, folder: Path) -> None:
    main = read(connector)
    branch = connector.metadata.load_table(BRANCH)
    deleted = change_rows(branch, rows.DELETE, [{"file": 0, "position": 0}])

    committed = merge(connector, branch, deleted, inserts(branch, [{"id": 3, "k": "z"}]))

    assert committed.snapshot_id == 2
    assert read(connector, BRANCH) == [{"id": 2, "k": "y"}, {"id": 3, "k": "z"}]
    assert read(connector) == main
    assert snapshot_ids(connector) == [1, 2]
    assert snapshot_ids(connector, BRANCH) == [1, 2]
    data = {path.parent.parent.parent for path in folder.parents[1].rglob("*.parquet")}
    assert data == {folder.parents[1]}, "data files stay in the table's directories"


def test_the_base_is_guarded_in_the_branch(connector: Connector, folder: Path) -> None:
    branch = connector.metadata.load_table(BRANCH)

    begin(connector, branch, "mine")

    guard = folder / "consumer/consumer-merge-mine"
    assert guard.exists()
    assert not list(folder.parents[1].glob("consumer/*mine"))
    connector.writes.release_guard(branch, "mine")
    assert not guard.exists()


def test_commits_are_found_in_the_branch_only(connector: Connector, folder: Path) -> None:
    append(connector, [{"id": 3, "k": "z"}], "mine", BRANCH)
    branch, main = map(connector.metadata.load_table, (BRANCH, NAME))

    found = connector.writes.find_commit(branch, "mine")

    assert found is not None
    assert found.snapshot_id == 2
    assert connector.writes.find_commit(main, "mine") is None


def test_what_main_does_is_no_conflict(connector: Connector, folder: Path) -> None:
    branch = connector.metadata.load_table(BRANCH)
    append_with_pypaimon(connector.metadata.load_table(NAME), [{"id": 10, "k": "x"}])

    merge(connector, branch, change_rows(branch, rows.DELETE, [{"file": 0, "position": 0}]))

    assert read(connector, BRANCH) == [{"id": 2, "k": "y"}]


def test_what_others_do_in_the_branch_is_a_conflict(connector: Connector, folder: Path) -> None:
    branch = connector.metadata.load_table(BRANCH)
    append_with_pypaimon(branch, [{"id": 10, "k": "x"}])
    before = read(connector, BRANCH)

    with pytest.raises(JobError) as raised:
        merge(connector, branch, inserts(branch, [{"id": 3, "k": "z"}]))

    assert raised.value.code is ErrorCode.COMMIT_CONFLICT
    assert read(connector, BRANCH) == before


def test_abort_removes_the_files_and_the_guard(connector: Connector, folder: Path) -> None:
    before = set(folder.parents[1].rglob("*"))
    branch = connector.metadata.load_table(BRANCH)
    handle = begin(connector, branch)
    store(handle, inserts(branch, [{"id": 3, "k": "x"}]))
    assert set(folder.parents[1].rglob("*.parquet")) > {p for p in before if p.suffix}

    connector.writes.abort_merge(branch, handle)

    assert set(folder.parents[1].rglob("*")) - before == {folder / "consumer"}


def test_a_branch_has_its_own_columns(connector: Connector, folder: Path) -> None:
    catalog = connector.metadata.load_table(NAME).native.table.catalog_environment.catalog_loader
    columns = [SchemaChange.add_column("n", AtomicType("INT"))]
    catalog.load().alter_table(str(BRANCH), columns)

    assert connector.metadata.load_table(BRANCH).column_names == ("id", "k", "n")
    assert connector.metadata.load_table(NAME).column_names == ("id", "k")


def test_a_branch_without_a_snapshot_gets_its_first(connector: Connector, folder: Path) -> None:
    connector.metadata.load_table(NAME).native.table.branch_manager().create_branch("empty")
    name = TableName("shop", "orders$branch_empty")
    assert connector.metadata.load_table(name).snapshot_id is None

    append(connector, [{"id": 5, "k": "x"}], "first", name)

    assert read(connector, name) == [{"id": 5, "k": "x"}]
    assert len(read(connector)) == 3


def test_the_main_branch_is_the_table(connector: Connector, folder: Path) -> None:
    append(connector, [{"id": 5, "k": "x"}], "main", TableName("shop", "orders$branch_main"))

    assert pa.Table.from_pylist(read(connector)).column("id").to_pylist() == [1, 2, 5, 9]


def test_a_name_in_another_case_is_found(connector: Connector, folder: Path) -> None:
    assert connector.metadata.load_table(TableName("shop", "ORDERS$branch_b")).snapshot_id == 1


@pytest.mark.parametrize("table", ["orders$branch_c", "Orders$branch_c", "other$branch_b"])
def test_a_missing_branch_is_named(connector: Connector, folder: Path, table: str) -> None:
    with pytest.raises(JobError) as raised:
        connector.metadata.load_table(TableName("shop", table))

    assert raised.value.code is ErrorCode.TABLE_NOT_FOUND
    assert table in raised.value.message


def test_a_branch_is_not_made_as_a_table(connector: Connector, warehouse: Path) -> None:
    spec = CreateTableSpec((ColumnSpec("id", "int"),))

    with pytest.raises(NotSupportedError, match="is a branch"):
        connector.metadata.create_table(TableName("shop", "new$branch_b"), spec)

    assert not list(warehouse.iterdir())
