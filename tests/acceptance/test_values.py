"""How rows of a case compare with rows of a table."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.acceptance.values import as_arrow, comparable, difference

MAP = pa.map_(pa.string(), pa.int32())
STRUCT = pa.struct([("a", pa.int32()), ("b", pa.string())])


def rows(kind: pa.DataType, *values):
    return comparable(as_arrow([[value] for value in values], pa.schema([("c", kind)])))


@pytest.mark.parametrize(
    ("kind", "left", "right"),
    [
        (pa.int32(), 1, 2),
        (pa.int32(), 0, None),
        (pa.string(), "", None),
        (pa.string(), "NULL", None),
        (pa.string(), "1", "01"),
        (pa.float64(), 0.0, -0.0),
        (pa.decimal128(5, 2), "1.50", "1.51"),
        (pa.date32(), "2024-02-29", "2024-03-01"),
        (pa.timestamp("us", "UTC"), "2024-02-29 10:00:00", "2024-02-29T10:00:00.000001"),
        (STRUCT, {"a": None, "b": None}, None),
        (STRUCT, {"a": 1, "b": "x"}, {"a": 1, "b": "y"}),
        (MAP, {"__map__": []}, None),
        (MAP, {"__map__": [["k", 1]]}, {"__map__": [["k", None]]}),
        (pa.list_(pa.int32()), [1, 2], [2, 1]),
        (pa.list_(pa.int32()), [], None),
    ],
)
def test_other_values_differ(kind, left, right):
    assert rows(kind, left) != rows(kind, right)
    assert rows(kind, left) == rows(kind, left)
    assert difference(rows(kind, left), rows(kind, right))


@pytest.mark.parametrize(
    ("kind", "left", "right"),
    [
        (pa.decimal128(5, 2), "1.5", 1.50),
        (pa.float64(), "NaN", float("nan")),
        (pa.timestamp("us", "UTC"), "2024-02-29T10:00:00+01:00", "2024-02-29 09:00:00"),
        (STRUCT, {"A": 1, "b": "x"}, {"B": "x", "a": 1}),
        (MAP, {"__map__": [["k", 1], ["l", 2]]}, {"__map__": [["l", 2], ["k", 1]]}),
    ],
)
def test_the_same_value_in_other_words_is_equal(kind, left, right):
    assert rows(kind, left) == rows(kind, right)


def test_rows_are_compared_as_a_multiset():
    assert rows(pa.int32(), 1, 2, 2) == rows(pa.int32(), 2, 1, 2)
    assert difference(rows(pa.int32(), 1, 2), rows(pa.int32(), 1, 2, 2)) == "missing (2)"
    assert difference(rows(pa.int32(), 1, 1, 3), rows(pa.int32(), 1)) == "unexpected (1), (3)"


def test_a_long_difference_is_cut():
    found = difference(rows(pa.int32(), *range(9)), rows(pa.int32()))
    assert found == "unexpected (0), (1), (2), (3), (4) and 4 more"
