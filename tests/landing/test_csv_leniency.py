"""PERMISSIVE and DROPMALFORMED: what is lost is counted."""

from __future__ import annotations

import pytest

from tests.landing.conftest import ReadCsv

DATA = b'id,v\n1,a\nx,b\n3,"c"d\n4\n5,e,f\n6,\xff\nz\n7,g\n'


def test_what_can_not_be_read_becomes_null(read_csv: ReadCsv) -> None:
    found = read_csv(DATA, "id INT, v STRING", leniency="null")

    rows = [(1, "a"), (None, "b"), (4, None), (5, "e"), (None, None), (7, "g")]
    nothing = [(None, None), (None, None)]
    assert sorted(found.rows, key=repr) == sorted(rows + nothing, key=repr)
    assert found.bad == []
    assert found.records == 8
    assert found.lost_values == 2
    assert found.lost_records == 5


def test_the_corrupt_column_keeps_their_text(read_csv: ReadCsv) -> None:
    found = read_csv(DATA, "id INT, bad STRING, v STRING", leniency="null", corrupt="bad")

    assert sorted(found.rows, key=repr) == sorted(
        [
            (1, None, "a"),
            (None, "x,b", "b"),
            (None, '3,"c"d', None),
            (4, "4", None),
            (5, "5,e,f", "e"),
            (None, r"6,\xff", None),
            (None, "z", None),
            (7, None, "g"),
        ],
        key=repr,
    )


def test_a_file_without_bad_records_has_no_corrupt_ones(read_csv: ReadCsv) -> None:
    found = read_csv("id,v\n1,a\n", "id INT, bad STRING, v STRING", leniency="null", corrupt="bad")

    assert found.rows == [(1, None, "a")]
    assert (found.lost_values, found.lost_records) == (0, 0)


def test_bad_records_are_left_out(read_csv: ReadCsv) -> None:
    found = read_csv(DATA, "id INT, v STRING", leniency="drop")

    assert found.rows == [(1, "a"), (7, "g")]
    assert found.bad == []
    assert found.records == 8
    assert found.lost_records == 6


def test_told_of_they_are_bad(read_csv: ReadCsv) -> None:
    found = read_csv(DATA, "id INT, v STRING")

    assert found.rows == [(1, "a"), (7, "g")]
    assert [bad.location.line for bad in found.bad] == [3, 4, 5, 6, 7, 8]
    assert (found.lost_values, found.lost_records) == (0, 0)


@pytest.mark.parametrize("leniency", ["null", "drop"])
def test_without_wanted_columns_records_are_counted(read_csv: ReadCsv, leniency: str) -> None:
    found = read_csv(DATA, "", leniency=leniency)

    assert found.records == 8
    assert len(found.rows) == {"null": 8, "drop": 4}[leniency]
