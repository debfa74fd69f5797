"""Files that cannot be read rightly are refused by name, but only if a statement needs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.connectors.iceberg.read.scanned_files import scanned_file
from spark_jobs.connectors.iceberg.table.manifests import DATA, DELETES, EQUALITY_DELETES
from spark_jobs.connectors.iceberg.table.pinned_table import pinned_table
from spark_jobs.errors import CatalogError, NotSupportedError
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.direct import DirectWrite
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog
from tests.support.iceberg_foreign_files import add_file

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string()), ("f", pa.float64())])
ROWS = pa.Table.from_pylist([{"id": each, "s": "x", "f": 0.5} for each in range(5)], schema=SCHEMA)


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    made = PlainCatalog(tmp_path)
    made.create(SCHEMA, {"format-version": "2"}, ROWS)
    return made


def reads(connector: Connector) -> list[str]:
    """What is said of each file when it is read; empty if it can be."""
    table = connector.metadata.load_table(NAME)
    said = []
    for each in connector.metadata.plan_files(table):
        try:
            scanned_file(pinned_table(table), NAME, each.ordinal)
        except NotSupportedError as error:
            said.append(error.message)
        else:
            said.append("")
    return said


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"file_format": "ORC"}, "has deletes in the format ORC"),
        ({"equality_ids": [99]}, "a column that is nested or unknown"),
        ({"equality_ids": [1, 3]}, "f, which has the type double"),
        ({"record_count": 20_000_001}, "20,000,001 rows of equality deletes"),
    ],
)
def test_equality_deletes_are_refused_for_older_files_only(
    catalog: PlainCatalog, record: dict[str, Any], problem: str
) -> None:
    connector = catalog.open()
    known = {"content": EQUALITY_DELETES, "file_format": "PARQUET", "equality_ids": [1]}
    add_file(connector, DELETES, **{**known, **record})
    DirectWrite(connector, reads=False).insert({"id": 9, "s": "new"}).publish()

    said = sorted(reads(connector))

    assert said[0] == ""
    assert problem in said[1]
    table = connector.metadata.load_table(NAME)
    with pytest.raises(NotSupportedError, match="deletes"):
        connector.scan.count_rows(table, connector.metadata.plan_files(table))
    with pytest.raises(NotSupportedError, match="deletes"):
        DirectWrite(connector)


def test_equality_deletes_that_name_no_column(catalog: PlainCatalog) -> None:
    connector = catalog.open()
    add_file(connector, DELETES, content=EQUALITY_DELETES, file_format="PARQUET")

    with pytest.raises(CatalogError, match="name no columns"):
        reads(connector)


@pytest.mark.parametrize("file_format", ["ORC", "AVRO"])
def test_files_of_other_formats(catalog: PlainCatalog, file_format: str) -> None:
    connector = catalog.open()
    add_file(connector, DATA, content=DATA, file_format=file_format)

    said = sorted(reads(connector))

    assert said[0] == ""
    assert f"in the format {file_format}" in said[1]


def test_encrypted_files(catalog: PlainCatalog) -> None:
    connector = catalog.open()
    add_file(connector, DATA, content=DATA, file_format="PARQUET", key_metadata=b"key")

    with pytest.raises(NotSupportedError, match="encrypted"):
        reads(connector)
