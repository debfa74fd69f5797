"""ALTER TABLE on a REST catalog: its server alters the table, once."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.alter_table import (
    AddColumn,
    AlterTableSpec,
    CommentTable,
    DropColumn,
    MoveColumn,
    RenameColumn,
    SetDefault,
    SetNullable,
    SetProperties,
    TableChange,
    UnsetProperties,
    WidenColumn,
)
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from tests.judge.rest_server import RestCatalog
from tests.support.noted import Noted
from tests.support.paimon_tables import append, create, read
from tests.support.proxy import Fault, proxy_before

STATEMENTS: tuple[tuple[TableChange, ...], ...] = (
    (
        *(AddColumn("n", "INT", comment="new", default="7"), AddColumn("a.y", "STRING")),
        *(RenameColumn("V", "w"), WidenColumn("w", "BIGINT"), AddColumn("v", "DATE", after="w")),
    ),
    (DropColumn("n"), MoveColumn("w", first=True), SetDefault("w", "8"), CommentTable("all")),
    (SetProperties({"x": "y"}), SetNullable("r"), RenameColumn("a.x", "xx")),
    (UnsetProperties(("x",)), SetDefault("w", None), DropColumn("a.y"), CommentTable("")),
)


@pytest.fixture
def name(rest: RestCatalog) -> TableName:
    found = TableName("shop", f"orders_{uuid.uuid4().hex}")
    connector = open_connector(rest.spec(), rest.credentials)
    columns = {"id": "bigint", "v": "int", "a": "struct<x:int>", "r": "int"}
    create(connector, columns, name=found)
    append(connector, [{"id": 1, "v": 2, "a": {"x": 3}, "r": 4}], name=found)
    return found


def alter(
    connector: Connector, name: TableName, *changes: TableChange
) -> list[tuple[str, str | None, str | None]]:
    assert connector.alterations is not None
    report = connector.alterations.alter_table(name, AlterTableSpec(changes), dry_run=False)
    return [(each.what, each.before, each.after) for each in report.parts]


@pytest.mark.parametrize("fault", [None, "lose the request", "lose the answer"])
def test_each_statement_is_made_once(
    rest: RestCatalog, name: TableName, fault: Fault | None
) -> None:
    with proxy_before(rest.uri) as proxy:
        unlucky = open_connector(replace(rest, uri=proxy.endpoint).spec(), rest.credentials)
        for changes in STATEMENTS:
            plan = proxy.add("POST", f"/tables/{name.table}", fault) if fault else None
            assert alter(unlucky, name, *changes)
            assert plan is None or plan.seen > 0

    connector = open_connector(rest.spec(), rest.credentials)
    found = {each.name: each for each in connector.metadata.load_table(name).columns}
    assert list(found) == ["w", "id", "v", "a", "r"]
    assert [each.type for each in found.values()] == [
        *("bigint", "bigint", "date", "struct<xx:int>", "int"),
    ]
    assert found["w"].default is None
    assert read(connector, name) == [{"w": 2, "id": 1, "v": None, "a": {"xx": 3}, "r": 4}]


def test_two_that_alter_at_once(rest: RestCatalog, name: TableName) -> None:
    connector = open_connector(rest.spec(), rest.credentials)
    alter(connector, name, AddColumn("n", "INT"))

    with pytest.raises(JobError) as caught:
        alter(connector, name, AddColumn("N", "INT"))
    assert caught.value.code is ErrorCode.COLUMN_EXISTS
    assert alter(connector, name, AddColumn("n", "INT", if_not_exists=True)) == []


@pytest.mark.parametrize("fault", [None, "lose the request", "lose the answer"])
def test_a_table_is_dropped_once(rest: RestCatalog, name: TableName, fault: Fault | None) -> None:
    connector, note = open_connector(rest.spec(), rest.credentials), Noted()
    with proxy_before(rest.uri) as proxy:
        unlucky = open_connector(replace(rest, uri=proxy.endpoint).spec(), rest.credentials)
        assert unlucky.alterations is not None
        plan = proxy.add("DELETE", f"/tables/{name.table}", fault) if fault else None
        try:
            assert unlucky.alterations.drop_table(name, DropTableSpec(), note=note)
        except JobError as error:
            assert plan is not None
            if error.code is not ErrorCode.COMMIT_OUTCOME_UNKNOWN:
                raise
            assert unlucky.alterations.drop_table(name, DropTableSpec(), note=note)
        assert plan is None or plan.seen > 0
    with pytest.raises(JobError) as caught:
        connector.metadata.load_table(name)
    assert caught.value.code is ErrorCode.TABLE_NOT_FOUND

    # Whatever has the name then is of somebody else.
    create(connector, {"id": "bigint"}, name=name)
    assert connector.alterations is not None
    assert connector.alterations.drop_table(name, DropTableSpec(), note=note)
    assert connector.metadata.load_table(name).columns[0].name == "id"
