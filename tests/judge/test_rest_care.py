"""Tags and rollbacks on a REST catalog, by its server's requests; the rest of care is refused."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.maintenance import (
    CreateTagSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    RemoveOrphanFilesSpec,
    RollbackSpec,
)
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.maintenance import ConnectorMaintenance
from tests.judge.judge import read_with_java
from tests.judge.rest_server import RestCatalog
from tests.support.paimon_tables import append, create, read, snapshot_ids
from tests.support.proxy import Fault, Proxy, proxy_before


@dataclass
class Noted:
    """A note that outlives a try; others commit ``meanwhile``, once it is written."""

    change: Mapping[str, Any] | None = None
    meanwhile: list[Callable[[], object]] = field(default_factory=list)

    def read(self) -> Mapping[str, Any] | None:
        return self.change

    def write(self, change: Mapping[str, Any]) -> None:
        self.change = change
        if self.meanwhile:
            self.meanwhile.pop()()

    def remove(self) -> None:
        self.change = None


@pytest.fixture
def connector(rest: RestCatalog) -> Connector:
    return open_connector(rest.spec(), rest.credentials)


@pytest.fixture
def name(connector: Connector) -> TableName:
    """A table with three snapshots, each of which appends its number."""
    table = TableName("shop", f"orders_{uuid.uuid4().hex}")
    create(connector, {"id": "bigint"}, name=table)
    for number in (1, 2, 3):
        append(connector, [{"id": number}], f"append-{number}", table)
    return table


@pytest.fixture
def proxy(rest: RestCatalog) -> Iterator[Proxy]:
    with proxy_before(rest.uri) as running:
        yield running


@pytest.fixture
def unlucky(rest: RestCatalog, proxy: Proxy) -> Connector:
    """A connector that reaches the server through the proxy."""
    return open_connector(replace(rest, uri=proxy.endpoint).spec(), rest.credentials)


def care(connector: Connector) -> ConnectorMaintenance:
    assert connector.maintenance is not None
    return connector.maintenance


def roll_back(connector: Connector, name: TableName, **how: Any) -> Any:
    spec = RollbackSpec(**{"force": True, **how})
    return care(connector).roll_back(name, spec, dag_id="dag", dry_run=False)


def rows(connector: Connector, name: TableName) -> list[int]:
    return sorted(row["id"] for row in read(connector, name))


def refusal(work: Callable[[], object]) -> ErrorCode:
    with pytest.raises(JobError) as caught:
        work()
    return caught.value.code


def test_a_tag_is_what_it_is_to_java(
    rest: RestCatalog, connector: Connector, name: TableName
) -> None:
    report = care(connector).create_tag(name, CreateTagSpec("second", 2, "3 d"))
    assert report.snapshot_id == 2
    care(connector).create_tag(name, CreateTagSpec("latest"))

    roll_back(connector, name, tag="second")

    assert rows(connector, name) == [1, 2]
    assert sorted(row["id"] for row in read_with_java(rest.folder, str(name))) == [1, 2]
    append(connector, [{"id": 9}], "later", name)
    assert rows(connector, name) == [1, 2, 9]
    # The tag of the third snapshot went with it.
    gone = DeleteTagSpec("latest")
    code = refusal(lambda: care(connector).delete_tag(name, gone, dry_run=False))
    assert code is ErrorCode.TAG_NOT_FOUND


def test_tags_that_are_there_or_not(connector: Connector, name: TableName) -> None:
    maintenance = care(connector)
    maintenance.create_tag(name, CreateTagSpec("a"))
    assert refusal(lambda: maintenance.create_tag(name, CreateTagSpec("a", 1))) is (
        ErrorCode.TAG_EXISTS
    )
    again = maintenance.create_tag(name, CreateTagSpec("a", 1, if_not_exists=True))
    assert not again.changes
    lost = CreateTagSpec("b", 77)
    assert refusal(lambda: maintenance.create_tag(name, lost)) is ErrorCode.SNAPSHOT_NOT_FOUND
    told = maintenance.delete_tag(name, DeleteTagSpec("a"), dry_run=True)
    assert maintenance.delete_tag(name, DeleteTagSpec("a"), dry_run=False) == told
    assert told.tags == 1
    unknown = DeleteTagSpec("a")
    code = refusal(lambda: maintenance.delete_tag(name, unknown, dry_run=False))
    assert code is ErrorCode.TAG_NOT_FOUND
    assert not maintenance.delete_tag(name, DeleteTagSpec("a", True), dry_run=False).changes


def test_a_rollback(connector: Connector, name: TableName) -> None:
    told = care(connector).roll_back(name, RollbackSpec(1, force=True), dag_id="dag", dry_run=True)
    assert rows(connector, name) == [1, 2, 3]

    assert roll_back(connector, name, snapshot_id=1) == told

    assert (told.snapshots, told.latest_snapshot_id) == (2, 1)
    assert (rows(connector, name), snapshot_ids(connector, name)) == ([1], [1])
    append(connector, [{"id": 4}], "append-4", name)
    assert rows(connector, name) == [1, 4]


def test_commits_of_others_are_not_taken(connector: Connector, name: TableName) -> None:
    care(connector).create_tag(name, CreateTagSpec("third"))
    code = refusal(lambda: roll_back(connector, name, snapshot_id=1, force=False))
    assert code is ErrorCode.COMMITS_OF_OTHERS
    assert rows(connector, name) == [1, 2, 3]


@pytest.mark.parametrize("force", [True, False])
def test_a_commit_meanwhile(connector: Connector, name: TableName, force: bool) -> None:
    for number in (4, 5):
        append(connector, [{"id": number}], f"append-{number}", name)
    note = Noted(meanwhile=[lambda: append(connector, [{"id": 6}], "append-6", name)])
    spec = RollbackSpec(1, force=True) if force else RollbackSpec(5)

    def rolled_back() -> Any:
        return care(connector).roll_back(name, spec, dag_id="", dry_run=False, note=note)

    if force:
        assert rolled_back().snapshots == 5
        assert rows(connector, name) == [1]
    else:
        assert rolled_back().snapshots == 0
        assert rows(connector, name) == [1, 2, 3, 4, 5]


FAULTS: list[Fault] = ["lose the request", "lose the answer", "twice", "500", "503"]


@pytest.mark.parametrize("fault", FAULTS)
def test_lost_requests_and_answers(
    connector: Connector, unlucky: Connector, proxy: Proxy, name: TableName, fault: Fault
) -> None:
    maintenance = care(unlucky)
    proxy.add("POST", "/tags", fault)
    maintenance.create_tag(name, CreateTagSpec("a", 1))
    proxy.add("POST", "/rollback", fault)
    assert roll_back(unlucky, name, snapshot_id=2).snapshots == 1
    proxy.add("DELETE", "/tags", fault)
    assert maintenance.delete_tag(name, DeleteTagSpec("a"), dry_run=False).tags == 1

    assert rows(connector, name) == [1, 2]
    code = refusal(lambda: care(connector).delete_tag(name, DeleteTagSpec("a"), dry_run=False))
    assert code is ErrorCode.TAG_NOT_FOUND


def test_a_later_try_tells_what_the_first_did(connector: Connector, name: TableName) -> None:
    maintenance, notes = care(connector), [Noted(), Noted(), Noted()]
    first = maintenance.create_tag(name, CreateTagSpec("a"), note=notes[0])
    assert maintenance.create_tag(name, CreateTagSpec("a"), note=notes[0]) == first
    deleted = maintenance.delete_tag(name, DeleteTagSpec("a"), dry_run=False, note=notes[1])
    again = maintenance.delete_tag(name, DeleteTagSpec("a"), dry_run=False, note=notes[1])
    assert again == deleted
    back = RollbackSpec(1, force=True)
    done = maintenance.roll_back(name, back, dag_id="dag", dry_run=False, note=notes[2])
    append(connector, [{"id": 4}], "append-4", name)
    assert maintenance.roll_back(name, back, dag_id="dag", dry_run=False, note=notes[2]) == done
    assert rows(connector, name) == [1, 4]


def test_what_the_server_has_no_request_for(connector: Connector, name: TableName) -> None:
    maintenance = care(connector)
    works = [
        lambda: maintenance.expire_snapshots(name, ExpireSnapshotsSpec(), dry_run=True),
        lambda: maintenance.remove_orphan_files(name, RemoveOrphanFilesSpec(), dry_run=True),
        lambda: maintenance.delete_tag(name, DeleteTagSpec(None), dry_run=True),
    ]
    assert [refusal(work) for work in works] == [ErrorCode.NOT_SUPPORTED] * 3
