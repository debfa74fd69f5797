"""A warehouse in HDFS is opened, or refused with what to correct."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.hdfs_options import HdfsOptions
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.errors import ErrorCode, JobError, NotSupportedError
from spark_jobs.spi.connector import Connector
from spark_jobs.storage import hdfs as hdfs_files
from tests.hdfs.proxy import proxy_before
from tests.judge.hdfs_server import Hdfs
from tests.support.last_moment import check_a_new_table, check_a_rollback
from tests.support.paimon_tables import NAME, append, create, read


def refused(catalog: CatalogSpec) -> JobError:
    with pytest.raises(JobError) as raised:
        open_connector(catalog, {})
    return raised.value


def test_tables_are_made_written_and_read(hdfs: Hdfs) -> None:
    catalog = hdfs.new_catalog()
    connector = open_connector(catalog, {})

    create(connector, {"id": "bigint", "day": "string"}, ["day"])
    append(connector, [{"id": 1, "day": "a/b:c"}, {"id": 2, "day": "ü=%"}])

    assert read(connector) == [{"id": 1, "day": "a/b:c"}, {"id": 2, "day": "ü=%"}]
    assert connector.metadata.load_table(NAME).snapshot_id == 1


@pytest.mark.parametrize("check", [check_a_new_table, check_a_rollback])
def test_what_happens_in_the_last_moment(hdfs: Hdfs, check: Callable[[Connector], None]) -> None:
    check(open_connector(hdfs.new_catalog(), {}))


def test_a_catalog_with_a_lock_is_taken(hdfs: Hdfs) -> None:
    """Java's rename does not replace a snapshot, with its lock or without."""
    connector = open_connector(replace(hdfs.new_catalog(), options={"lock.enabled": "true"}), {})

    create(connector, {"id": "bigint"})


def test_a_missing_folder_is_named(hdfs: Hdfs) -> None:
    error = refused(CatalogSpec("paimon", f"{hdfs.uri}/no-such-folder"))

    assert error.code is ErrorCode.WAREHOUSE_NOT_FOUND
    assert f"{hdfs.uri}/no-such-folder" in error.message


def test_a_warehouse_that_vanishes_is_not_made_again(hdfs: Hdfs) -> None:
    catalog = hdfs.new_catalog()
    connector = open_connector(catalog, {})
    hdfs.client().delete(catalog.warehouse.removeprefix(hdfs.uri), recursive=True)

    with pytest.raises(JobError) as raised:
        create(connector, {"id": "bigint"})

    assert raised.value.code is ErrorCode.WAREHOUSE_NOT_FOUND


def test_a_name_node_that_does_not_answer_is_told_soon() -> None:
    error = refused(CatalogSpec("paimon", "hdfs://127.0.0.1:9/warehouse"))

    assert error.code is ErrorCode.STORAGE_UNAVAILABLE
    assert "hdfs://127.0.0.1:9/warehouse" in error.message


def test_a_nameservice_that_nobody_configured(hdfs: Hdfs) -> None:
    error = refused(CatalogSpec("paimon", "hdfs://no-such-service/warehouse"))

    assert error.code is ErrorCode.STORAGE_UNAVAILABLE
    assert "No NameNode hosts found" in error.message


def test_a_nameservice_of_the_options_is_found(hdfs: Hdfs) -> None:
    catalog = hdfs.new_catalog()
    options = {
        "dfs.nameservices": "lake",
        "dfs.ha.namenodes.lake": "first",
        "hdfs.config.dfs.namenode.rpc-address.lake.first": hdfs.authority,
    }
    warehouse = catalog.warehouse.replace(hdfs.authority, "lake")
    connector = open_connector(replace(catalog, warehouse=warehouse, options=options), {})

    create(connector, {"id": "bigint"})
    append(connector, [{"id": 1}])

    assert read(connector) == [{"id": 1}]


def test_no_right_is_told(hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = hdfs.new_catalog()
    hdfs.client().set_permission("/".join(catalog.warehouse.split("/")[:4])[len(hdfs.uri) :], 0o700)
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody-else")
    hdfs_files._client.cache_clear()

    error = refused(catalog)
    hdfs_files._client.cache_clear()

    assert error.code is ErrorCode.WAREHOUSE_ACCESS_DENIED
    assert "somebody-else" in error.message


def test_a_warehouse_without_a_name_node_is_refused() -> None:
    error = refused(CatalogSpec("paimon", "hdfs:///warehouse"))

    assert isinstance(error, NotSupportedError)
    assert "NameNode" in error.message


@pytest.mark.parametrize("option", ["security.kerberos.login.principal", "hdfs.conf-dir"])
def test_what_would_work_on_the_driver_only_is_refused(option: str) -> None:
    error = refused(CatalogSpec("paimon", "hdfs://127.0.0.1:9/warehouse", {option: "x"}))

    assert isinstance(error, NotSupportedError)
    assert option in error.message


def test_a_missing_client_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    hdfs_files._client.cache_clear()

    error = refused(CatalogSpec("paimon", "hdfs://127.0.0.1:9/warehouse"))

    assert error.code is ErrorCode.LIBRARY_MISSING
    assert "hdfs-native" in error.message
    assert "driver" in error.message
    assert "executors" in error.message


def test_options_of_another_store_stay_where_they_are() -> None:
    options = {"fs.s3.accessKeySecret": "secret", "dfs.a": "1", "hdfs.config.ipc.b": "2"}

    found = HdfsOptions.of("hdfs://lake/warehouse", options)

    assert found.config == (("dfs.a", "1"), ("ipc.b", "2"))


def test_a_name_node_that_falls_silent_may_be_back_later(hdfs: Hdfs) -> None:
    catalog = hdfs.new_catalog()
    create(open_connector(catalog, {}), {"id": "bigint"})
    with proxy_before(hdfs.authority) as proxy:
        warehouse = catalog.warehouse.replace(hdfs.authority, proxy.authority)
        options = {"dfs.client.failover.max.attempts": "1"}
        connector = open_connector(replace(catalog, warehouse=warehouse, options=options), {})
        connector.metadata.load_table(NAME)
        proxy.add("getBlockLocations", "be silent from then on")

        with pytest.raises(JobError) as raised:
            connector.metadata.load_table(NAME)

    assert raised.value.code is ErrorCode.STORAGE_UNAVAILABLE
