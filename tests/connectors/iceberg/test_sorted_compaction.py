"""Compactions whose new files are sorted: by the table's sort order, or by what is asked for."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.connectors.iceberg.compaction import part_compactor
from spark_jobs.connectors.shared.compaction import bins
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
    for order, rows in sorted_files(catalog):
        found.setdefault(order, []).append(rows)
    return found


def sorted_files(catalog: PlainCatalog) -> list[tuple[int | None, list[Row]]]:
    """The sort order that each live file records, and its rows; by the names of files."""
    files = sorted(live(catalog), key=lambda each: str(each.file.file_path))
    return [(each.file.sort_order_id, rows_of(each.file.file_path)) for each in files]


def rows_of(path: str) -> list[Row]:
    rows = pq.read_table(path.removeprefix("file://")).to_pylist()
    return [(row["id"], row["s"], row["f"]) for row in rows]


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


@pytest.mark.parametrize(
    ("spec", "order", "ids"),
    [
        ({"sort_by": ("ID",)}, 1, [None, 1, 2, 3, 4, 5, 7]),
        ({"sort_by": ("id", "s DESC")}, 1, [None, 1, 2, 3, 4, 5, 7]),
        ({"sort_by": ("id NULLS LAST",)}, 0, [1, 2, 3, 4, 5, 7, None]),
        ({"sort_by": ("f DESC",)}, 0, [2, None, 4, 3, 7, 5, 1]),
        ({"sort_by": ("s NULLS LAST", "id DESC")}, 0, [4, None, 5, 3, 2, 1, 7]),
        ({"zorder_by": ("id",)}, 0, [None, 1, 2, 3, 4, 5, 7]),
    ],
)
def test_rows_are_in_the_order_that_is_asked_for(
    tmp_path: Path, spec: dict[str, Any], order: int, ids: list[int | None]
) -> None:
    catalog = made(tmp_path, *ROWS)
    order_by(catalog, ("identity", "id", "asc", "first"))

    compact(catalog.open(), CompactSpec(mode="full", **spec))

    ((found, rows),) = sorted_files(catalog)
    assert [row[0] for row in rows] == ids
    assert found == order
    # Nobody can tell whether the rows of all files are in order.
    (group,) = plan(catalog.open(), CompactSpec(mode="full", **spec))[1].groups
    assert [each.files_before for each in group.expected.values()] == [1]


def test_rows_of_a_partition_are_sorted_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [[(n % 40 * 7 % 40, f"{n:040}", None) for n in range(k, 200, 4)] for k in range(4)]
    catalog = made(tmp_path, *files)
    size = sum(each.file.file_size_in_bytes for each in live(catalog))
    spec = CompactSpec(mode="full", target_file_size=f"{size // 3} b", sort_by=("id DESC",))

    (group,) = plan(catalog.open(), spec)[1].groups
    assert [each.files_after for each in group.expected.values()] == [3]
    compact(catalog.open(), spec)

    ids = [[row[0] for row in rows] for _, rows in sorted_files(catalog)]
    assert [*chain.from_iterable(ids)] == [39 - n // 5 for n in range(200)]
    assert list(map(len, ids)) == [67, 67, 66]

    # As if there were more than one task can sort.
    monkeypatch.setattr(bins, "SORTED_BYTES", 1)
    assert [len(each.parts) for each in plan(catalog.open(), spec)[1].groups] == [3]


def test_a_z_order_keeps_neighbours_together(tmp_path: Path) -> None:
    catalog = PlainCatalog(tmp_path)
    schema = pa.schema([("x", pa.int32()), ("y", pa.int64())])
    catalog.create(schema, {"format-version": "2"}, None)
    square = [{"x": x, "y": y} for x in range(-8, 8) for y in range(-8, 8)]
    for part in (square[::2], square[1::2]):
        table(catalog).append(pa.Table.from_pylist(part, schema=schema))
    size = sum(each.file.file_size_in_bytes for each in live(catalog))
    spec = CompactSpec(mode="full", target_file_size=f"{size // 4} b", zorder_by=("x", "y"))

    compact(catalog.open(), spec)

    files = [each.file.file_path.removeprefix("file://") for each in live(catalog)]
    quadrants = [
        {(row["x"] < 0, row["y"] < 0) for row in pq.read_table(path).to_pylist()} for path in files
    ]
    assert [len(each) for each in quadrants] == [1, 1, 1, 1]
    assert len(set.union(*quadrants)) == 4


def test_minor_sorts_what_it_rewrites_anyway(tmp_path: Path) -> None:
    catalog = made(tmp_path, *ROWS)
    connector = catalog.open()
    assert plan(connector, CompactSpec(sort_by=("id",)))[1].groups == ()

    compact(connector, CompactSpec(min_files=3, sort_by=("id DESC",)))

    ((order, rows),) = sorted_files(catalog)
    assert (order, [row[0] for row in rows]) == (0, [7, 5, 4, 3, 2, 1, None])


@pytest.mark.parametrize(
    ("spec", "code", "said"),
    [
        ({"sort_by": ("id", "x")}, ErrorCode.COLUMN_NOT_FOUND, "sort_by[1]: x is not a column"),
        ({"zorder_by": ("list",)}, ErrorCode.TYPE_MISMATCH, "zorder_by[0]: list of db.t is ARRAY"),
        ({"sort_by": ("clock",)}, ErrorCode.TYPE_MISMATCH, "sort_by[0]: clock of db.t is time"),
    ],
)
def test_what_has_no_order_is_refused(
    tmp_path: Path, spec: dict[str, Any], code: ErrorCode, said: str
) -> None:
    catalog = PlainCatalog(tmp_path)
    kinds = {"id": pa.int64(), "list": pa.list_(pa.int32()), "clock": pa.time64("us")}
    catalog.create(pa.schema(kinds), {"format-version": "2"}, None)
    found, text = refusal(lambda: plan(catalog.open(), CompactSpec(**spec)))
    assert (found, said in text) == (code, True), text
