"""Files that are not UTF-8, and those that say so with a byte order mark."""

from __future__ import annotations

import codecs

import pytest

from spark_jobs.landing.csv_records import Dialect
from spark_jobs.landing.streams import UndecodableError, is_utf8
from tests.landing.conftest import ReadCsv

DDL = "id INT, v STRING"
TEXT = "id,v\n1,äöü\n2,a\n"
ROWS = [(1, "äöü"), (2, "a")]


def test_a_byte_order_mark_is_no_part_of_the_first_name(read_csv: ReadCsv) -> None:
    assert read_csv(codecs.BOM_UTF8 + TEXT.encode(), DDL).rows == ROWS


def test_a_byte_order_mark_is_no_part_of_the_first_value(read_csv: ReadCsv) -> None:
    data = codecs.BOM_UTF8 + b'"a",b\n'

    assert read_csv(data, "x STRING, y STRING", has_header=False).rows == [("a", "b")]


def test_a_second_byte_order_mark_is_text(read_csv: ReadCsv) -> None:
    found = read_csv("\ufeff\ufeffa\n", "x STRING", has_header=False)

    assert found.values == ["\ufeffa"]


def test_a_byte_order_mark_at_the_beginning_of_a_block_is_text(read_csv: ReadCsv) -> None:
    # The header is a block of its own.
    found = read_csv("v,w\n\ufeffa,b\n", "v STRING, w STRING")

    assert found.rows == [("\ufeffa", "b")]


@pytest.mark.parametrize("size", [1, 2])
def test_half_a_byte_order_mark_is_not_utf_8(read_csv: ReadCsv, size: int) -> None:
    found = read_csv(codecs.BOM_UTF8[:size] + b"a\n", "x STRING", has_header=False)

    assert found.rows == []
    assert found.reasons == [(1, "has bytes that are not UTF-8")]


def test_latin_1_read_as_utf_8_is_bad_where_it_is_not_ascii(read_csv: ReadCsv) -> None:
    found = read_csv(TEXT.encode("latin-1"), DDL)

    assert found.rows == [(2, "a")]
    assert found.reasons == [(2, "has bytes that are not UTF-8")]
    assert found.bad[0].text == r"1,\xe4\xf6\xfc"
    assert "encoding" in found.bad[0].problem.remedy


@pytest.mark.parametrize(
    "raw",
    [b"\xff", b"\xc3", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"a\xe4", b"\x80"],
)
def test_what_only_looks_like_utf_8_is_bad(read_csv: ReadCsv, raw: bytes) -> None:
    found = read_csv(b"id,v\n1," + raw + b"\n2,a\n", DDL)

    assert found.rows == [(2, "a")]
    assert len(found.bad) == 1


def test_bytes_of_a_column_that_nobody_wants_may_be_anything(read_csv: ReadCsv) -> None:
    found = read_csv(b"id,other,v\n1,\xff,b\n2,,a\n", DDL)

    assert found.rows == [(1, "b"), (2, "a")]


@pytest.mark.parametrize(
    "encoding",
    ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "cp437"],
)
def test_the_option_names_another_encoding(read_csv: ReadCsv, encoding: str) -> None:
    assert read_csv(TEXT.encode(encoding), DDL, encoding=encoding).rows == ROWS


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_byte_order_mark_of_utf_16_is_no_text(read_csv: ReadCsv, encoding: str) -> None:
    assert read_csv(f"\ufeff{TEXT}".encode(encoding), DDL, encoding=encoding).rows == ROWS


@pytest.mark.parametrize("encoding", ["shift_jis", "gb18030", "big5", "euc_jp"])
def test_second_bytes_that_look_like_separators_are_text(read_csv: ReadCsv, encoding: str) -> None:
    # In these encodings, a second byte may be a backslash or a bar.
    text = "表ソ"
    if encoding == "big5":
        text = "功許"
    data = f'id|v\n1|{text}\n2|"{text}|"\n'.encode(encoding)

    dialect = Dialect(separator=b"|", escape=b"\\")
    assert read_csv(data, DDL, encoding=encoding, dialect=dialect).rows == [
        (1, text),
        (2, f"{text}|"),
    ]


@pytest.mark.parametrize(
    ("encoding", "raw"),
    [
        ("cp1252", b"1,\x81\n"),
        ("utf-16-le", b"1\x00,"),
        ("utf-16-le", b"\x00\xd8a\x00"),
        ("ascii", "1,ä\n".encode()),
        ("utf-32", b"\xff\xfe\x00\x00\xff\xff\xff\xff"),
    ],
)
def test_bytes_that_are_not_of_the_encoding_are_an_error(
    read_csv: ReadCsv, encoding: str, raw: bytes
) -> None:
    with pytest.raises(UndecodableError, match=encoding):
        read_csv(raw, DDL, has_header=False, encoding=encoding)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_an_order_of_bytes_is_never_guessed(read_csv: ReadCsv, encoding: str) -> None:
    with pytest.raises(UndecodableError, match="BOM"):
        read_csv(TEXT.encode(f"{encoding}-le"), DDL, encoding=encoding)


def test_only_utf_8_is_read_without_another_look() -> None:
    assert is_utf8("UTF-8")
    assert is_utf8("utf8")
    assert not is_utf8("US-ASCII")
    assert not is_utf8("ISO-8859-1")
