"""Compactions of append tables whose rows are sorted, or in a z-order, on request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contract.compaction import CompactionReport, CompactSpec
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.errors import ErrorCode
from spark_jobs.spi.connector import Connector
from tests.connectors.paimon.compaction.test_append_compaction import delete, entries, paths
from tests.support import compaction_runs
from tests.support.paimon_tables import append, create, data_files, read

COLUMNS = {"id": "int", "v": "double", "p": "int"}
TRACKED = {"row-tracking.enabled": "true"}
MARKS = {"deletion-vectors.enabled": "true"}
VALUES = [0.5, float("nan"), None, -0.0, 0.0, -1.5]


def filled(connector: Connector, options: dict[str, str] | None = None) -> None:
    """Three files of 20 rows in each of two partitions."""
    create(connector, COLUMNS, ["p"], options)
    for number in range(3):
        rows = [
            {"id": n * 7 % 60 + 100 * p, "v": VALUES[n % 6], "p": p}
            for p in (0, 1)
            for n in range(number, 60, 3)
        ]
        append(connector, rows, f"op-{number}")


def compact(connector: Connector, warehouse: Path, **spec: Any) -> CompactionReport:
    """Compact, and check that the rows stay the same."""
    before = read(connector)
    catalog = CatalogSpec("paimon", str(warehouse))
    result = compaction_runs.compact(connector, catalog, CompactSpec(mode="full", **spec))
    assert result.error is None, result.error
    assert result.compaction is not None
    assert list(map(repr, read(connector))) == list(map(repr, before))
    return result.compaction


def rows_of(path: str) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    found: list[dict[str, Any]] = pq.ParquetFile(path).read().to_pylist()
    return found


def test_rows_keep_their_ids(connector: Connector, warehouse: Path) -> None:
    filled(connector, TRACKED)
    before = {
        entry.file.first_row_id + position: row["id"]
        for path, entry in zip(paths(connector), entries(connector), strict=True)
        for position, row in enumerate(rows_of(path))
    }

    compact(connector, warehouse, sort_by=("id DESC",))

    after = [row for path in paths(connector) for row in rows_of(path)]
    assert {row["_ROW_ID"]: row["id"] for row in after} == before


@pytest.mark.parametrize("options", [{}, MARKS])
def test_rows_are_sorted(connector: Connector, warehouse: Path, options: dict[str, str]) -> None:
    filled(connector, options)
    if options == MARKS:
        delete(connector, [20])

    report = compact(connector, warehouse, sort_by=("V DESC NULLS FIRST", "id"))

    assert (report.files_before, report.files_after) == (6, 2)
    order = ["None", "nan", "0.5", "0.0", "-0.0", "-1.5"]
    for path in paths(connector):
        found = [(order.index(str(row["v"])), row["id"]) for row in rows_of(path)]
        assert found == sorted(found)
    assert sum(entry.file.row_count for entry in entries(connector)) == report.rows
    # It cannot be told from files that their rows are in order.
    again = compact(connector, warehouse, sort_by=("id",))
    assert (again.files_before, again.files_after) == (2, 2)


def test_rows_of_a_partition_are_in_one_z_order(connector: Connector, warehouse: Path) -> None:
    filled(connector)
    size = sum(entry.file.file_size for entry in entries(connector)) // 2

    report = compact(connector, warehouse, zorder_by=("id",), target_file_size=f"{size // 3} b")

    assert report.files_after == 6
    files = sorted(paths(connector))
    found = [[row["id"] for row in rows_of(path)] for path in files]
    assert sorted(found) == [[*range(n, n + 20)] for n in (0, 20, 40, 100, 120, 140)]
    assert len(data_files(warehouse)) == 12


@pytest.mark.parametrize(
    ("keys", "options", "reason"),
    [
        (["p", "id"], {"bucket": "1"}, "sort_by: shop.orders has a primary key (p, id)"),
        ([], {"bucket": "2", "bucket-key": "id"}, "sort_by: shop.orders has fixed buckets"),
    ],
)
def test_tables_with_an_order_of_their_own_are_refused(
    connector: Connector, warehouse: Path, keys: list[str], options: dict[str, str], reason: str
) -> None:
    create(connector, COLUMNS, ["p"], options, primary_key=keys)
    catalog, spec = CatalogSpec("paimon", str(warehouse)), CompactSpec(sort_by=("id",))
    result = compaction_runs.compact(connector, catalog, spec)
    assert result.error is not None
    assert result.error.code == ErrorCode.NOT_SUPPORTED.name
    assert reason in result.error.message


@pytest.mark.parametrize(
    ("column", "code"), [("q", ErrorCode.COLUMN_NOT_FOUND), ("a", ErrorCode.TYPE_MISMATCH)]
)
def test_what_has_no_order_is_refused(
    connector: Connector, warehouse: Path, column: str, code: ErrorCode
) -> None:
    create(connector, {"id": "int", "a": "array<int>"}, [])
    catalog, spec = CatalogSpec("paimon", str(warehouse)), CompactSpec(zorder_by=("id", column))
    result = compaction_runs.compact(connector, catalog, spec)
    assert result.error is not None
    assert result.error.code == code.name
    assert result.error.message.startswith("zorder_by[1]: ")
