"""Airflow's side asks the server of a REST catalog where a table lies, and reads it there."""

from __future__ import annotations

import uuid

import pytest

from airflow_provider_merge.metadata.paimon.rest_catalog import RestCatalog as Server
from airflow_provider_merge.metadata.paimon.table import PaimonTable
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.spi.connector import Connector
from tests.judge.rest_server import RestCatalog
from tests.support.paimon_tables import append, create, snapshot_ids


@pytest.fixture
def connector(rest: RestCatalog) -> Connector:
    return open_connector(rest.spec(), rest.credentials)


@pytest.fixture
def name(connector: Connector) -> TableName:
    """A table with two snapshots, whose name has to be encoded in an address."""
    table = TableName("shop", f"my orders_{uuid.uuid4().hex}")
    create(connector, {"id": "BIGINT", "day": "DATE"}, ["day"], name=table)
    append(connector, [{"id": 1}, {"id": 2}], name=table)
    append(connector, [{"id": 3}], "second", name=table)
    return table


def server(rest: RestCatalog, warehouse: str | None = None, token: str | None = None) -> Server:
    known = rest.spec().options["rest.warehouse"]
    return Server(rest.uri, warehouse or known, token or rest.token)


def test_a_table_is_read_where_the_server_says(
    rest: RestCatalog, connector: Connector, name: TableName
) -> None:
    table = PaimonTable.at(server(rest).location(name), name, {})

    assert table.latest().snapshot_id == snapshot_ids(connector, name)[-1] == 2
    assert table.row_count() == 3
    assert [each.values for each in table.partitions()] == [{"day": None}]
    assert [each.small_files for each in table.compaction_facts(CompactSpec())] == [2]


def test_what_the_server_does_not_know(rest: RestCatalog, name: TableName) -> None:
    with pytest.raises(CatalogError) as unknown:
        server(rest).location(TableName("shop", "nothing"))
    assert unknown.value.code is ErrorCode.TABLE_NOT_FOUND

    with pytest.raises(CatalogError) as other:
        server(rest, warehouse="nowhere").location(name)
    assert other.value.code is ErrorCode.WAREHOUSE_NOT_FOUND


def test_a_wrong_token_is_not_repeated(rest: RestCatalog, name: TableName) -> None:
    with pytest.raises(CatalogError) as denied:
        server(rest, token="no-such-token").location(name)
    assert denied.value.code is ErrorCode.WAREHOUSE_ACCESS_DENIED
    assert "no-such-token" not in str(denied.value)


def test_a_branch_lies_in_its_table(rest: RestCatalog, name: TableName) -> None:
    branch = TableName(name.database, f"{name.table}$branch_b")
    assert server(rest).location(branch) == server(rest).location(name)
    with pytest.raises(CatalogError, match="TABLE_NOT_FOUND"):
        PaimonTable.at(server(rest).location(branch), branch, {})
