"""A write that was not published leaves nothing, and what others published stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from tests.connectors.paimon.test_commit import code_of, consumers, data_files, delete_first_row
from tests.support.paimon_tables import (
    append_with_pypaimon,
    begin,
    four_files,
    inserts,
    read,
    store,
)


@pytest.fixture
def table(connector: Connector) -> TableHandle:
    return four_files(connector)


def test_abort_removes_all_files_of_the_write_reported_or_not(
    connector: Connector, warehouse: Path, table: TableHandle
) -> None:
    before = data_files(warehouse)
    handle, _ = delete_first_row(connector, table)
    store(handle, inserts(table, [{"id": 99, "p": 77}]), task="never reported")
    assert len(data_files(warehouse) - before) == 2

    connector.writes.abort_merge(table, handle)

    assert data_files(warehouse) == before
    assert consumers(warehouse).keys() == {"consumer-merge-one", "consumer-merge-two"}
    assert len(read(connector)) == 8


def test_abort_after_a_commit_that_did_happen_removes_nothing(
    connector: Connector, table: TableHandle
) -> None:
    handle, fragments = delete_first_row(connector, table)
    connector.writes.finish_merge(table, handle, fragments, {})

    connector.writes.abort_merge(table, handle)

    assert len(read(connector)) == 7


def test_the_slower_of_two_drivers_of_one_operation_removes_its_own_files_only(
    connector: Connector, warehouse: Path, table: TableHandle
) -> None:
    (first, of_first), (second, of_second) = (delete_first_row(connector, table) for _ in range(2))
    of_second_driver = {
        path for path in data_files(warehouse) if path.name.startswith(second.native.prefixes.data)
    }
    connector.writes.finish_merge(table, first, of_first, {})
    before = data_files(warehouse)
    code_of(lambda: connector.writes.finish_merge(table, second, of_second, {}))

    connector.writes.abort_merge(table, second)

    assert of_second_driver
    assert data_files(warehouse) == before - of_second_driver
    assert len(read(connector)) == 7
    assert "consumer-merge-op" in consumers(warehouse)


def test_an_abort_where_an_earlier_try_may_have_committed_keeps_the_guard(
    connector: Connector, warehouse: Path, table: TableHandle
) -> None:
    before = data_files(warehouse)
    begin(connector, table)
    handle, _ = delete_first_row(connector, table)
    append_with_pypaimon(table, [{"id": 50, "p": 1}])
    append_with_pypaimon(table, [{"id": 51, "p": 1}])
    (warehouse / "shop.db/orders/snapshot/snapshot-3").unlink()

    connector.writes.abort_merge(table, handle)

    left = data_files(warehouse) - before
    assert not [path for path in left if path.name.startswith(handle.native.prefixes.data)]
    assert consumers(warehouse)["consumer-merge-op"] == {"nextSnapshot": 2}
