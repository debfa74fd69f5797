"""Expiry and orphan files through Iceberg's own REST server, which decides who commits."""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.contract.maintenance import ExpireSnapshotsSpec, RemoveOrphanFilesSpec
from spark_jobs.errors import ErrorCode
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.answers import answering
from tests.connectors.iceberg.plain_history import NAME, SCHEMA, care, refusal
from tests.connectors.iceberg.rest_tables import RestTables
from tests.judge.iceberg_server import IcebergRest, iceberg_rest
from tests.support.proxy import Fault, Proxy, proxy_before

__all__ = ["iceberg_rest"]
pytestmark = pytest.mark.slow
NOW = ExpireSnapshotsSpec(older_than="0 s")


@pytest.fixture(autouse=True)
def _no_database_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    # A driver of REST catalogs has none.
    for name in ("sqlalchemy", "sqlalchemy.exc", "sqlalchemy.engine"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture
def tables(iceberg_rest: IcebergRest) -> RestTables:
    """Four snapshots, which append the ids 0 to 3; then one that replaces all by 10."""
    made = RestTables(iceberg_rest)
    # A folder of its own: files of dropped tables stay.
    location = f"file:{iceberg_rest.folder}/{uuid.uuid4()}"
    properties = {"format-version": "2"}
    made.emptied().create_table(("db", "t"), SCHEMA, location=location, properties=properties)
    for each in range(4):
        append(made, each)
    table(made).overwrite(pa.table({"id": [10]}, schema=SCHEMA))
    return made


@pytest.fixture
def proxy(tables: RestTables) -> Iterator[Proxy]:
    with proxy_before(tables.server.uri) as running:
        yield running


def append(tables: RestTables, id_: int) -> None:
    table(tables).append(pa.table({"id": [id_]}, schema=SCHEMA))


def table(tables: RestTables) -> Any:
    return tables.library().load_table(("db", "t"))


def snapshots(tables: RestTables) -> list[int]:
    return [each.snapshot_id for each in table(tables).snapshots()]


def ids(tables: RestTables) -> list[int]:
    return sorted(table(tables).scan().to_arrow()["id"].to_pylist())


def data_files(tables: RestTables) -> list[Path]:
    root = Path("/" + table(tables).location().removeprefix("file:").lstrip("/"))
    return sorted(root.rglob("*.parquet"))


@pytest.mark.parametrize("fault", [None, "lose the request", "lose the answer"])
def test_snapshots_expire_once(tables: RestTables, proxy: Proxy, fault: Fault | None) -> None:
    if fault:
        proxy.add("POST", "/tables/t", fault)

    report = care(tables.open(proxy.endpoint)).expire_snapshots(NAME, NOW, dry_run=False)

    assert (report.snapshots, report.data_files) == (5, 4)
    assert len(snapshots(tables)) == 1
    assert len(data_files(tables)) == 1
    assert ids(tables) == [10]


def test_an_append_or_a_rollback_meanwhile_is_kept(
    tables: RestTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    connector, second = tables.open(), snapshots(tables)[1]

    def appended(commit: Callable[[], Any]) -> Any:
        append(tables, 11)
        return commit()

    def rolled_back(commit: Callable[[], Any]) -> Any:
        table(tables).manage_snapshots().set_current_snapshot(second).commit()
        return commit()

    answering(connector, monkeypatch, appended, rolled_back)

    care(connector).expire_snapshots(NAME, NOW, dry_run=False)

    # What was appended meanwhile is on no branch, but younger than the limit.
    assert snapshots(tables)[0] == second
    assert len(snapshots(tables)) == 2
    assert ids(tables) == [0, 1]


def test_a_tag_that_is_lost_is_reported_and_its_files_stay(
    tables: RestTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server cannot be asked to refuse when there is a new reference."""
    connector, second = tables.open(), snapshots(tables)[1]

    def tagged(commit: Callable[[], Any]) -> Any:
        table(tables).manage_snapshots().create_tag(second, "meanwhile").commit()
        return commit()

    answering(connector, monkeypatch, tagged)

    code, text = refusal(lambda: care(connector).expire_snapshots(NAME, NOW, dry_run=False))

    assert code is ErrorCode.REFERENCE_LOST
    assert f"tag meanwhile (snapshot {second}" in text
    assert len(data_files(tables)) == 5
    # The next expiry leaves them, too: they are orphans until somebody searches for those.
    care(connector).expire_snapshots(NAME, NOW, dry_run=False)
    assert len(data_files(tables)) == 5
    # What the error names can be registered, and read.
    location = text.split(", in ")[1].split(")")[0]
    tables.library().register_table(("db", "rescued"), location)
    rescued = tables.library().load_table(("db", "rescued"))
    assert rescued.scan(snapshot_id=second).to_arrow()["id"].to_pylist() == [1, 0]


def test_orphans_go(tables: RestTables) -> None:
    connector: Connector = tables.open()
    lost = data_files(tables)[0].with_name("lost.parquet")
    lost.write_bytes(b"lost")
    old = time.time() - 3 * 86_400
    for each in data_files(tables):
        os.utime(each, (old, old))

    spec = RemoveOrphanFilesSpec()
    report = care(connector).remove_orphan_files(NAME, spec, dry_run=False)

    assert report.files == ("data/lost.parquet",)
    assert len(data_files(tables)) == 5
    assert ids(tables) == [10]
