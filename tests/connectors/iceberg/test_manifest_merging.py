"""Manifests that are merged when there are many, as Iceberg's Java does it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.connectors.iceberg.table.pinned_table import pinned_table
from tests.connectors.iceberg.direct import DirectWrite, ids_of
from tests.connectors.iceberg.plain_tables import PlainCatalog

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string()), ("m", pa.decimal128(9, 2))])
PROPERTIES = {"commit.manifest.min-count-to-merge": "4", "write.merge.mode": "merge-on-read"}


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    made = PlainCatalog(tmp_path)
    table = made.create(SCHEMA, {"format-version": "2", **PROPERTIES}, None)
    with table.update_spec() as update:
        update.add_identity("m")
    return made


def row(id_: int) -> dict[str, Any]:
    return {"id": id_, "s": "x", "m": None if id_ % 3 == 0 else Decimal(id_ % 3) - Decimal("1.5")}


def test_rows_and_numbers_stay(catalog: PlainCatalog) -> None:
    for number in range(9):
        first = number * 10
        DirectWrite(catalog.open()).insert(*(row(first + i) for i in range(9))).publish()
        write = DirectWrite(catalog.open())
        write.delete(number % len(write.files), 0).publish()

    table = catalog.library().load_table(("db", "t"))
    manifests = table.current_snapshot().manifests(table.io)
    assert len(manifests) < 12
    assert len(ids_of(catalog)) == 72
    entries = table.inspect.entries().to_pylist()
    assert all(each["sequence_number"] for each in entries)
    live = [each for each in entries if each["status"] != 2]
    assert len({each["sequence_number"] for each in live}) >= 9
    for each in manifests:
        assert each.min_sequence_number <= each.sequence_number
    known = {each.manifest_path for one in table.snapshots() for each in one.manifests(table.io)}
    stored = {f"file://{each}" for each in catalog.folder.rglob("*-m*.avro")}
    assert stored == known
    for value in (None, Decimal("-0.50"), Decimal("0.50")):
        where = "m IS NULL" if value is None else f"m = {value}"
        found = table.scan(where).to_arrow().to_pylist()
        assert {one["m"] for one in found} == {value}


def test_manifests_of_data_and_of_deletes_are_merged_by_one_commit(catalog: PlainCatalog) -> None:
    first = [*(row(3 * i) for i in range(4)), *(row(3 * i + 1) for i in range(4))]
    DirectWrite(catalog.open()).insert(*first).publish()
    DirectWrite(catalog.open()).delete(0, 1).publish()
    for number in range(3, 9):
        write = DirectWrite(catalog.open()).insert(*(row(number * 30 + i) for i in (0, 3, 6, 9)))
        files = enumerate(pinned_table(write.table).files)
        whole = next(ordinal for ordinal, each in files if not each.deletes)
        write.delete(whole, 0).publish()

    assert len(ids_of(catalog)) == 8 * 4 - 7


def test_a_table_that_does_not_want_it(catalog: PlainCatalog) -> None:
    table = catalog.library().load_table(("db", "t"))
    with table.transaction() as transaction:
        transaction.set_properties({"commit.manifest-merge.enabled": "false"})
    for number in range(6):
        DirectWrite(catalog.open(), reads=False).insert(row(number)).publish()

    table = catalog.library().load_table(("db", "t"))
    assert len(table.current_snapshot().manifests(table.io)) == 6
