"""ALTER TABLE through Iceberg's own REST server, lost requests, and retries of jobs."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.contract.alter_table import (
    AddColumn,
    AddPartitionField,
    AlterTableSpec,
    CommentTable,
    DropColumn,
    MoveColumn,
    RenameColumn,
    ReplacePartitionField,
    SetDefault,
    SetIdentifierFields,
    SetProperties,
    SetWriteOrder,
    TableChange,
    UnsetProperties,
    WidenColumn,
)
from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.engine.job.table_jobs import AlterTableJob
from tests.connectors.iceberg.direct import DirectWrite, ids_of
from tests.connectors.iceberg.plain_tables import NAME
from tests.connectors.iceberg.rest_tables import RestTables
from tests.judge.iceberg_server import IcebergRest, iceberg_rest
from tests.support.proxy import Fault, Plan, Proxy, proxy_before

__all__ = ["iceberg_rest"]
pytestmark = pytest.mark.slow

SPEC = CreateTableSpec(
    (
        ColumnSpec("id", "INT", nullable=False),
        ColumnSpec("s", "STRING"),
        ColumnSpec("a", "STRUCT<x: INT>"),
        ColumnSpec("ts", "TIMESTAMP"),
    ),
    ("day(ts)",),
)


class Served(RestTables):
    """The table ``db.t``, of ``SPEC``."""

    def filled(self, spec: CreateTableSpec = SPEC) -> Served:
        self.emptied()
        assert self.open().metadata.create_table(NAME, spec)
        return self

    @property
    def table(self) -> Any:
        return self.library().load_table(("db", "t"))

    def done(
        self, changes: tuple[TableChange, ...], uri: str = "", operation: str = "", number: int = 1
    ) -> JobResult:
        """The result of a try of an operation, at another address of the server."""
        options = {"type": "rest", "uri": self.server.uri}
        catalog = CatalogSpec("iceberg", str(self.server.folder), options)
        request = JobRequest(
            operation or str(uuid.uuid4()),
            NAME,
            catalog,
            AlterTableSpec(changes),
            origin=Origin(dag_id="d", try_number=number),
        )
        return AlterTableJob(request, None, self.open(uri)).run()


@pytest.fixture
def tables(iceberg_rest: IcebergRest) -> Served:
    return Served(iceberg_rest).filled()


@pytest.fixture
def proxy(tables: Served) -> Iterator[Proxy]:
    with proxy_before(tables.server.uri) as running:
        yield running


# In an order in which each changes something.
STATEMENTS: tuple[tuple[TableChange, ...], ...] = (
    (AddColumn("n", "INT"), RenameColumn("s", "text"), AddColumn("a.y", "STRING", first=True)),
    (WidenColumn("id", "BIGINT"), MoveColumn("ts", first=True)),
    (ReplacePartitionField("day(ts)", "hour(ts)"), AddPartitionField("bucket(2, id)", "b")),
    (SetWriteOrder(("id DESC",), "range"), SetIdentifierFields(("id",)), CommentTable("all")),
    (DropColumn("n"), SetProperties({"a": "b"}), SetWriteOrder((), "none")),
    (SetProperties({"format-version": "3"}), AddColumn("k", "INT", False, default="5")),
    (SetDefault("k", "6"), UnsetProperties(("a",))),
)


@pytest.mark.parametrize("fault", [None, "lose the request", "lose the answer"])
def test_each_statement_is_made_once(tables: Served, proxy: Proxy, fault: Fault | None) -> None:
    row = {"id": 1, "s": "x", "a": None, "ts": None}
    DirectWrite(tables.open()).insert(row).publish()
    for changes in STATEMENTS:
        plan = proxy.add("POST", "/tables/t", fault) if fault else None

        result = tables.done(changes, proxy.endpoint)

        assert plan is None or plan.seen > 0, changes
        assert (result.error, result.status) == (None, "committed"), changes
        assert result.alteration is not None
        assert result.alteration.parts
    found = tables.table
    assert [each.name for each in found.schema().fields] == ["ts", "id", "text", "a", "k"]
    assert found.schema().find_field("k").initial_default == 5
    assert found.schema().find_field("k").write_default == 6
    assert [each.name for each in found.spec().fields] == ["ts_hour", "b"]
    assert found.sort_order().fields == []
    assert found.schema().identifier_field_names() == {"id"}
    assert found.metadata.format_version == 3
    assert "a" not in found.properties
    new = {"id": 2, "text": "y", "a": None, "ts": None, "k": 1}
    DirectWrite(tables.open()).insert(new).publish()
    assert ids_of(tables) == [1, 2]
    assert tables.table.metadata.next_row_id == 2


@pytest.mark.parametrize("is_made", [True, False])
def test_a_retry_tells_what_was_made(tables: Served, proxy: Proxy, is_made: bool) -> None:
    """No try to commit is answered, nor a look at the table after it; meanwhile others append."""
    fault: Fault = "lose the answer" if is_made else "lose the request"
    for changes in STATEMENTS[:3]:
        proxy.plans[:] = [Plan("GET", "/tables/t", "lose the answer", times=99, after=1)]
        proxy.add("POST", "/tables/t", fault, times=9)
        operation = str(uuid.uuid4())
        first = tables.done(changes, proxy.endpoint, operation)
        assert first.error is not None
        assert first.error.code == "COMMIT_OUTCOME_UNKNOWN"
        tables.table.transaction().set_properties({"theirs": operation}).commit_transaction()

        second = tables.done(changes, operation=operation, number=2)

        assert (second.error, second.status) == (None, "committed"), changes
        assert second.alteration is not None
        assert second.alteration.parts
        third = tables.done(changes, operation=operation, number=3)
        assert third.alteration == second.alteration
    assert len(tables.table.metadata.schemas) == 3


def test_tables_with_defaults_and_like_them(iceberg_rest: IcebergRest) -> None:
    tables, like = Served(iceberg_rest), TableName("db", f"l{uuid.uuid4().hex}")
    columns = (ColumnSpec("id", "BIGINT"), ColumnSpec("s", "STRING", default="'x'"))
    spec = CreateTableSpec(
        columns, ("bucket(2, id)",), table_options={"format-version": "3", "a": "b"}
    )
    tables.filled(spec)
    assert tables.open().metadata.create_table(NAME, spec) is False
    assert tables.done((SetWriteOrder(("id DESC",)),)).error is None

    metadata = tables.open().metadata
    assert metadata.create_table(like, CreateTableSpec(like="db.t")) is True
    assert metadata.create_table(like, CreateTableSpec(like="db.t")) is False

    found = tables.library().load_table(("db", like.table))
    assert found.schema().find_field("s").write_default == "x"
    assert [each.name for each in found.spec().fields] == ["id_bucket"]
    assert len(found.sort_order().fields) == 1
    assert found.properties["a"] == "b"
    write = DirectWrite(tables.open(), name=like).insert({"id": 1, "s": "y"})
    write.publish()
    assert found.refresh().scan().to_arrow() == pa.table(
        {"id": pa.array([1], pa.int64()), "s": pa.array(["y"], pa.large_string())},
        schema=found.scan().to_arrow().schema,
    )
