"""New values are of the table's types, whatever its files have; other values stay the same."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from tests.support.paimon_tables import append, change_rows, create, merge, read

COLUMNS = {"id": "int", "at": "timestamp_ntz", "n": "int", "s": "struct<at:timestamp_ntz>"}
OLD = dt.datetime.fromisoformat("2024-02-29T12:30:00.123")
NEW = dt.datetime.fromisoformat("1969-12-31T23:59:59.999999")
MS = pa.timestamp("ms")
# As other writers may store the columns.
STORED = pa.schema(
    [
        pa.field("id", pa.int32()),
        pa.field("at", MS),
        pa.field("n", pa.int32(), nullable=False),
        pa.field("s", pa.struct([pa.field("at", MS, nullable=False)])),
    ]
)


def replaced(warehouse: Path, values: list[dict[str, Any]]) -> Path:
    """Store the rows of the only file as another writer may do."""
    (path,) = (warehouse / "shop.db" / "orders").rglob("*.parquet")
    pq.write_table(pa.Table.from_pylist(values, schema=STORED), path, 2, store_schema=False)
    return path


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_an_update(warehouse: Path, connector: Connector, vectors: str) -> None:
    table = create(connector, COLUMNS, options={"deletion-vectors.enabled": vectors})
    before = [{"id": n, "at": OLD, "n": n, "s": {"at": OLD}} for n in range(6)]
    append(connector, before)
    replaced(warehouse, before)
    table = connector.metadata.load_table(table.name)
    values: dict[str, Any] = {"at": NEW, "n": None, "s": {"at": NEW}}
    changes = change_rows(table, rows.UPDATE, [{"file": 0, "position": 1, **values}])

    merge(connector, table, changes, assigned=(("at", "n", "s"),))

    assert read(connector) == [{**row, **(values if row["id"] == 1 else {})} for row in before]


def test_a_delete_copies_what_is_stored(warehouse: Path, connector: Connector) -> None:
    table = create(connector, COLUMNS)
    before = [{"id": n, "at": OLD, "n": n, "s": {"at": OLD}} for n in range(6)]
    append(connector, before)
    path = replaced(warehouse, before)
    table = connector.metadata.load_table(table.name)

    merge(connector, table, change_rows(table, rows.DELETE, [{"file": 0, "position": 1}]))

    assert read(connector) == [row for row in before if row["id"] != 1]
    (new,) = {*(warehouse / "shop.db" / "orders").rglob("*.parquet")} - {path}
    assert pq.read_schema(new).field("at").type == MS
