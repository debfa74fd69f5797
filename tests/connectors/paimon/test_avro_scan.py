"""Data files in Avro: read by executors that have its package, checked before any is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from spark_jobs.connectors.paimon.read import scan
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.engine.runtime.failures import translated
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.spi.connector import Connector
from tests.support.paimon_tables import NAME, append, append_with_pypaimon, create

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = [{"id": i, "v": f"v{i}" if i % 2 else None} for i in range(100)]


class Lacking:
    """What a check finds on executors without the package."""

    def read(self, parts: Sequence[object]) -> Iterator[pa.RecordBatch]:
        raise CatalogError(ErrorCode.LIBRARY_MISSING, "no fastavro")


@pytest.fixture
def connector(warehouse: Path) -> Connector:
    """A table with a parquet file and an Avro file."""
    connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
    create(connector, {"id": "int", "v": "string"}, options={"file.format": "avro"})
    append(connector, ROWS[:50])
    append_with_pypaimon(connector.metadata.load_table(NAME), ROWS[50:])
    return connector


def read(spark: SparkSession, connector: Connector, suffix: str) -> DataFrame:
    """The rows of the files whose name ends so."""
    table = connector.metadata.load_table(NAME)
    files = connector.metadata.plan_files(table)
    chosen = [file for file in files if file.path.endswith(suffix)]
    return connector.scan.read(spark, table, chosen, ["id", "v"])


def test_rows_of_both_formats(spark: SparkSession, connector: Connector) -> None:
    found = read(spark, connector, "").select("id", "v").collect()
    assert sorted(row.asDict()["id"] for row in found) == list(range(100))
    assert all(row.v == ROWS[row.id]["v"] for row in found)


def test_executors_are_asked_before_data_is_read(
    spark: SparkSession,
    connector: Connector,
    warehouse: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scan, "AvroCheck", Lacking)
    with pytest.raises(Exception, match="no fastavro") as raised:
        read(spark, connector, "")
    assert translated(raised.value).code is ErrorCode.LIBRARY_MISSING
    assert read(spark, connector, ".parquet").count() == 50


def test_the_end_of_a_file_is_missing(
    spark: SparkSession, connector: Connector, warehouse: Path
) -> None:
    (file,) = warehouse.rglob("*.avro")
    content = file.read_bytes()
    # Magic, schema and sync marker are whole, as of a file without blocks.
    file.write_bytes(content[: content.index(content[-16:]) + 16])

    with pytest.raises(Exception, match="DATA_FILE_UNREADABLE") as raised:
        read(spark, connector, "").collect()

    error = translated(raised.value)
    assert error.code is ErrorCode.DATA_FILE_UNREADABLE
    assert "it has 0 rows, but should have 50" in error.message
    assert str(file) in error.message
