"""A SQL catalog on PostgreSQL, whose user and password are not in its address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.errors import CatalogError, ErrorCode, InternalError
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.direct import DirectWrite, found
from tests.connectors.iceberg.plain_tables import NAME
from tests.support import postgresql
from tests.support.optional_packages import require_package

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
ROWS = pa.Table.from_pylist([{"id": each, "s": "x"} for each in range(3)], schema=SCHEMA)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """With the user; the server takes any password."""
    require_package("sqlalchemy")
    require_package("psycopg2")
    try:
        programs = postgresql.programs()
    except postgresql.NotInstalledError as missing:
        pytest.skip(str(missing))
    with postgresql.running(programs) as url:
        yield url


def opened(address: str, folder: Path, **options: str) -> Connector:
    user, _, rest = address.removeprefix("postgresql+psycopg2://").partition("@")
    catalog = {"type": "sql", "uri": f"postgresql+psycopg2://{rest}", "catalog-name": "plain"}
    secrets = {"jdbc.user": user, "jdbc.password": "p@ss:/word", **options}
    return open_connector(CatalogSpec("iceberg", str(folder), catalog), secrets)


def test_writers_of_one_table(address: str, tmp_path: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    library = SqlCatalog("plain", uri=address, warehouse=f"file://{tmp_path}")
    library.create_namespace("db")
    library.create_table(("db", "t"), SCHEMA, properties={"format-version": "2"}).append(ROWS)
    connector = opened(address, tmp_path)
    begun = DirectWrite(connector, isolation="snapshot").delete(0, 1)
    DirectWrite(opened(address, tmp_path), reads=False).insert({"id": 10, "s": "a"}).publish()

    made = begun.publish()

    table = library.load_table(("db", "t"))
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == [0, 2, 10]
    assert table.current_snapshot().snapshot_id == made.snapshot_id
    assert found(connector, begun.operation_id) == made


def test_what_the_catalog_refuses(address: str, tmp_path: Path) -> None:
    with pytest.raises(InternalError) as caught:
        opened(address, tmp_path, **{"jdbc.user": "nobody"}).metadata.load_table(NAME)
    assert caught.value.code is ErrorCode.STORAGE_UNAVAILABLE
    assert "p@ss" not in str(caught.value)
    with pytest.raises(CatalogError) as missing:
        opened(address, tmp_path).metadata.load_table(TableName("db", "nothing"))
    assert missing.value.code is ErrorCode.TABLE_NOT_FOUND
