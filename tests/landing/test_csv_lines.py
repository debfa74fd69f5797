"""Blank lines, comments, blanks around fields, line ends and NUL bytes."""

from __future__ import annotations

import pytest

from spark_jobs.landing import blocks
from spark_jobs.landing.csv_records import Dialect
from tests.landing.conftest import ReadCsv

DDL = "id INT, v STRING"
COMMENTS = Dialect(comment=b"#")
TRIMMED = Dialect(trim_left=True, trim_right=True)


def test_blank_lines_are_no_records(read_csv: ReadCsv) -> None:
    found = read_csv("\n\r\nid,v\n\n1,a\n\r\n\n2,b\n\n", DDL)

    assert found.rows == [(1, "a"), (2, "b")]
    assert found.records == 2


@pytest.mark.parametrize("size", range(1, 12))
def test_half_a_line_end_at_the_end_of_a_block_is_no_line(
    read_csv: ReadCsv, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", size)

    found = read_csv("id,v\r\n\r\n\r\n1,a\r\n\r\nx,b\r\n", DDL)

    assert found.rows == [(1, "a")]
    assert found.reasons == [(6, "is not a valid INT")]


def test_of_a_single_column_a_blank_line_is_no_record_and_quotes_are_one(read_csv: ReadCsv) -> None:
    assert read_csv('v\na\n\n""\nb\n', "v STRING").values == ["a", "", "b"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_every_line_end_is_one(read_csv: ReadCsv, end: str, last: bool) -> None:
    data = f"id,v{end}1,a{end}2,{end}3,c{end if last else ''}"

    assert read_csv(data, DDL).rows == [(1, "a"), (2, None), (3, "c")]


def test_line_ends_may_be_mixed(read_csv: ReadCsv) -> None:
    data = 'id,v\r1,a\n2,b\r\n3,"c"\r4,d\n\r5,"e\r"\r\r6,f'

    found = read_csv(data, DDL)

    assert found.rows == [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e\r"), (6, "f")]


def test_lines_that_begin_with_the_comment_s_character_are_no_records(read_csv: ReadCsv) -> None:
    data = '#x\nid,v\n#1,a\n1,a\n#\n2,#b\n#,"\n3,"\n#c"\n#'

    found = read_csv(data, DDL, dialect=COMMENTS)

    assert found.rows == [(1, "a"), (2, "#b"), (3, "\n#c")]


def test_without_the_option_nothing_is_a_comment(read_csv: ReadCsv) -> None:
    assert read_csv("v,w\n#1,a\n", "v STRING, w STRING").rows == [("#1", "a")]


@pytest.mark.parametrize(
    ("dialect", "values"),
    [
        (Dialect(), [' "x"', "  a  ", "\tb\t"]),
        (Dialect(trim_left=True), ["x", "a  ", "b\t"]),
        (Dialect(trim_right=True), [' "x"', "  a", "\tb"]),
        (TRIMMED, ["x", "a", "b"]),
    ],
)
def test_blanks_around_texts_are_kept_unless_the_options_say_so(
    read_csv: ReadCsv, dialect: Dialect, values: list[str]
) -> None:
    found = read_csv('v,id\n "x",1\n  a  ,2\n\tb\t,3\n', DDL, dialect=dialect)

    assert found.rows == list(enumerate(values, 1))


@pytest.mark.parametrize("field", [' " a "  ', '" a "'])
def test_blanks_within_quotes_are_kept(read_csv: ReadCsv, field: str) -> None:
    found = read_csv(f"id,v\n1,{field}\n2,   \n", DDL, dialect=TRIMMED)

    assert found.rows == [(1, " a "), (2, None)]


@pytest.mark.parametrize("separator", [b"\t", b" "])
def test_a_separator_is_no_blank(read_csv: ReadCsv, separator: bytes) -> None:
    dialect = Dialect(separator=separator, trim_left=True, trim_right=True)
    data = b'id,v\n1,\n2,a\n3,"b"\n,"c"\n'.replace(b",", separator)

    found = read_csv(data, DDL, dialect=dialect)

    assert found.rows == [(1, None), (2, "a"), (3, "b"), (None, "c")]


def test_a_nul_is_text(read_csv: ReadCsv) -> None:
    found = read_csv('id,v\n1,a\0b\n2,\0\n3,"\0"\n\0,x\n', DDL)

    assert found.rows == [(1, "a\0b"), (2, "\0"), (3, "\0")]
    assert found.reasons == [(5, "is not a valid INT")]


def test_other_line_ends_of_unicode_are_text(read_csv: ReadCsv) -> None:
    found = read_csv("id,v\n1,a\u2028b\x85c\vd\fe\x1cf\n", DDL)

    assert found.rows == [(1, "a\u2028b\x85c\vd\fe\x1cf")]
