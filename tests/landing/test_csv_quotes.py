"""Quotes around fields, within them and where they do not belong."""

from __future__ import annotations

import pytest

from spark_jobs.errors import CatalogError
from spark_jobs.landing.csv_records import Dialect
from tests.landing.conftest import ReadCsv

BACKSLASH = Dialect(escape=b"\\")
SINGLE_LINE = Dialect(multi_line=False)


@pytest.mark.parametrize(
    ("field", "value"),
    [('"a ""b"" c"', 'a "b" c'), ('""""', '"'), ('""""""', '""'), ('"a,b"', "a,b"), ('","', ",")],
)
def test_a_doubled_quote_within_quotes_is_one(read_csv: ReadCsv, field: str, value: str) -> None:
    found = read_csv(f"id,v\n1,{field}\n{2},x\n", "id INT, v STRING")

    assert found.rows == [(1, value), (2, "x")]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_a_line_break_within_quotes_belongs_to_the_value(read_csv: ReadCsv, line_end: str) -> None:
    found = read_csv(f'id,v\n1,"a{line_end}b"\n2,"c"\n', "id INT, v STRING")

    assert found.rows == [(1, f"a{line_end}b"), (2, "c")]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_a_line_break_within_quotes_is_an_error_where_records_are_lines(
    read_csv: ReadCsv, line_end: str
) -> None:
    # The second line alone would be a record.
    data = f'v,w\na,b\n"x{line_end}y",z\nc,d\n'

    with pytest.raises(CatalogError, match="csv, line 3 has a quote that is not closed") as raised:
        read_csv(data, "v STRING, w STRING", dialect=SINGLE_LINE)

    assert "multiLine" in raised.value.remedy


def test_a_quote_that_is_not_closed_behind_damage_is_an_error_where_records_are_lines(
    read_csv: ReadCsv,
) -> None:
    with pytest.raises(CatalogError, match="line 2 has a quote that is not closed"):
        read_csv('v,w\n"a"b,"c\nd",e\n', "v STRING, w STRING", dialect=SINGLE_LINE)


@pytest.mark.parametrize("leniency", ["null", "drop"])
def test_where_options_ask_for_it_a_quote_that_is_not_closed_costs_its_line(
    read_csv: ReadCsv, leniency: str
) -> None:
    data = 'id,v\n1,a\n2,"b\n3,"c"\n'

    found = read_csv(data, "id INT, v STRING", dialect=SINGLE_LINE, leniency=leniency)

    assert {(1, "a"), (3, "c")} <= set(found.rows)
    assert found.lost_records == 1


def test_a_quote_that_is_never_closed_is_bad_to_the_end(read_csv: ReadCsv) -> None:
    found = read_csv('id,v\n1,a\n2,"b\n3,c\n4,d', "id INT, v STRING")

    assert found.rows == [(1, "a")]
    assert found.reasons == [(3, "has a quote that is never closed")]
    assert found.bad[0].text == '2,"b\n3,c\n4,d'


@pytest.mark.parametrize("field", ['"a"b', '"a" ', '"a"b"c"', '"a""b"c', '"a"""b'])
def test_text_behind_a_closing_quote_is_bad(read_csv: ReadCsv, field: str) -> None:
    found = read_csv(f"id,v\n1,{field}\n2,x\n", "id INT, v STRING")

    assert found.rows == [(2, "x")]
    assert "text behind a closing quote" in found.bad[0].problem.reason
    assert found.bad[0].text == f"1,{field}"


def test_a_line_break_in_later_quotes_of_a_bad_record_makes_no_row(read_csv: ReadCsv) -> None:
    found = read_csv('a,b\n"x"y,"1\n2,z"\n3,c\n', "a STRING, b STRING")

    assert found.rows == [("3", "c")]
    assert [bad.text for bad in found.bad] == ['"x"y,"1\n2,z"']


def test_the_remedy_for_a_backslash_before_a_quote_names_the_option(read_csv: ReadCsv) -> None:
    found = read_csv('id,v\n1,"a\\"b"\n', "id INT, v STRING")

    assert "'escape'" in found.bad[0].problem.remedy


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (r'"a\"b"', 'a"b'),
        (r'"a\\"', "a\\"),
        (r'"\\\""', r"\"".replace("\\\\", "\\")),
        (r'"a\nb"', r"a\nb"),
        ('"a\\\nb"', "a\\\nb"),
        (r"a\b", r"a\b"),
        (r'"\","', '",'),
    ],
)
def test_the_escape_option_keeps_quotes_within_quotes(
    read_csv: ReadCsv, field: str, value: str
) -> None:
    found = read_csv(f"id,v\n1,{field}\n2,x\n", "id INT, v STRING", dialect=BACKSLASH)

    assert found.rows == [(1, value), (2, "x")]


def test_a_doubled_quote_is_bad_where_another_escape_is_named(read_csv: ReadCsv) -> None:
    found = read_csv('id,v\n1,"a""b"\n2,x\n', "id INT, v STRING", dialect=BACKSLASH)

    assert found.rows == [(2, "x")]
    assert found.reasons[0][0] == 2


def test_without_an_escape_no_quote_is_within_quotes(read_csv: ReadCsv) -> None:
    dialect = Dialect(escape=b"")
    found = read_csv('id,v\n1,"a\\b"\n2,"a""b"\n3,x\n', "id INT, v STRING", dialect=dialect)

    assert found.rows == [(1, "a\\b"), (3, "x")]


def test_an_escaped_line_break_is_an_error_where_records_are_lines(read_csv: ReadCsv) -> None:
    dialect = Dialect(escape=b"\\", multi_line=False)

    with pytest.raises(CatalogError, match="line 2"):
        read_csv('id,v\n1,"a\\\nb"\n2,x\n', "id INT, v STRING", dialect=dialect)


@pytest.mark.parametrize("field", ['5" pipe', 'a"b"', 'a""', ' "a"', "it's"])
def test_a_quote_within_a_plain_field_is_text(read_csv: ReadCsv, field: str) -> None:
    found = read_csv(f"id,v\n1,{field}\n2,x\n", "id INT, v STRING")

    assert found.rows == [(1, field), (2, "x")]


@pytest.mark.parametrize("escape", [b"", b'"', b"\\"])
def test_without_a_quote_all_fields_are_plain(read_csv: ReadCsv, escape: bytes) -> None:
    dialect = Dialect(quote=b"", escape=escape)
    found = read_csv('id,v\n1,"a""b"\n2,"\n', "id INT, v STRING", dialect=dialect)

    assert found.rows == [(1, '"a""b"'), (2, '"')]


def test_another_quote_and_separator(read_csv: ReadCsv) -> None:
    dialect = Dialect(separator=b";", quote=b"'", escape=b"'")
    found = read_csv("id;v\n1;'a;''b'\n2;\"x\n", "id INT, v STRING", dialect=dialect)

    assert found.rows == [(1, "a;'b"), (2, '"x')]
