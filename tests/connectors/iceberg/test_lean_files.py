"""The files of a table without the metrics of columns, as compactions need them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from spark_jobs.connectors.iceberg.table.live_files import LiveFile
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, pinned_table
from tests.connectors.iceberg.plain_history import NAME, SCHEMA, made, table
from tests.connectors.iceberg.plain_tables import PlainCatalog
from tests.support.iceberg_tables import IcebergTable

_SHARED = (
    *("content", "path", "file_format", "row_count", "size", "spec_id", "partition", "status"),
    *("sequence_number", "file_sequence_number", "snapshot_id", "listed_in"),
)


def pinned(catalog: PlainCatalog) -> PinnedTable:
    return pinned_table(catalog.open().metadata.load_table(NAME))


def told(file: LiveFile) -> list[object]:
    entries = [*file.deletes, *file.equality_deletes]
    values = [getattr(file.entry, name) for name in _SHARED]
    return [file.path, *values, file.entry.record.get("sort_order_id"), [e.path for e in entries]]


@pytest.mark.parametrize("version", ["1", "2"])
def test_they_are_the_same_files(tmp_path: Path, version: str) -> None:
    catalog = made(tmp_path, 3, **{"format-version": version})
    with table(catalog).update_spec() as change:
        change.add_identity("id")
    table(catalog).append(pa.table({"id": [7, None]}, schema=SCHEMA))
    found = pinned(catalog)

    assert list(map(told, found.lean_files)) == list(map(told, found.files))
    assert not any(file.entry.by_id("lower_bounds") for file in found.lean_files)
    assert all(file.entry.by_id("value_counts") for file in found.files)


def test_equality_deletes_need_metrics(tmp_path: Path) -> None:
    catalog = made(tmp_path, 2)
    IcebergTable(catalog.library(), ("db", "t")).mark(rows=1, by_value=True)
    found = pinned(catalog)
    assert list(map(told, found.lean_files)) == list(map(told, found.files))
    assert all(file.entry.by_id("lower_bounds") for file in found.lean_files)
    assert all(file.equality_deletes for file in found.lean_files)
