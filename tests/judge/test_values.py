"""What the judge's comparison tells apart; needs no Java."""

from __future__ import annotations

import pyarrow as pa

from tests.support.judged_values import differences, from_arrow, from_java


def test_values_tell_apart_what_python_calls_equal():
    column = pa.table({"v": pa.array([0.0, -0.0, float("nan")], pa.float64())})
    rows = from_arrow(column)
    assert not differences(rows, rows)
    assert len(differences(rows[:1], rows[1:2])) == 2
    assert differences(rows, rows[:2])
    assert differences(rows[:1] * 2, rows[:1])


def test_null_is_no_text_and_no_empty_struct():
    kind = pa.struct([("a", pa.string())])
    rows = from_arrow(pa.table({"v": pa.array([None, {"a": None}, {"a": "null"}], kind)}))
    assert len({repr(row) for row in rows}) == 3


def test_timestamps_keep_their_nanoseconds():
    assert from_java("TIMESTAMP(9)", [-1, 999_999]) == -1
    column = pa.array([-1], pa.timestamp("ns"))
    assert from_arrow(pa.table({"v": column})) == [{"v": -1}]
