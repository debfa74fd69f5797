"""An object store that fails while metadata is read is no damaged table: a retry may help."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from pypaimon.filesystem.pyarrow_file_io import PyArrowFileIO

from spark_jobs.connectors.paimon.library.table_schema import is_stored
from spark_jobs.connectors.registry import open_connector
from spark_jobs.errors import CatalogError, ErrorCode, InternalError
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import PlannedFile
from spark_jobs.storage.files import read_file, replace_file
from tests.support.paimon_tables import NAME, append, create
from tests.support.proxy import Fault, Proxy, proxy_before
from tests.support.stores import ObjectStore


@pytest.fixture
def proxy(store: ObjectStore) -> Iterator[Proxy]:
    with proxy_before(store.endpoint) as running:
        yield running


@pytest.fixture
def connector(store: ObjectStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Connector:
    """A connector that reaches a table of one row through the proxy."""
    # pypaimon asks up to ten times, for more than a minute in all: here once.
    patience = PyArrowFileIO._create_s3_retry_config
    monkeypatch.setattr(patience, "__defaults__", (1, *patience.__defaults__[1:]))
    catalog = store.new_catalog()
    direct = open_connector(catalog, store.credentials)
    create(direct, {"id": "bigint"})
    append(direct, [{"id": 1}])
    through = replace(store, endpoint=proxy.endpoint).catalog(catalog.warehouse)
    return open_connector(through, store.credentials)


def planned(connector: Connector) -> tuple[PlannedFile, ...]:
    return tuple(connector.metadata.plan_files(connector.metadata.load_table(NAME)))


@pytest.mark.parametrize(
    ("method", "path", "fault"),
    [
        ("HEAD", "/snapshot/snapshot-1", "503"),
        ("GET", "/schema/schema-0", "lose the request"),
        ("GET", "/manifest/manifest-list-", "lose the answer"),
        ("HEAD", "/manifest/manifest-", "503"),
    ],
)
def test_a_failure_of_the_store_may_pass(
    connector: Connector, proxy: Proxy, method: str, path: str, fault: Fault
) -> None:
    plan = proxy.add(method, path, fault, times=100)

    with pytest.raises(InternalError) as raised:
        planned(connector)

    assert plan.seen > 0
    assert raised.value.code is ErrorCode.STORAGE_UNAVAILABLE
    assert raised.value.retryable
    assert "shop.orders" in raised.value.message

    proxy.plans.clear()

    assert len(planned(connector)) == 1


def test_a_missing_manifest_stays_missing(store: ObjectStore, connector: Connector) -> None:
    table = connector.metadata.load_table(NAME)
    name = table.native.snapshot.delta_manifest_list
    store.filesystem().delete_file(f"{table.native.path}/manifest/{name}")

    with pytest.raises(CatalogError, match=name) as raised:
        planned(connector)

    assert raised.value.code is ErrorCode.METADATA_UNREADABLE


def test_a_file_that_goes_while_it_is_opened_is_not_there(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    direct = open_connector(store.new_catalog(), store.credentials)
    create(direct, {"id": "bigint"})
    table = direct.metadata.load_table(NAME)
    files, library = direct.storage.filesystem, table.native.table
    path = f"{table.native.path}/schema/schema-0"
    opened = PyArrowFileIO.new_input_stream

    def opened_and_gone(self: PyArrowFileIO, where: str) -> object:
        stream = opened(self, where)
        files.delete_file(path)
        return stream

    monkeypatch.setattr(PyArrowFileIO, "new_input_stream", opened_and_gone)

    assert is_stored(library) is False


@dataclass(frozen=True)
class Fleeting:
    """A filesystem whose files go as soon as they are opened."""

    real: pafs.FileSystem

    def open_input_stream(self, path: str) -> pa.NativeFile:
        stream = self.real.open_input_stream(path)
        self.real.delete_file(path)
        return stream

    def get_file_info(self, path: str) -> pafs.FileInfo:
        return self.real.get_file_info(path)


def test_a_small_file_that_goes_once_it_is_opened_is_not_there(
    store: ObjectStore, connector: Connector
) -> None:
    files, path = connector.storage.filesystem, f"{connector.storage.root}/_operations/note.json"
    replace_file(files, path, b"note")
    assert read_file(files, path) == b"note"

    with pytest.raises(FileNotFoundError):
        read_file(Fleeting(files), path)  # type: ignore[arg-type]
