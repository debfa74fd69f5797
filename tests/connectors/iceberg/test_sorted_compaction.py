"""Compactions whose new files are sorted: by the table's sort order, or by what is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.connectors.iceberg.compaction import part_compactor
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.errors import ErrorCode
from tests.connectors.iceberg.plain_history import refusal, table
from tests.connectors.iceberg.plain_tables import PlainCatalog
from tests.connectors.iceberg.test_compaction import FULL, compact, live, marked, plan

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string()), ("f", pa.float64())])
Row = tuple[int | None, str | None, float | None]


def made(folder: Path, *files: list[Row], **properties: str) -> PlainCatalog:
    """A table ``db.t`` with files of these rows."""
    catalog = PlainCatalog(folder)
    catalog.create(SCHEMA, {"format-version": "2", **properties}, None)
    for rows in files:
        add(catalog, rows)
    return catalog


def add(catalog: PlainCatalog, rows: list[Row]) -> None:
    columns = dict(zip(SCHEMA.names, zip(*rows, strict=True), strict=True))
    table(catalog).append(pa.table({k: list(v) for k, v in columns.items()}, schema=SCHEMA))


def order_by(catalog: PlainCatalog, *fields: tuple[str, str, str, str]) -> None:
    """Give the table a sort order: transform, column, direction, NULLS FIRST or LAST."""
    from pyiceberg.table.sorting import NullOrder
    from pyiceberg.transforms import parse_transform

    with table(catalog).update_sort_order() as change:
        for transform, column, direction, nulls in fields:
            add_field = change.asc if direction == "asc" else change.desc
            add_field(column, parse_transform(transform), NullOrder(f"nulls-{nulls}"))


def stored(catalog: PlainCatalog) -> dict[int | None, list[list[Row]]]:
    """The rows of live files in their order, by the sort order that they record."""
    found: dict[int | None, list[list[Row]]] = {}
    for each in live(catalog):
        path = each.file.file_path.removeprefix("file://")
        rows = [tuple(row.values()) for row in pq.read_table(path).to_pylist()]
        found.setdefault(each.file.sort_order_id, []).append(rows)
    return found


ROWS: list[list[Row]] = [
    [(3, "b", 0.0), (1, "ä", None), (None, "a", 1.0)],
    [(2, "z", float("nan")), (7, None, -0.0), (5, "b", -1.0)],
    [(4, "a", 0.5)],
]


@pytest.mark.parametrize(
    ("fields", "ids"),
    [
        ([("identity", "id", "asc", "first")], [None, 1, 2, 3, 4, 5, 7]),
        ([("identity", "id", "desc", "last")], [7, 5, 4, 3, 2, 1, None]),
        ([("identity", "f", "asc", "last")], [5, 7, 3, 4, None, 2, 1]),
        ([("identity", "f", "desc", "first")], [1, 2, None, 4, 3, 7, 5]),
        (
            [("identity", "s", "desc", "first"), ("truncate[5]", "id", "desc", "first")],
            [7, 1, 2, 5, 3, None, 4],
        ),
    ],
)
def test_rows_are_in_the_order_of_the_table(
    tmp_path: Path, fields: list[tuple[str, str, str, str]], ids: list[int | None]
) -> None:
    catalog = made(tmp_path, *ROWS)
    order_by(catalog, *fields)

    compact(catalog.open())

    ((order, (rows,)),) = stored(catalog).items()
    assert order == 1
    assert [row[0] for row in rows] == ids
    assert sorted(map(repr, rows)) == sorted(repr(row) for each in ROWS for row in each)
    assert plan(catalog.open())[1].groups == ()


def test_a_file_in_order_only_loses_its_deleted_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = made(tmp_path, *ROWS, **{"write.merge.mode": "merge-on-read"})
    order_by(catalog, ("identity", "id", "desc", "last"))
    compact(catalog.open())
    marked(catalog.open(), 0)
    monkeypatch.setattr(part_compactor, "sort_files", None)

    compact(catalog.open())

    ((order, (rows,)),) = stored(catalog).items()
    assert order == 1
    assert [row[0] for row in rows] == [5, 4, 3, 2, 1, None]


def test_files_in_another_order_are_only_rewritten_by_a_full_compaction(tmp_path: Path) -> None:
    catalog = made(tmp_path, ROWS[0])
    order_by(catalog, ("identity", "id", "asc", "first"))
    connector = catalog.open()
    assert plan(connector, CompactSpec())[1].groups == ()

    compact(connector)

    assert [row[0] for row in stored(catalog)[1][0]] == [None, 1, 3]
    assert plan(connector)[1].groups == ()


@pytest.mark.parametrize(
    ("transform", "column", "said"),
    [
        ("truncate[2]", "b", "with truncate[2] of b (binary)"),
        ("identity", "n.x", "with identity of n.x,"),
        ("identity", "t", "with identity of t (time)"),
    ],
)
def test_other_orders_are_refused(tmp_path: Path, transform: str, column: str, said: str) -> None:
    catalog = PlainCatalog(tmp_path)
    kinds: dict[str, Any] = {
        "b": pa.binary(),
        "n": pa.struct([("x", pa.int32())]),
        "t": pa.time64("us"),
    }
    catalog.create(pa.schema(kinds), {"format-version": "2"}, None)
    order_by(catalog, (transform, column, "asc", "first"))
    code, text = refusal(lambda: plan(catalog.open(), FULL))
    assert code is ErrorCode.NOT_SUPPORTED
    assert f"db.t has a sort order {said}" in text
