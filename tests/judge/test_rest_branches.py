"""Branches on a REST catalog: made and deleted by its server, published by a commit."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.maintenance import CreateBranchSpec, DeleteBranchSpec, FastForwardSpec
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.alterations import NO_NOTE
from spark_jobs.spi.branches import ConnectorBranches, Publishing
from spark_jobs.spi.connector import Connector
from tests.judge.judge import read_with_java
from tests.judge.rest_server import RestCatalog
from tests.support.noted import Noted
from tests.support.paimon_tables import append, create, read, snapshot_ids
from tests.support.proxy import Fault, Proxy, proxy_before


@pytest.fixture
def connector(rest: RestCatalog) -> Connector:
    return open_connector(rest.spec(), rest.credentials)


@pytest.fixture
def name(connector: Connector) -> TableName:
    """A table with two snapshots."""
    table = TableName("shop", f"orders_{uuid.uuid4().hex}")
    create(connector, {"id": "bigint"}, name=table)
    for number in (1, 2):
        append(connector, [{"id": number}], f"append-{number}", table)
    return table


@pytest.fixture
def proxy(rest: RestCatalog) -> Iterator[Proxy]:
    with proxy_before(rest.uri) as running:
        yield running


@pytest.fixture
def unlucky(rest: RestCatalog, proxy: Proxy) -> Connector:
    return open_connector(replace(rest, uri=proxy.endpoint).spec(), rest.credentials)


def of(connector: Connector) -> ConnectorBranches:
    assert connector.branches is not None
    return connector.branches


def begin(connector: Connector, name: TableName, note: Any = NO_NOTE, **spec: Any) -> int | None:
    return of(connector).create_branch(name, CreateBranchSpec("b", **spec), note=note).snapshot_id


def publish(connector: Connector, name: TableName, note: Any = NO_NOTE) -> int | None:
    publishing, to = Publishing({OPERATION_ID: "publish"}), FastForwardSpec("b")
    report = of(connector).fast_forward(name, to, publishing, dry_run=False, note=note)
    return report.snapshot_id


def end(connector: Connector, name: TableName, note: Any = NO_NOTE, **spec: Any) -> int:
    spec_ = DeleteBranchSpec("b", **spec)
    return of(connector).delete_branch(name, spec_, dry_run=False, note=note).tags


def branch_of(name: TableName) -> TableName:
    return replace(name, table=f"{name.table}$branch_b")


def rows(connector: Connector, name: TableName) -> list[int]:
    return sorted(row["id"] for row in read(connector, name))


def test_a_branch_from_begin_to_end(
    rest: RestCatalog, connector: Connector, name: TableName
) -> None:
    assert begin(connector, name, snapshot_id=None) == 2
    append(connector, [{"id": 3}], "third", branch_of(name))
    append(connector, [{"id": 4}], "fourth", branch_of(name))
    assert rows(connector, name) == [1, 2]
    with pytest.raises(JobError) as raised:
        begin(connector, name)
    assert raised.value.code is ErrorCode.BRANCH_EXISTS
    assert begin(connector, name, if_not_exists=True) is None

    assert publish(connector, name) == 3

    assert rows(connector, name) == rows(connector, branch_of(name)) == [1, 2, 3, 4]
    assert sorted(row["id"] for row in read_with_java(rest.folder, str(name))) == [1, 2, 3, 4]
    assert snapshot_ids(connector, name) == [1, 2, 3]
    folder = rest.folder / f"shop.db/{name.table}"
    kept = [path.name for path in folder.rglob("tag-merge-branch-b*")]
    assert sorted(kept) == [
        *("tag-merge-branch-b", "tag-merge-branch-b"),
        *("tag-merge-branch-b-published-3", "tag-merge-branch-b-published-4"),
    ]
    assert publish(connector, name) is None
    append(connector, [{"id": 5}], "fifth", branch_of(name))
    append(connector, [{"id": 6}], "sixth", name)
    with pytest.raises(JobError) as raised:
        publish(connector, name)
    assert raised.value.code is ErrorCode.BRANCHES_DIVERGED
    assert end(connector, name) == 1
    assert end(connector, name, if_exists=True) == 0
    with pytest.raises(JobError) as raised:
        end(connector, name)
    assert raised.value.code is ErrorCode.BRANCH_NOT_FOUND
    assert rows(connector, name) == [1, 2, 3, 4, 6]
    assert begin(connector, name) == 4


def test_a_later_try_tells_what_the_first_did(connector: Connector, name: TableName) -> None:
    notes = [Noted(), Noted(), Noted()]
    assert begin(connector, name, notes[0]) == begin(connector, name, notes[0]) == 2
    append(connector, [{"id": 3}], "third", branch_of(name))
    assert publish(connector, name, notes[1]) == publish(connector, name, notes[1]) == 3
    assert end(connector, name, notes[2]) == end(connector, name, notes[2]) == 1
    begin(connector, name)
    assert end(connector, name, notes[2]) == 1
    assert rows(connector, branch_of(name)) == [1, 2, 3], "that of another one stays"


FAULTS: list[Fault] = ["lose the request", "lose the answer", "twice", "500", "503"]


@pytest.mark.parametrize("fault", FAULTS)
def test_lost_requests_and_answers(
    connector: Connector, unlucky: Connector, proxy: Proxy, name: TableName, fault: Fault
) -> None:
    proxy.add("POST", "/branches", fault)
    proxy.add("POST", "/tags", fault)
    assert begin(unlucky, name) == 2
    append(connector, [{"id": 3}], "third", branch_of(name))
    proxy.add("POST", "/commit", fault)
    assert publish(unlucky, name) == 3
    proxy.add("DELETE", "/branches", fault)
    assert end(unlucky, name) == 1

    assert rows(connector, name) == [1, 2, 3]
    assert snapshot_ids(connector, name) == [1, 2, 3]
