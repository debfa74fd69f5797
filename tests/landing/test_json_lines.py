"""Which records a file of JSON lines has, and where they stand."""

from __future__ import annotations

import codecs
import gzip

import pytest

from tests.landing.conftest import ReadJson


def test_a_line_is_a_record(read_json: ReadJson) -> None:
    assert read_json('{"id":1}\n{"id":2}\n', "id INT").values == [1, 2]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_on_any_system(read_json: ReadJson, end: str) -> None:
    found = read_json(end.join(['{"id":1}', '{"id":2}', '{"id":"x"}', ""]), "id INT")

    assert found.values == [1, 2]
    assert [bad.location for bad in found.bad] == [(3, 3)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_end_of_a_line_is_no_part_of_a_bad_record(read_json: ReadJson, end: str) -> None:
    found = read_json(
        f'{{"d":"2024-01-01"}}{end}{{"d":"x"}}{end}{{"d":1}}{end}{{"d"{end}', "d DATE"
    )

    assert [bad.text for bad in found.bad] == ['{"d":"x"}', '{"d":1}', '{"d"']


def test_the_last_line_needs_no_end(read_json: ReadJson) -> None:
    assert read_json('{"id":1}\n{"id":2}', "id INT").values == [1, 2]


def test_blank_lines_are_no_records(read_json: ReadJson) -> None:
    found = read_json('\n \t\n{"id":1}\n\r\n\n  {"id":2}  \n{"id":"x"}\n\n', "id INT")

    assert found.values == [1, 2]
    assert [bad.location for bad in found.bad] == [(7, 3)]


@pytest.mark.parametrize("data", ["", "\n", " \n\t\n"])
def test_a_file_may_have_no_records(read_json: ReadJson, data: str) -> None:
    found = read_json(data, "id INT")

    assert (found.rows, found.records, found.seen) == ([], 0, set())


def test_an_array_on_a_line_holds_records(read_json: ReadJson) -> None:
    found = read_json('{"id":1}\n[{"id":2}, {"id":3}]\n[]\n[{"id":4},5]\n', "id INT")

    assert found.values == [1, 2, 3, 4]
    assert [(bad.location, bad.text) for bad in found.bad] == [((4, 5), "5")]


def test_an_array_that_is_not_closed_is_one_bad_record(read_json: ReadJson) -> None:
    found = read_json('[{"id":1},{"id":2}\n{"id":3}\n', "id INT")

    assert found.values == [3]
    assert [(bad.location, bad.text) for bad in found.bad] == [((1, 1), '[{"id":1},{"id":2}')]


@pytest.mark.parametrize("line", ["5", '"x"', "null", "true", "[1]", "[null]", "[[{}]]"])
def test_what_is_no_object_is_a_bad_record(read_json: ReadJson, line: str) -> None:
    found = read_json(f'{{"id":1}}\n{line}\n{{"id":2}}\n', "id INT")

    assert found.values == [1, 2]
    assert found.reasons == [(2, "is not a JSON object")]


def test_a_byte_order_mark_is_left_out(read_json: ReadJson) -> None:
    assert read_json(codecs.BOM_UTF8 + b'{"id":1}\n', "id INT").values == [1]


def test_a_byte_order_mark_within_the_file_is_no_json(read_json: ReadJson) -> None:
    found = read_json(b'{"id":1}\n' + codecs.BOM_UTF8 + b'{"id":2}\n', "id INT")

    assert found.values == [1]
    assert [bad.location for bad in found.bad] == [(2, 2)]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "iso-8859-1", "cp1252"])
def test_other_encodings(read_json: ReadJson, encoding: str) -> None:
    data = '{"s":"é"}\n{"s":"ü"}\n'.encode(encoding)

    assert read_json(data, "s STRING", encoding=encoding).values == ["é", "ü"]


def test_compressed_files(read_json: ReadJson) -> None:
    data = gzip.compress(b'{"id":1}\n{"id":2}\n')

    assert read_json(data, "id INT", name="landed.json.gz").values == [1, 2]


def test_records_without_wanted_columns_are_counted(read_json: ReadJson) -> None:
    found = read_json('{"id":1}\n{}\nx\n', ())

    assert (found.rows, found.records, len(found.bad)) == ([(), ()], 3, 1)
