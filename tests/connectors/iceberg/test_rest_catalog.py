"""Commits through Iceberg's own REST server; servers that do not answer."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from spark_jobs.connectors.iceberg.library import catalogs
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.maintenance import CreateTagSpec, DeleteTagSpec, RollbackSpec
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.errors import ErrorCode, JobError
from tests.connectors.iceberg.direct import DirectWrite, found, ids_of
from tests.connectors.iceberg.lost_requests import assert_one_snapshot, assert_retry_knows
from tests.connectors.iceberg.plain_tables import NAME
from tests.connectors.iceberg.rest_tables import RestTables
from tests.judge.iceberg_server import IcebergRest, iceberg_rest
from tests.support.noted import Noted
from tests.support.proxy import Fault, Proxy, proxy_before
from tests.support.small_server import Answer, serving

__all__ = ["iceberg_rest"]

_COMMITS = "/tables/t"
SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])


@pytest.fixture(autouse=True)
def _no_database_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    # A driver of REST catalogs has none.
    for name in ("sqlalchemy", "sqlalchemy.exc", "sqlalchemy.engine"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture
def tables(iceberg_rest: IcebergRest) -> RestTables:
    """A file with the ids 0 to 4."""
    made = RestTables(iceberg_rest)
    table = made.emptied().create_table(("db", "t"), SCHEMA, properties={"format-version": "2"})
    rows = [{"id": each, "s": "x"} for each in range(5)]
    table.append(pa.Table.from_pylist(rows, schema=SCHEMA))
    return made


@pytest.fixture
def proxy(tables: RestTables) -> Iterator[Proxy]:
    with proxy_before(tables.server.uri) as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("fault", [None, "lose the request", "lose the answer"])
@pytest.mark.parametrize("purge", [False, True])
def test_a_table_is_dropped_once(
    tables: RestTables, proxy: Proxy, fault: Fault | None, purge: bool
) -> None:
    spec, note = DropTableSpec(purge=purge), Noted()
    alterations = tables.open(proxy.endpoint).alterations
    assert alterations is not None
    plan = proxy.add("DELETE", _COMMITS, fault) if fault else None
    try:
        assert alterations.drop_table(NAME, spec, note=note)
    except JobError as error:
        if plan is None or error.code is not ErrorCode.COMMIT_OUTCOME_UNKNOWN:
            raise
        assert alterations.drop_table(NAME, spec, note=note)
    assert plan is None or plan.seen > 0
    assert not tables.library().table_exists(("db", "t"))

    # Whatever has the name then is of somebody else.
    tables.library().create_table(("db", "t"), SCHEMA)
    assert alterations.drop_table(NAME, spec, note=note)
    assert tables.library().table_exists(("db", "t"))


@pytest.mark.slow
@pytest.mark.parametrize("fault", [None, "lose the request", "lose the answer"])
def test_tags_and_rollbacks_are_made_once(
    tables: RestTables, proxy: Proxy, fault: Fault | None
) -> None:
    first = tables.library().load_table(("db", "t")).current_snapshot().snapshot_id
    DirectWrite(tables.open()).insert({"id": 20, "s": "new"}).publish()
    care = tables.open(proxy.endpoint).maintenance
    assert care is not None

    def suffering() -> None:
        if fault:
            proxy.add("POST", _COMMITS, fault)

    suffering()
    care.create_tag(NAME, CreateTagSpec("begin", first, retention="1 d"))
    refs = tables.library().load_table(("db", "t")).metadata.refs
    assert (refs["begin"].snapshot_id, refs["begin"].max_ref_age_ms) == (first, 86_400_000)
    suffering()
    care.roll_back(NAME, RollbackSpec(tag="begin", force=True), dag_id="", dry_run=False)
    assert ids_of(tables) == [0, 1, 2, 3, 4]
    suffering()
    assert care.delete_tag(NAME, DeleteTagSpec("begin"), dry_run=False).tags == 1
    assert set(tables.library().load_table(("db", "t")).metadata.refs) == {"main"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        None,
        "lose the request",
        "lose the answer",
        "cut the answer",
        "twice",
        "late",
        "429",
        "500",
        "503",
    ],
)
def test_one_snapshot_whatever_happens_to_the_request(
    tables: RestTables, proxy: Proxy, fault: Fault | None
) -> None:
    assert_one_snapshot(tables, proxy, _COMMITS, fault)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["lose the request", "late", "503"])
def test_a_retry_finds_out_what_became_of_requests_without_any_answer(
    tables: RestTables, proxy: Proxy, fault: Fault
) -> None:
    assert_retry_knows(tables, tables.server.folder, proxy, _COMMITS, fault)


@pytest.mark.slow
def test_a_catalog_that_dies_in_mid_job(tables: RestTables, proxy: Proxy) -> None:
    connector = tables.open(proxy.endpoint)
    connector.metadata.load_table(NAME)
    proxy.add("GET", "", "lose the request", times=1000)

    with pytest.raises(JobError) as caught:
        connector.metadata.load_table(NAME)

    assert caught.value.code is ErrorCode.STORAGE_UNAVAILABLE
    assert caught.value.retryable


@pytest.mark.slow
def test_a_catalog_that_dies_before_its_answer(
    tables: RestTables, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = DirectWrite(tables.open(proxy.endpoint)).insert({"id": 20, "s": "new"})
    stored = set(tables.server.folder.rglob("*.parquet"))
    commit, before = proxy.add("POST", _COMMITS, "lose the answer"), proxy.fault

    def fault(method: str, path: str) -> Fault | None:
        return "lose the request" if commit.seen else before(method, path)

    monkeypatch.setattr(proxy, "fault", fault)

    with pytest.raises(JobError) as caught:
        write.publish()

    assert caught.value.code is ErrorCode.COMMIT_OUTCOME_UNKNOWN
    assert stored == set(tables.server.folder.rglob("*.parquet"))
    assert found(tables.open(), write.operation_id) is not None


@pytest.mark.slow
def test_a_wrong_token(tables: RestTables) -> None:
    spec = CatalogSpec(
        "iceberg", str(tables.server.folder), {"type": "rest", "uri": tables.server.uri}
    )
    with pytest.raises(JobError) as caught:
        open_connector(spec, {"token": "another"}).metadata.load_table(NAME)

    assert caught.value.code is ErrorCode.WAREHOUSE_ACCESS_DENIED
    assert "another" not in str(caught.value)


def test_a_catalog_in_a_database_names_the_library_that_is_missing(tmp_path: Path) -> None:
    spec = CatalogSpec("iceberg", str(tmp_path), {"type": "sql", "uri": "sqlite://"})
    with pytest.raises(JobError) as caught:
        open_connector(spec, {}).metadata.load_table(NAME)

    assert caught.value.code is ErrorCode.LIBRARY_MISSING
    assert "sqlalchemy" in caught.value.message


@pytest.fixture
def silent_server() -> Iterator[str]:
    """The address of a server that takes requests and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    kept.append(server.accept()[0])
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    for each in kept:
        each.close()


def test_a_server_that_does_not_answer(
    silent_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogs, "_SECONDS", (10.0, 0.3))
    spec = CatalogSpec("iceberg", str(tmp_path), {"type": "rest", "uri": silent_server})

    with pytest.raises(JobError) as caught:
        open_connector(spec, {"token": "t"}).metadata.load_table(NAME)

    assert caught.value.code is ErrorCode.STORAGE_UNAVAILABLE


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    asked: list[str] = []

    def answer_to(path: str) -> Answer:
        asked.append(path)
        return 302, b""

    with serving(answer_to) as uri:
        spec = CatalogSpec("iceberg", str(tmp_path), {"type": "rest", "uri": uri})
        with pytest.raises(JobError) as caught:
            open_connector(spec, {"token": "t"}).metadata.load_table(NAME)

    assert asked == ["/v1/config"]
    assert caught.value.code is ErrorCode.STORAGE_UNAVAILABLE
    assert "uri" in str(caught.value.remedy)
