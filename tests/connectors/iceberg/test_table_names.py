"""Names of tables in another case than the catalog's."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, ErrorCode
from tests.connectors.iceberg.plain_tables import PlainCatalog

SCHEMA = pa.schema([("id", pa.int64())])


def test_the_only_one_in_another_case_is_found(tmp_path: Path) -> None:
    catalog = PlainCatalog(tmp_path)
    made = catalog.create(SCHEMA, {}, None)
    library, metadata = catalog.library(), catalog.open().metadata
    for name in ("two", "Two"):
        library.create_table(("db", name), SCHEMA)

    found = metadata.load_table(TableName("db", "T")).native

    assert found.metadata.table_uuid == made.metadata.table_uuid
    exact = metadata.load_table(TableName("db", "two")).native
    assert exact.table.name() == ("db", "two")
    for database, table in (("db", "TWO"), ("db", "three"), ("DB", "t")):
        with pytest.raises(CatalogError) as caught:
            metadata.load_table(TableName(database, table))
        assert caught.value.code is ErrorCode.TABLE_NOT_FOUND
