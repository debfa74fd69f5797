"""Schema evolution on a REST catalog: its server alters the table, once."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.spi.alterations import SchemaChange
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from tests.judge.rest_server import RestCatalog
from tests.support.paimon_tables import append, create, inserts, merge, read
from tests.support.proxy import proxy_before

ROWS = [{"id": 1}, {"id": 2}]
MORE = (
    SchemaChange(("more",), "struct<`x`:int,`l`:array<int>>"),
    SchemaChange(("id",), "decimal(20,0)", "bigint"),
)


@pytest.fixture
def connector(rest: RestCatalog) -> Connector:
    return open_connector(rest.spec(), rest.credentials)


@pytest.fixture
def name() -> TableName:
    return TableName("shop", f"orders_{uuid.uuid4().hex}")


@pytest.fixture
def table(connector: Connector, name: TableName) -> TableHandle:
    create(connector, {"id": "bigint"}, name=name)
    append(connector, ROWS, name=name)
    return connector.metadata.load_table(name)


def columns(connector: Connector, name: TableName) -> dict[str, str]:
    return {each.name: each.type for each in connector.metadata.load_table(name).columns}


def test_the_server_gives_the_table_more_columns(
    connector: Connector, table: TableHandle, name: TableName
) -> None:
    wider = connector.metadata.evolved(table, MORE)
    new = {"id": 3, "more": {"x": 1, "l": [2]}}

    merge(connector, wider, inserts(wider, [new]))

    assert columns(connector, name) == {
        "id": "decimal(20,0)",
        "more": "struct<x:int,l:array<int>>",
    }
    assert read(connector, name) == [*({**row, "more": None} for row in ROWS), new]
    nested = connector.metadata.load_table(name)
    field = SchemaChange(("more", "y"), "string")
    connector.writes.store_schema(connector.metadata.evolved(nested, (field,)))
    assert columns(connector, name)["more"] == "struct<x:int,l:array<int>,y:string>"


@pytest.mark.parametrize("other", ["more", "other"])
def test_the_server_makes_one_of_two_schemas(
    connector: Connector, table: TableHandle, name: TableName, other: str
) -> None:
    wider = connector.metadata.evolved(table, MORE[:1])
    connector.writes.store_schema(
        connector.metadata.evolved(table, (SchemaChange((other,), MORE[0].type),))
    )
    rows = inserts(wider, [{"id": 3}])

    if other == "more":
        merge(connector, wider, rows)
        assert len(read(connector, name)) == 3
    else:
        with pytest.raises(CommitError) as raised:
            merge(connector, wider, rows)
        assert raised.value.code is ErrorCode.COMMIT_CONFLICT
        assert list(columns(connector, name)) == ["id", "other"]


def test_a_lost_answer_about_columns(
    connector: Connector,
    rest: RestCatalog,
    table: TableHandle,
    name: TableName,
) -> None:
    with proxy_before(rest.uri) as proxy:
        unlucky = open_connector(replace(rest, uri=proxy.endpoint).spec(), rest.credentials)
        proxy.add("POST", f"/tables/{name.table}", "lose the answer")
        wider = unlucky.metadata.evolved(table, MORE[:1])
        merge(unlucky, wider, inserts(wider, [{"id": 3}]))
    assert list(columns(connector, name)) == ["id", "more"]
    assert len(read(connector, name)) == 3
