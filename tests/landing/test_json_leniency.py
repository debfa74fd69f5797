"""What sources are read as that ask for NULLs, or to leave bad records out."""

from __future__ import annotations

import pyarrow as pa

from spark_jobs.landing.records import Column
from tests.landing.conftest import ReadJson

DATA = '{"id":1,"n":1}\n{"id":"x","n":2}\n{"id":3\n{"id":4,"ID":4}\n{"id":5,"n":5}\n'


def test_bad_values_become_null(read_json: ReadJson) -> None:
    found = read_json(DATA, "id INT, n INT", leniency="null")

    rows = [(1, 1), (None, 2), (None, None), (None, None), (5, 5)]
    assert sorted(found.rows, key=str) == sorted(rows, key=str)
    assert (found.lost_values, found.lost_records, found.bad) == (1, 2, [])


def test_a_column_keeps_the_text_of_bad_records(read_json: ReadJson) -> None:
    found = read_json(DATA, "id INT, n INT, bad STRING", leniency="null", corrupt="bad")

    assert sorted(row[2] for row in found.rows if row[2]) == [
        '{"id":"x","n":2}',
        '{"id":3',
        '{"id":4,"ID":4}',
    ]
    assert [row for row in found.rows if row[2] is None] == [(1, 1, None), (5, 5, None)]


def test_bad_records_are_left_out(read_json: ReadJson) -> None:
    found = read_json(DATA, "id INT, n INT", leniency="drop")

    assert found.rows == [(1, 1), (5, 5)]
    assert (found.records, found.lost_records, found.bad) == (5, 3, [])


def test_a_value_with_a_bad_part_becomes_null(read_json: ReadJson) -> None:
    kind = pa.list_(pa.int32())
    found = read_json('{"v":[1,"x"]}\n{"v":[2]}\n', (Column("v", kind, "X"),), leniency="null")

    assert found.values == [None, [2]]
    assert found.lost_values == 1
