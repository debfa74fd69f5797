"""Commits on a REST catalog: its server publishes one snapshot or none, whatever is lost."""

from __future__ import annotations

import multiprocessing
import os
import signal
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_jobs.connectors.paimon.commit.merge_writes import PaimonMergeWrites
from spark_jobs.connectors.paimon.commit.new_snapshot import NewSnapshot
from spark_jobs.connectors.paimon.commit.publish import CatalogServer
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec
from spark_jobs.contract.request import CatalogSpec, FileSource, JobRequest, Origin, TableName
from spark_jobs.contract.statements import (
    ColumnSpec,
    CreateTableSpec,
    InsertAllAction,
    MergeCase,
    MergeSpec,
    UpdateAllAction,
)
from spark_jobs.errors import CommitError, ErrorCode, JobError, NotSupportedError
from spark_jobs.run import run
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from spark_jobs.spi.writes import MergeWrite, Operation
from tests.judge.judge import read_with_java
from tests.judge.rest_server import RestCatalog
from tests.support.compaction_runs import compact
from tests.support.paimon_tables import append, begin, create, inserts, read, snapshot_ids, store
from tests.support.proxy import Proxy, proxy_before

ROWS = [{"id": 1}, {"id": 2}]


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


@pytest.fixture
def proxy(rest: RestCatalog) -> Iterator[Proxy]:
    with proxy_before(rest.uri) as running:
        yield running


@pytest.fixture
def unlucky(rest: RestCatalog, proxy: Proxy) -> Connector:
    """A connector that reaches the server through the proxy."""
    return open_connector(replace(rest, uri=proxy.endpoint).spec(), rest.credentials)


def files(table: TableHandle, pattern: str) -> list[Path]:
    return sorted(Path(table.native.path).rglob(pattern))


@dataclass
class Interrupted:
    """A store that does something else before, or after, it publishes for the first time."""

    server: CatalogServer
    before: Callable[[], Any] | None = None
    after: Callable[[], Any] | None = None

    def publish(self, latest: PinnedTable, new: NewSnapshot) -> bool:
        before, self.before = self.before, None
        if before:
            before()
        is_published = self.server.publish(latest, new)
        if self.after:
            self.after()
        return is_published


def interrupted(connector: Connector, **what: Callable[[], Any]) -> Connector:
    writes = connector.writes
    assert isinstance(writes, PaimonMergeWrites)
    assert isinstance(writes._snapshots, CatalogServer)
    snapshots = Interrupted(writes._snapshots, **what)
    filesystem = connector.storage.filesystem
    return replace(connector, writes=PaimonMergeWrites(writes._metadata, filesystem, snapshots))


def test_a_compaction_is_published_by_the_server(
    connector: Connector, rest: RestCatalog, name: TableName
) -> None:
    create(connector, {"id": "bigint"}, name=name)
    for number in range(6):
        append(connector, [{"id": number}], f"op-{number}", name)
    before = read(connector, name)
    conflict = [lambda: append(connector, [{"id": 99}], "other", name)]

    def interfere() -> None:
        if conflict:
            conflict.pop()()

    result = compact(connector, rest.spec(), CompactSpec(), name=name, before_publication=interfere)

    assert result.error is None, result.error
    assert result.compaction is not None
    assert (result.compaction.files_before, result.compaction.files_after) == (6, 1)
    assert result.compaction.snapshots == (8,)
    assert read(connector, name) == [*before, {"id": 99}]
    snapshot = connector.metadata.load_table(name).native.snapshot
    assert (snapshot.commit_kind, snapshot.total_record_count) == ("COMPACT", 7)


def test_the_server_publishes_and_tells_the_latest_snapshot(
    connector: Connector, table: TableHandle, name: TableName
) -> None:
    (hint,) = files(table, "LATEST")
    hint.write_text("7")

    made = append(connector, [{"id": 3}], "second", name)

    assert made.snapshot_id == 2
    assert read(connector, name) == [*ROWS, {"id": 3}]
    assert snapshot_ids(connector, name) == [1, 2]
    again = connector.metadata.load_table(name)
    found = connector.writes.find_commit(again, "second")
    assert found is not None
    assert found.snapshot_id == 2


def test_an_equal_table_is_left_alone_and_another_one_told(
    connector: Connector, name: TableName
) -> None:
    def spec(kind: str) -> CreateTableSpec:
        return CreateTableSpec((ColumnSpec("id", kind), ColumnSpec("p", "int")), ("p",))

    assert connector.metadata.create_table(name, spec("bigint"))
    assert not connector.metadata.create_table(name, spec("bigint"))

    with pytest.raises(JobError, match="column id is bigint") as raised:
        connector.metadata.create_table(name, spec("string"))

    assert raised.value.code is ErrorCode.TABLE_DIFFERS


def test_a_branch_is_published_apart(
    connector: Connector, table: TableHandle, name: TableName
) -> None:
    catalog = connector.metadata._catalog  # type: ignore[attr-defined]
    catalog.create_tag(str(name), "start")
    catalog.create_branch(str(name), "test", "start")
    branch = replace(name, table=f"{name.table}$branch_test")

    made = append(connector, [{"id": 3}], "second", branch)

    assert made.snapshot_id == 2
    assert read(connector, branch) == [*ROWS, {"id": 3}]
    assert read(connector, name) == ROWS
    assert snapshot_ids(connector, name) == [1]


def test_a_table_on_other_storage_than_the_warehouse_is_refused(
    rest: RestCatalog, table: TableHandle, name: TableName
) -> None:
    options = {**rest.spec().options, "fs.s3.endpoint": "http://127.0.0.1:9"}
    elsewhere = CatalogSpec("paimon", "s3://bucket/warehouse", options)
    connector = open_connector(elsewhere, rest.credentials)

    with pytest.raises(NotSupportedError, match=f"{name} lies at {table.native.path}"):
        connector.metadata.load_table(name)


def test_a_lost_race_is_published_behind_the_winner(
    connector: Connector, table: TableHandle, name: TableName
) -> None:
    late = interrupted(connector, before=lambda: append(connector, [{"id": 3}], "other", name))
    write = MergeWrite(Operation("op", "", {}), (), ((),), (), 2**27, read_set=lambda _: ())
    merge = late.writes.begin_merge(table, write)
    fragments = store(merge, inserts(table, [{"id": 4}]))

    snapshot = late.writes.finish_merge(table, merge, fragments, {})

    assert snapshot.snapshot_id == 3
    assert read(connector, name) == [*ROWS, {"id": 3}, {"id": 4}]
    assert len(files(table, "manifest-list-*")) == 2 * 3


def test_of_two_drivers_of_one_operation_one_commits(
    connector: Connector, rest: RestCatalog, table: TableHandle, name: TableName
) -> None:
    twin = open_connector(rest.spec(), rest.credentials)
    other = begin(twin, table)
    others = store(other, inserts(table, [{"id": 3}]), task="twin")
    slow = interrupted(
        connector, before=lambda: twin.writes.finish_merge(table, other, others, {"by": "twin"})
    )
    merge = begin(slow, table)
    fragments = store(merge, inserts(table, [{"id": 3}]))

    with pytest.raises(CommitError, match="by another driver") as raised:
        slow.writes.finish_merge(table, merge, fragments, {})

    assert raised.value.code is ErrorCode.COMMIT_CONFLICT
    found = slow.writes.find_commit(table, "op")
    assert found is not None
    assert found.properties == {"by": "twin"}
    assert read(connector, name) == [*ROWS, {"id": 3}]


@pytest.mark.parametrize("times", [1, 10], ids=["one answer", "every answer"])
def test_a_lost_answer_does_not_lose_or_double_the_commit(
    connector: Connector,
    unlucky: Connector,
    proxy: Proxy,
    table: TableHandle,
    name: TableName,
    times: int,
) -> None:
    plan = proxy.add("POST", "/commit", "lose the answer", times)
    merge = begin(unlucky, table)
    fragments = store(merge, inserts(table, [{"id": 3}]))

    snapshot = unlucky.writes.finish_merge(table, merge, fragments, {})

    assert plan.seen == min(times + 1, 3)
    assert snapshot.snapshot_id == 2
    assert read(connector, name) == [*ROWS, {"id": 3}]


def test_without_any_answer_files_stay_until_it_is_certain(
    connector: Connector, unlucky: Connector, proxy: Proxy, table: TableHandle, name: TableName
) -> None:
    proxy.add("POST", "/commit", "lose the request", times=10)
    merge = begin(unlucky, table)
    fragments = store(merge, inserts(table, [{"id": 3}]))

    with pytest.raises(CommitError, match="may still appear") as raised:
        unlucky.writes.finish_merge(table, merge, fragments, {})

    assert raised.value.code is ErrorCode.COMMIT_OUTCOME_UNKNOWN
    assert len(files(table, "*.parquet")) == 2
    assert len(files(table, "manifest-list-*")) == 2 * 2
    assert read(connector, name) == ROWS


def test_a_request_that_came_twice_is_no_lost_race(
    connector: Connector, table: TableHandle, name: TableName
) -> None:
    server = connector.writes._snapshots  # type: ignore[attr-defined]

    class Twice:
        def publish(self, latest: PinnedTable, new: NewSnapshot) -> bool:
            server.publish(latest, new)
            return bool(server.publish(latest, new))

    filesystem = connector.storage.filesystem
    writes = PaimonMergeWrites(connector.metadata, filesystem, Twice())  # type: ignore[arg-type]
    merge = begin(connector, table)
    fragments = store(merge, inserts(table, [{"id": 3}]))

    assert writes.finish_merge(table, merge, fragments, {}).snapshot_id == 2
    assert read(connector, name) == [*ROWS, {"id": 3}]


def _killed_when_published(spec: CatalogSpec, credentials: dict[str, str], name: TableName) -> None:
    connector = open_connector(spec, credentials)
    dying = interrupted(connector, after=lambda: os.kill(os.getpid(), signal.SIGKILL))
    append(dying, [{"id": 3}], "killed", name)


def test_the_commit_of_a_killed_driver_is_found(
    connector: Connector, rest: RestCatalog, table: TableHandle, name: TableName
) -> None:
    context = multiprocessing.get_context("spawn")
    arguments = (rest.spec(), rest.credentials, name)
    driver = context.Process(target=_killed_when_published, args=arguments)
    driver.start()
    driver.join(600)
    assert driver.exitcode == -signal.SIGKILL

    found = connector.writes.find_commit(connector.metadata.load_table(name), "killed")

    assert found is not None
    assert found.snapshot_id == 2
    assert read(connector, name) == [*ROWS, {"id": 3}]
    assert [path.name for path in files(table, "consumer-*killed")] == ["consumer-merge-killed"]


def test_what_is_wrong_with_the_connection_is_told_without_the_token(rest: RestCatalog) -> None:
    wrong = {"token": "no-such-token"}
    cases: list[tuple[dict[str, str], dict[str, str], ErrorCode, str]] = [
        ({}, {}, ErrorCode.WAREHOUSE_ACCESS_DENIED, "no token"),
        ({}, wrong, ErrorCode.WAREHOUSE_ACCESS_DENIED, "does not accept"),
        ({"rest.warehouse": "sea"}, {}, ErrorCode.WAREHOUSE_NOT_FOUND, "does not know"),
        ({"uri": ""}, {}, ErrorCode.WAREHOUSE_NOT_FOUND, "uri"),
        ({"uri": "http://127.0.0.1:9"}, {}, ErrorCode.STORAGE_UNAVAILABLE, "did not answer"),
        ({"data-token.enabled": "true"}, {}, ErrorCode.NOT_SUPPORTED, "data-token.enabled"),
        ({"token.provider": "dlf"}, {}, ErrorCode.NOT_SUPPORTED, "token.provider"),
    ]
    for number, (options, credentials, code, text) in enumerate(cases):
        given = credentials if number == 0 else {"token": rest.token, **credentials}
        with pytest.raises(JobError, match=text) as raised:
            open_connector(rest.spec(options), given)
        assert raised.value.code is code, text
        assert rest.token not in str(raised.value)
        assert "no-such" not in str(raised.value)


def test_a_merge_through_spark_and_what_java_reads(
    spark: SparkSession, rest: RestCatalog, connector: Connector, tmp_path: Path, name: TableName
) -> None:
    create(connector, {"id": "bigint", "v": "string"}, name=name)
    append(connector, [{"id": i, "v": "old"} for i in range(3)], name=name)
    source = tmp_path / "source.parquet"
    pq.write_table(pa.table({"id": [1, 9], "v": ["new", "new"]}), source)
    cases = (MergeCase("matched", UpdateAllAction()), MergeCase("not_matched", InsertAllAction()))
    request = JobRequest(
        operation_id="through-spark",
        target=name,
        catalog=rest.spec(),
        statement=MergeSpec("s", "t.id = s.id", cases, "t", "s"),
        sources=(FileSource("s", str(source), "parquet"),),
    )
    operations = rest.folder / "_operations"
    of_others = set(operations.glob("*.json"))

    result = run(request, spark, rest.credentials)
    retried = replace(request, origin=Origin(try_number=2))
    again = run(retried, spark, rest.credentials)

    expired = run(
        replace(request, operation_id="care", statement=ExpireSnapshotsSpec(), sources=()),
        spark,
        rest.credentials,
    )

    assert result.error is None
    assert (result.metrics.updated, result.metrics.inserted) == (1, 1)
    assert expired.error is not None
    assert expired.error.code == "NOT_SUPPORTED"
    assert again.new_snapshot_id == result.new_snapshot_id == 2
    expected = [(0, "old"), (1, "new"), (2, "old"), (9, "new")]
    assert [(row["id"], row["v"]) for row in read(connector, name)] == expected
    rows = read_with_java(rest.folder, str(name))
    assert sorted((row["id"], row["v"]) for row in rows) == expected
    assert sorted(path.name for path in {*operations.glob("*.json")} - of_others) == [
        "care.json",
        "through-spark.json",
    ]
    assert not any(
        rest.token in path.read_text(errors="replace")
        for path in rest.folder.rglob("*")
        if path.is_file()
    )
