"""Tags, branches and cherry-picks through Iceberg's own REST server, and lost requests."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.contract.maintenance import (
    CherryPickSpec,
    CreateBranchSpec,
    CreateTagSpec,
    DeleteBranchSpec,
    FastForwardSpec,
    RollbackSpec,
    SetCurrentSnapshotSpec,
)
from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.job.maintenance_job import MaintenanceJob
from tests.connectors.iceberg.answers import answering
from tests.connectors.iceberg.plain_history import NAME, SCHEMA
from tests.connectors.iceberg.rest_tables import RestTables
from tests.judge.iceberg_server import IcebergRest, iceberg_rest
from tests.support.proxy import Fault, Plan, Proxy, proxy_before

__all__ = ["iceberg_rest"]
pytestmark = pytest.mark.slow


class Served(RestTables):
    """The table ``db.t``; the ids 0 and 1 are appended, 7 is staged, and 2 comes behind it."""

    def filled(self) -> Served:
        location = f"file:{self.server.folder}/{uuid.uuid4()}"
        properties = {"format-version": "2"}
        self.emptied().create_table(("db", "t"), SCHEMA, location=location, properties=properties)
        self.append(0)
        self.append(1)
        self.table.manage_snapshots().create_branch(self.snapshots[1], "staging").commit()
        self.append(7, "staging")
        self.table.manage_snapshots().remove_branch("staging").commit()
        self.append(2)
        return self

    @property
    def table(self) -> Any:
        return self.library().load_table(("db", "t"))

    @property
    def snapshots(self) -> list[int]:
        """The ids 0, 1 and 2; the staged one stands before the last."""
        return [each.snapshot_id for each in self.table.snapshots()]

    def append(self, id_: int, branch: str = "main") -> None:
        self.table.append(pa.table({"id": [id_]}, schema=SCHEMA), branch=branch)

    def ids(self) -> list[int]:
        return sorted(self.table.scan().to_arrow()["id"].to_pylist())

    def done(self, operation_id: str, statement: Any, uri: str = "", number: int = 1) -> JobResult:
        """The result of a try of an operation, at another address of the server."""
        options = {"type": "rest", "uri": self.server.uri}
        catalog = CatalogSpec("iceberg", str(self.server.folder), options)
        origin = Origin(dag_id="d", try_number=number)
        request = JobRequest(operation_id, NAME, catalog, statement, origin=origin)
        return MaintenanceJob(request, None, self.open(uri)).run()


@pytest.fixture
def tables(iceberg_rest: IcebergRest) -> Served:
    return Served(iceberg_rest).filled()


@pytest.fixture
def proxy(tables: Served) -> Iterator[Proxy]:
    with proxy_before(tables.server.uri) as running:
        yield running


def statements(tables: Served) -> Iterator[Any]:
    """Of each kind one, in an order in which each changes something."""
    first, second, staged, newest = tables.snapshots
    yield CreateTagSpec("kept", newest, "2 d")
    yield CreateBranchSpec("audit", second, None, "9 d", "2 d", 3)
    yield RollbackSpec(second, force=True)
    yield FastForwardSpec("kept")
    yield SetCurrentSnapshotSpec(first, force=True)
    yield DeleteBranchSpec("audit")
    yield SetCurrentSnapshotSpec(tag="kept")
    yield CherryPickSpec(staged)


@pytest.mark.parametrize("fault", ["lose the request", "lose the answer"])
def test_each_change_is_made_once(tables: Served, proxy: Proxy, fault: Fault) -> None:
    for number, statement in enumerate(statements(tables)):
        plan = proxy.add("POST", "/tables/t", fault)

        result = tables.done(str(uuid.uuid4()), statement, proxy.endpoint)

        assert plan.seen > 0, statement
        assert (result.error, result.status) == (None, "committed"), (number, statement)
    assert tables.ids() == [0, 1, 2, 7]
    assert set(tables.table.metadata.refs) == {"main", "kept"}
    assert len(tables.snapshots) == 5


@pytest.mark.parametrize("is_made", [True, False])
def test_a_retry_tells_what_was_made(tables: Served, proxy: Proxy, is_made: bool) -> None:
    """No try to commit is answered, nor a look at the table after it; meanwhile others append."""
    fault: Fault = "lose the answer" if is_made else "lose the request"
    for id_, statement in (
        (3, RollbackSpec(tables.snapshots[1], force=True)),
        (4, CreateTagSpec("daily")),
        (5, CherryPickSpec(tables.snapshots[2])),
    ):
        proxy.plans[:] = [Plan("GET", "/tables/t", "lose the answer", times=99, after=1)]
        proxy.add("POST", "/tables/t", fault, times=9)
        operation_id = str(uuid.uuid4())
        first = tables.done(operation_id, statement, proxy.endpoint)
        assert first.error is not None
        assert first.error.code == "COMMIT_OUTCOME_UNKNOWN"
        before = tables.ids()
        if is_made:
            tables.append(id_)

        second = tables.done(operation_id, statement, number=2)

        assert (second.error, second.status) == (None, "committed"), statement
        if is_made:
            assert tables.ids() == sorted([*before, id_])
    assert tables.ids() == ([0, 1, 3, 4, 5, 7] if is_made else [0, 1, 7])
    assert len(tables.snapshots) == (8 if is_made else 4)


def test_what_expires_meanwhile_is_not_published(
    tables: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    connector, staged = tables.open(), tables.snapshots[2]

    def expired(commit: Callable[[], Any]) -> Any:
        tables.table.maintenance.expire_snapshots().by_id(staged).commit()
        return commit()

    answering(connector, monkeypatch, expired)
    catalog = CatalogSpec("iceberg", str(tables.server.folder), {"type": "rest", "uri": "http://x"})
    request = JobRequest(str(uuid.uuid4()), NAME, catalog, CherryPickSpec(staged))

    result = MaintenanceJob(request, None, connector).run()

    assert result.error is not None
    assert tables.ids() == [0, 1, 2]
    again = tables.done(request.operation_id, request.statement, number=2)
    assert again.error is not None
    assert again.error.code == "SNAPSHOT_NOT_FOUND"
