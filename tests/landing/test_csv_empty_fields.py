"""What stands for NULL, and what for an empty text."""

from __future__ import annotations

import pytest

from spark_jobs.landing.values import TextRules
from tests.landing.conftest import ReadCsv

OTHER_TYPES = ["INT", "DOUBLE", "DECIMAL(6,2)", "BOOLEAN", "DATE", "TIMESTAMP", "BINARY"]


@pytest.mark.parametrize("type_name", ["STRING", *OTHER_TYPES])
def test_an_empty_field_is_null(read_csv: ReadCsv, type_name: str) -> None:
    found = read_csv("id,v\n1,\n2,", f"id INT, v {type_name}")

    assert found.rows == [(1, None), (2, None)]


@pytest.mark.parametrize("last", ["\n", "\r\n", ""])
def test_an_empty_field_behind_quotes_is_null(read_csv: ReadCsv, last: str) -> None:
    assert read_csv(f'id,v\n"1",{last}', "id INT, v STRING").rows == [(1, None)]


def test_an_empty_field_in_quotes_is_an_empty_text(read_csv: ReadCsv) -> None:
    assert read_csv('id,v\n1,""\n2,', "id INT, v STRING").rows == [(1, ""), (2, None)]


@pytest.mark.parametrize("type_name", OTHER_TYPES)
def test_an_empty_field_in_quotes_is_null_where_a_text_is_none(
    read_csv: ReadCsv, type_name: str
) -> None:
    assert read_csv('id,v\n1,""\n', f"id INT, v {type_name}").rows == [(1, None)]


@pytest.mark.parametrize("type_name", ["INT", "DOUBLE", "DECIMAL(6,2)", "BOOLEAN", "DATE"])
def test_blanks_are_no_value(read_csv: ReadCsv, type_name: str) -> None:
    found = read_csv("id,v\n1,  \n", f"id INT, v {type_name}")

    assert found.reasons == [(2, f"is not a valid {type_name}")]


def test_blanks_are_a_text(read_csv: ReadCsv) -> None:
    assert read_csv("id,v\n1,  \n", "id INT, v STRING").rows == [(1, "  ")]


@pytest.mark.parametrize("type_name", ["STRING", "INT"])
def test_another_text_may_stand_for_null(read_csv: ReadCsv, type_name: str) -> None:
    found = read_csv('id,v\n1,NA\n2,"NA"\n3,\n4,5\n', f"id INT, v {type_name}", null_text="NA")

    five = "5" if type_name == "STRING" else 5
    assert found.rows == [(1, None), (2, None), (3, None), (4, five)]


def test_what_stands_for_null_is_the_whole_field_as_it_is_written(read_csv: ReadCsv) -> None:
    found = read_csv("id,v\n1,na\n2, NA\n3,NANA\n", "id INT, v STRING", null_text="NA")

    assert [value for _, value in found.rows] == ["na", " NA", "NANA"]


@pytest.mark.parametrize("text", ["NULL", "null", "NA", "None", r"\N", "-"])
def test_no_other_text_is_null(read_csv: ReadCsv, text: str) -> None:
    found = read_csv(f"v,n\n{text},1\na,{text}\n", "v STRING, n INT")

    assert found.rows == [(text, 1)]
    assert found.reasons == [(3, "is not a valid INT")]


def test_an_empty_text_may_stand_for_another(read_csv: ReadCsv) -> None:
    found = read_csv('v,n\n"",""\n,\n', "v STRING, n INT", empty_text="(empty)")

    assert found.rows == [("(empty)", None), (None, None)]


def test_bytes_may_be_base64(read_csv: ReadCsv) -> None:
    rules = TextRules(has_base64=True)
    found = read_csv('id,v\n1,""\n2,\n3,"/wA="\n4,?\n', "id INT, v BINARY", rules=rules)

    assert found.rows == [(1, b""), (2, None), (3, b"\xff\0")]
    assert found.reasons == [(5, "is not a valid BINARY")]
