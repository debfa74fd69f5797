"""Records with more or fewer fields than there are columns."""

from __future__ import annotations

import pytest

from tests.landing.conftest import ReadCsv

DDL = "id INT, v STRING"


@pytest.mark.parametrize(
    ("record", "count"),
    [("1", "1 field"), ("1,a,b", "3 fields"), ("1,a,", "3 fields"), (",,", "3 fields")],
)
def test_a_record_of_another_length_is_bad(read_csv: ReadCsv, record: str, count: str) -> None:
    found = read_csv(f"id,v\n7,x\n{record}\n8,y\n", DDL)

    assert found.rows == [(7, "x"), (8, "y")]
    assert found.reasons == [(3, f"has {count} where the header has 2")]
    assert found.bad[0].text == record


def test_without_a_header_the_schema_says_how_long_records_are(read_csv: ReadCsv) -> None:
    found = read_csv("1,a\n2,b,c\n", DDL, has_header=False)

    assert found.rows == [(1, "a")]
    assert found.reasons == [(2, "has 3 fields where the source's schema has 2")]


def test_fields_that_nobody_wants_count(read_csv: ReadCsv) -> None:
    found = read_csv("id,v,x\n1,a\n2,b,\n", DDL)

    assert found.rows == [(2, "b")]
    assert found.reasons == [(2, "has 2 fields where the header has 3")]


def test_a_line_of_blanks_is_a_record_of_one_field(read_csv: ReadCsv) -> None:
    found = read_csv("id,v\n1,a\n \n2,b\n", DDL)

    assert found.rows == [(1, "a"), (2, "b")]
    assert found.reasons == [(3, "has 1 field where the header has 2")]
