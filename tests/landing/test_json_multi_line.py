"""With ``multi_line`` a file is values one after another, which may span lines."""

from __future__ import annotations

import pytest

from spark_jobs.landing.blocks import RecordTooLongError
from tests.landing.conftest import ReadJson
from tests.landing.reading import Outcome


@pytest.fixture
def read_values(read_json: ReadJson) -> ReadJson:
    def read_it(data: str | bytes, ddl: str, **options: object) -> Outcome:
        return read_json(data, ddl, multi_line=True, **options)

    return read_it


@pytest.mark.parametrize(
    "data",
    [
        '[\n  {\n    "id": 1\n  },\n  {\n    "id": 2\n  }\n]\n',
        '{"id":\n1}\n{"id":\n2}\n',
        '{"id":1}{"id":2}',
        '{"id":1}\n[{"id":2}]',
        '[{"id":1}] [ ] [{"id":2}]\r\n\r\n',
        '\ufeff[{"id":1},\r\n{"id":2}]',
    ],
)
def test_values_may_span_lines(read_values: ReadJson, data: str) -> None:
    found = read_values(data, "id INT")

    assert found.values == [1, 2]
    assert not found.bad


@pytest.mark.parametrize("data", ["", " \n", "[]", "[ ]\n"])
def test_a_file_may_have_no_records(read_values: ReadJson, data: str) -> None:
    assert read_values(data, "id INT").records == 0


def test_a_bad_record_stands_where_it_begins(read_values: ReadJson) -> None:
    found = read_values('[\n{"id":1},\n\n  {"id":\n"x"},\n5,\n{"id":2}\n]', "id INT")

    assert found.values == [1, 2]
    assert [(bad.location, bad.text) for bad in found.bad] == [
        ((4, 2), '{"id":\n"x"}'),
        ((6, 3), "5"),
    ]


@pytest.mark.parametrize(
    ("data", "rest"),
    [
        ('{"id":1}\n{"id":', '{"id":'),
        ('[{"id":1},\n{"id":', ',\n{"id":'),
        ('[{"id":1}', ""),
        ('[{"id":1}\n', ""),
        ('{"id":1}\nx {"id":2}', 'x {"id":2}'),
        ('[{"id":1},]', ",]"),
        ('{"id":1},{"id":2}', ',{"id":2}'),
    ],
)
def test_what_follows_damage_is_one_bad_record(read_values: ReadJson, data: str, rest: str) -> None:
    found = read_values(data, "id INT")

    assert found.values == [1]
    assert [bad.text for bad in found.bad] == [rest]
    assert found.reasons[0][1].startswith("is not valid JSON: ")


def test_bytes_that_are_not_utf8_are_of_one_record(read_values: ReadJson) -> None:
    found = read_values(b'[{"id":1},\n{"id":2,"s":"\xff"},\n{"id":3}]', "id INT")

    assert found.values == [1, 3]
    assert [(bad.location, bad.raw) for bad in found.bad] == [((2, 2), b'{"id":2,"s":"\xff"}')]


def test_a_file_larger_than_a_record_may_be_is_an_error(read_values: ReadJson) -> None:
    data = '[{"id":1}]'
    assert read_values(data, "id INT", max_record_bytes=len(data)).values == [1]

    with pytest.raises(RecordTooLongError):
        read_values(data + " ", "id INT", max_record_bytes=len(data))
