"""Rows that a task brings into the order of a layout itself, as many at a time as fit."""

from __future__ import annotations

import math
import struct
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.datafiles.loose_rows import LooseRows, in_order, sortable
from spark_jobs.spi.writes import DerivedColumns, RowOrder, SortKey, WriteLayout


class Files:
    """The rows of each file, in order."""

    def __init__(self) -> None:
        self.files: list[list[dict[str, Any]]] = [[]]

    def write(self, rows: pa.RecordBatch) -> None:
        self.files[-1] += rows.to_pylist()

    def end_file(self) -> None:
        self.files.append([])


def lengths(rows: pa.RecordBatch) -> list[pa.Array]:
    return [pa.array([len(each) for each in rows.column("p").to_pylist()], pa.int32())]


def negated(rows: pa.RecordBatch) -> list[pa.Array]:
    return [pa.array([-each for each in rows.column("n").to_pylist()], pa.int32())]


_DERIVED = DerivedColumns(("p",), (("length", "INT"),), lengths)
_SORTED = WriteLayout(
    ("length",),
    ("length",),
    derived=_DERIVED,
    row_order=RowOrder(
        (SortKey("negated", ascending=False),),
        DerivedColumns(("n",), (("negated", "INT"),), negated),
    ),
)
_ROWS = [{"p": "bb", "n": 4}, {"p": "a", "n": 7}, {"p": "cc", "n": 3}, {"p": "b", "n": 5}]


def stored(layout: WriteLayout, most_bytes: int) -> list[list[tuple[str, int]]]:
    files = Files()
    rows = LooseRows(layout, most_bytes, files)
    for each in _ROWS:
        rows.take(pa.RecordBatch.from_pylist([each]))
    rows.finish()
    return [[(each["p"], each["n"]) for each in rows] for rows in files.files if rows]


def test_rows_are_sorted_by_place_and_then_by_their_order() -> None:
    assert stored(_SORTED, 2**20) == [[("b", 5), ("a", 7), ("cc", 3), ("bb", 4)]]


def test_what_is_sorted_at_once_has_files_of_its_own() -> None:
    assert stored(_SORTED, 1) == [[(each["p"], each["n"])] for each in _ROWS]


def test_without_an_order_rows_go_on_as_they_come() -> None:
    unsorted = WriteLayout(("length",), ("length",), derived=_DERIVED)

    assert stored(unsorted, 1) == [[(each["p"], each["n"]) for each in _ROWS]]


NAN = struct.unpack("<d", bytes.fromhex("010000000000f8ff"))[0]
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "double": (
        pa.float64(),
        [-math.inf, -1.5, -5e-324, -0.0, 0.0, 5e-324, 1.5, math.inf, math.nan],
    ),
    "float": (pa.float32(), [-math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, math.nan]),
    "a negative NaN": (pa.float64(), [-math.inf, 0.0, math.inf, NAN]),
    "string": (pa.string(), ["", "A", "a", "aa", "ä", "€", "\uffee", "\U0001f600"]),
    "binary": (pa.binary(), [b"", b"\0", b"a", b"aa", b"\x7f", b"\x80", b"\xff"]),
    "boolean": (pa.bool_(), [False, True]),
    "integer": (pa.int32(), [-(2**31), -1, 0, 2**31 - 1]),
    "decimal": (pa.decimal128(38, 2), [Decimal("-9.10"), Decimal("-9.09"), Decimal("1e20")]),
    "date": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)]),
    "timestamp": (pa.timestamp("us"), [datetime(1, 1, 1), datetime(2026, 1, 1)]),  # noqa: DTZ001
}


@pytest.mark.parametrize("nulls_first", [True, False])
@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize(("kind", "values"), VALUES.values(), ids=VALUES)
def test_values_have_the_order_of_iceberg(
    kind: pa.DataType, values: list[Any], ascending: bool, nulls_first: bool
) -> None:
    """That of the specification, "Sorting"; the values of each type are given in it."""
    wanted = list(range(len(values)))[:: 1 if ascending else -1]
    wanted = [-1, *wanted] if nulls_first else [*wanted, -1]
    mixed = [*range(1, len(values), 2), -1, *range(0, len(values), 2)]
    key = sortable(pa.array([None if n < 0 else values[n] for n in mixed], kind))
    rows = pa.table({"key": key, "n": pa.array(mixed)})

    found = in_order(rows, [SortKey("key", ascending, nulls_first)])

    assert found.column("n").to_pylist() == wanted
