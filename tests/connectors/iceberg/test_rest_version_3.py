"""Tables of version 3 through Iceberg's own REST server, which keeps their metadata."""

from __future__ import annotations

from typing import Any

import pytest

from spark_jobs.connectors.iceberg.commit import snapshot_commit
from spark_jobs.connectors.iceberg.table.pinned_table import pinned_table
from spark_jobs.contract.maintenance import CreateBranchSpec
from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from tests.connectors.iceberg.direct import DirectWrite
from tests.connectors.iceberg.ids_here import ids_here, require_numbered
from tests.connectors.iceberg.plain_tables import NAME
from tests.connectors.iceberg.rest_tables import RestTables
from tests.judge.iceberg_server import IcebergRest, iceberg_rest

__all__ = ["iceberg_rest"]

pytestmark = pytest.mark.slow

COLUMNS = (ColumnSpec("id", "BIGINT"), ColumnSpec("s", "STRING"))


@pytest.fixture
def tables(iceberg_rest: IcebergRest) -> RestTables:
    """A table that this project has created, with the ids 1 to 4."""
    made = RestTables(iceberg_rest)
    made.emptied()
    options = {"format-version": "3", "write.merge.mode": "merge-on-read"}
    assert made.open().metadata.create_table(NAME, CreateTableSpec(COLUMNS, table_options=options))
    rows = [{"id": each, "s": "x"} for each in (1, 2, 3, 4)]
    DirectWrite(made.open()).insert(*rows).publish()
    return made


def test_rows_keep_their_ids(tables: RestTables) -> None:
    connector = tables.open()
    DirectWrite(connector).delete(0, 1).publish()
    DirectWrite(connector, rewrite_share=0.0).update(0, 2, "new").publish()
    DirectWrite(connector).insert({"id": 5, "s": "x"}).publish()

    assert ids_here(connector).items() >= {1: 0, 3: 2, 4: 3}.items()
    table = pinned_table(connector.metadata.load_table(NAME))
    assert table.metadata.format_version == 3
    require_numbered(table)


@pytest.mark.parametrize("adds_rows", [False, True])
def test_another_branch_is_faster(
    tables: RestTables, adds_rows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    connector = tables.open()
    assert connector.branches is not None
    connector.branches.create_branch(NAME, CreateBranchSpec("other"))
    other = TableName("db", "t$branch_other")
    changes, asked = snapshot_commit.catalog_changes, []

    def between(*arguments: Any) -> Any:
        if not asked:
            asked.append(arguments)
            write = DirectWrite(tables.open(), name=other).delete(0, 0)
            (write.insert({"id": 9, "s": "x"}) if adds_rows else write).publish()
        return changes(*arguments)

    monkeypatch.setattr(snapshot_commit, "catalog_changes", between)
    DirectWrite(connector).delete(0, 1).insert({"id": 8, "s": "x"}).publish()

    table = pinned_table(connector.metadata.load_table(NAME))
    numbers = [each.sequence_number for each in table.metadata.snapshots]
    assert sorted(numbers) == [1, 2, 3]
    require_numbered(table)
    main, branch = ids_here(connector), ids_here(connector, other)
    assert main.keys() == {1, 3, 4, 8}
    assert branch.keys() == {2, 3, 4, *([9] if adds_rows else [])}
    assert main[8] not in branch.values()
