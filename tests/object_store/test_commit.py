"""What a commit promises holds on an object store too: one snapshot or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from spark_jobs.connectors.paimon.commit.merge_writes import PaimonMergeWrites
from spark_jobs.connectors.paimon.commit.publish import SnapshotFiles
from spark_jobs.connectors.paimon.library import stored_snapshots
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.errors import CommitError, ErrorCode, InternalError
from spark_jobs.spi.alterations import SchemaChange
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from spark_jobs.storage.conditional_put import ConditionalPutFiles
from tests.support.last_moment import check_a_new_table, check_a_rollback
from tests.support.paimon_tables import NAME, append, begin, create, inserts, merge, read
from tests.support.paimon_tables import store as stored
from tests.support.proxy import Proxy, proxy_before
from tests.support.stores import ObjectStore

ROWS = [{"id": 1}, {"id": 2}]


@pytest.fixture
def catalog(store: ObjectStore) -> CatalogSpec:
    return store.new_catalog()


@pytest.fixture
def connector(store: ObjectStore, catalog: CatalogSpec) -> Connector:
    return open_connector(catalog, store.credentials)


@pytest.fixture
def table(connector: Connector) -> TableHandle:
    create(connector, {"id": "bigint"})
    append(connector, ROWS)
    return connector.metadata.load_table(NAME)


@pytest.fixture
def proxy(store: ObjectStore) -> Iterator[Proxy]:
    with proxy_before(store.endpoint) as running:
        yield running


@pytest.fixture
def unlucky(store: ObjectStore, connector: Connector, proxy: Proxy) -> Connector:
    """The connector, but snapshots are published through the proxy."""
    client = replace(store, endpoint=proxy.endpoint).client()
    return _publishing_by(client, connector)


def _publishing_by(client: Any, connector: Connector) -> Connector:
    filesystem = connector.storage.filesystem
    store = SnapshotFiles(ConditionalPutFiles(client))
    writes = PaimonMergeWrites(connector.metadata, filesystem, store)  # type: ignore[arg-type]
    return replace(connector, writes=writes)


def data_files(store: ObjectStore, catalog: CatalogSpec) -> list[str]:
    bucket = catalog.warehouse.split("/")[2]
    return [key for key in store.keys(bucket) if "/data-" in key]


def guards(store: ObjectStore, catalog: CatalogSpec) -> list[str]:
    bucket = catalog.warehouse.split("/")[2]
    return [key for key in store.keys(bucket) if "/consumer-merge-" in key]


def test_a_commit_is_found_again_by_its_operation(connector: Connector, table: TableHandle) -> None:
    found = connector.writes.find_commit(table, "append")

    assert found is not None
    assert found.snapshot_id == 1
    assert connector.writes.find_commit(table, "another") is None
    assert stored_snapshots.find_snapshot(table.native.table, 2) is None


@pytest.mark.parametrize("check", [check_a_new_table, check_a_rollback])
def test_what_happens_in_the_last_moment(
    connector: Connector, check: Callable[[Connector], None]
) -> None:
    check(connector)


def test_the_guard_names_the_base_and_goes(
    store: ObjectStore, catalog: CatalogSpec, connector: Connector, table: TableHandle
) -> None:
    connector.writes.release_guard(table, "append")
    begin(connector, table, "op")
    assert [key.rpartition("/")[2] for key in guards(store, catalog)] == ["consumer-merge-op"]

    connector.writes.release_guard(table, "op")

    assert not guards(store, catalog)


def test_an_abort_removes_what_was_written_and_nothing_else(
    store: ObjectStore, catalog: CatalogSpec, connector: Connector, table: TableHandle
) -> None:
    before = data_files(store, catalog)
    merge = begin(connector, table)
    stored(merge, inserts(table, [{"id": 3}]))
    assert len(data_files(store, catalog)) == len(before) + 1

    connector.writes.abort_merge(table, merge)

    assert data_files(store, catalog) == before
    assert read(connector) == ROWS


def test_a_lost_answer_does_not_lose_or_double_the_commit(
    unlucky: Connector, table: TableHandle, proxy: Proxy
) -> None:
    plan = proxy.add("PUT", "snapshot-2", "lose the answer")
    merge = begin(unlucky, table)
    fragments = stored(merge, inserts(table, [{"id": 3}]))

    snapshot = unlucky.writes.finish_merge(table, merge, fragments, {})

    assert plan.seen == 2
    assert snapshot.snapshot_id == 2
    assert read(unlucky) == [*ROWS, {"id": 3}]


def test_a_lost_answer_does_not_lose_or_double_a_schema(
    unlucky: Connector, table: TableHandle, proxy: Proxy
) -> None:
    plan = proxy.add("PUT", "schema-1", "lose the answer")
    wider = unlucky.metadata.evolved(table, [SchemaChange(("more",), "string")])

    merge(unlucky, wider, inserts(wider, [{"id": 3, "more": "new"}]))

    assert plan.seen == 2
    assert read(unlucky) == [*({**row, "more": None} for row in ROWS), {"id": 3, "more": "new"}]


def test_when_all_answers_are_lost_the_commit_is_found(
    unlucky: Connector, table: TableHandle, proxy: Proxy
) -> None:
    proxy.add("PUT", "snapshot-2", "lose the answer", times=10)
    merge = begin(unlucky, table)
    fragments = stored(merge, inserts(table, [{"id": 3}]))

    snapshot = unlucky.writes.finish_merge(table, merge, fragments, {})

    assert snapshot.snapshot_id == 2
    assert read(unlucky) == [*ROWS, {"id": 3}]


def test_without_any_answer_files_stay_until_it_is_certain(
    store: ObjectStore,
    catalog: CatalogSpec,
    unlucky: Connector,
    table: TableHandle,
    proxy: Proxy,
) -> None:
    proxy.add("PUT", "snapshot-2", "lose the request", times=10)
    merge = begin(unlucky, table)
    fragments = stored(merge, inserts(table, [{"id": 3}]))
    written = data_files(store, catalog)

    with pytest.raises(CommitError, match="may still appear") as raised:
        unlucky.writes.finish_merge(table, merge, fragments, {})

    assert raised.value.code is ErrorCode.COMMIT_OUTCOME_UNKNOWN
    assert data_files(store, catalog) == written
    assert read(unlucky) == ROWS


def test_a_certain_refusal_is_told_as_one(
    store: ObjectStore, connector: Connector, table: TableHandle
) -> None:
    gone = replace(store, endpoint="http://127.0.0.1:9").client()
    unlucky = _publishing_by(gone, connector)
    merge = begin(unlucky, table)
    fragments = stored(merge, inserts(table, [{"id": 3}]))

    with pytest.raises(InternalError) as raised:
        unlucky.writes.finish_merge(table, merge, fragments, {})

    assert raised.value.code is ErrorCode.STORAGE_UNAVAILABLE
    assert read(connector) == ROWS
