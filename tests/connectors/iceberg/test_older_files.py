"""Changing files that were written with other columns, or before there was a table."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.connectors.iceberg.direct import DirectWrite
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog

MODES = ["copy-on-write", "merge-on-read"]


def rows_of(catalog: PlainCatalog) -> list[dict[str, Any]]:
    found = catalog.library().load_table(("db", "t")).scan().to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["id"])


def ids_in_files(catalog: PlainCatalog) -> set[bytes | None]:
    """The ids of the top-level columns of all live files."""
    found = set()
    for task in catalog.library().load_table(("db", "t")).scan().plan_files():
        schema = pq.read_schema(task.file.file_path.removeprefix("file://"))
        found |= {(field.metadata or {}).get(b"PARQUET:field_id") for field in schema}
    return found


@pytest.mark.parametrize("name", ["outside.parquet", "000000_0"])
@pytest.mark.parametrize("mode", MODES)
def test_a_file_without_ids(tmp_path: Path, mode: str, name: str) -> None:
    catalog = PlainCatalog(tmp_path)
    schema = pa.schema([("id", pa.int64()), ("s", pa.string()), ("n", pa.list_(pa.int32()))])
    table = catalog.create(schema, {"format-version": "2", "write.merge.mode": mode}, None)
    rows = [{"id": each, "s": "x", "n": [each, None]} for each in range(10)]
    outside = tmp_path / name
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), outside, store_schema=False)
    table.add_files([f"file://{outside}"])
    before = outside.read_bytes()

    write = DirectWrite(catalog.open())
    write.delete(0, 1).publish()
    again = DirectWrite(catalog.open())
    again.update(0, 4, "new").publish()

    changed = 5 if mode == "copy-on-write" else 4
    assert rows_of(catalog) == [
        {**row, "s": "new" if row["id"] == changed else "x"} for row in rows if row["id"] != 1
    ]
    if mode == "copy-on-write":
        assert ids_in_files(catalog) == {b"1", b"2", b"3"}
    assert outside.read_bytes() == before


@pytest.mark.parametrize("mode", MODES)
def test_columns_that_have_changed(tmp_path: Path, mode: str) -> None:
    from pyiceberg.types import LongType, StringType

    catalog = PlainCatalog(tmp_path)
    schema = pa.schema(
        [
            ("id", pa.int32()),
            ("old", pa.string()),
            ("gone", pa.string()),
            ("n", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ]
    )
    rows = [
        {"id": each, "old": f"s{each}", "gone": "g", "n": {"x": each, "y": "y"} if each else None}
        for each in range(10)
    ]
    properties = {"format-version": "2", "write.merge.mode": mode}
    table = catalog.create(schema, properties, pa.Table.from_pylist(rows, schema=schema))
    with table.update_schema() as update:
        update.rename_column("old", "s")
        update.delete_column("gone")
        update.update_column("id", LongType())
        update.rename_column("n.x", "z")
    with table.update_schema() as update:
        update.add_column(("n", "x"), StringType())
        update.add_column("gone", LongType())

    write = DirectWrite(catalog.open())
    write.update(0, 2, "new").publish()

    assert rows_of(catalog) == [
        {
            "id": each,
            "s": "new" if each == 2 else f"s{each}",
            "n": {"z": each, "y": "y", "x": None} if each else None,
            "gone": None,
        }
        for each in range(10)
    ]


@pytest.mark.parametrize("mode", MODES)
def test_a_decimal_partition_that_has_become_wider(tmp_path: Path, mode: str) -> None:
    from pyiceberg.types import DecimalType

    catalog = PlainCatalog(tmp_path)
    schema = pa.schema([("id", pa.int64()), ("s", pa.string()), ("p", pa.decimal128(4, 2))])
    table = catalog.create(schema, {"format-version": "2", "write.merge.mode": mode}, None)
    with table.update_spec() as spec:
        spec.add_identity("p")
    rows = [{"id": each, "s": "x", "p": Decimal("-1.25")} for each in range(10)]
    table.append(pa.Table.from_pylist(rows, schema=schema))
    with table.update_schema() as update:
        update.update_column("p", DecimalType(18, 2))

    DirectWrite(catalog.open()).delete(0, 1).publish()
    write = DirectWrite(catalog.open())
    write.delete(0, 5).insert({"id": 50, "s": "y", "p": Decimal("-1.25")}).publish()

    gone = 6 if mode == "copy-on-write" else 5
    assert [row["id"] for row in rows_of(catalog)] == [
        *(each for each in range(10) if each not in (1, gone)),
        50,
    ]
    (partition,) = {
        repr(each.partition)
        for each in write.connector.metadata.plan_files(write.connector.metadata.load_table(NAME))
    }
    assert "-1.25" in partition
