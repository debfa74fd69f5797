"""Names in records mean columns in any case, and only once."""

from __future__ import annotations

import pytest

from tests.landing.conftest import ReadJson


def test_names_match_in_any_case(read_json: ReadJson) -> None:
    found = read_json('{"ID":13,"N":1}\n{"ID":14,"N":null}\n', "id INT, n INT")

    assert found.rows == [(13, 1), (14, None)]
    assert found.seen == {"ID", "N"}


def test_names_may_be_spelled_differently_in_each_record(read_json: ReadJson) -> None:
    found = read_json('{"id":1}\n{"ID":2}\n{"Id":3}\n', "iD INT")

    assert found.values == [1, 2, 3]
    assert found.seen == {"id", "ID", "Id"}


def test_a_name_may_be_written_with_escapes(read_json: ReadJson) -> None:
    assert read_json('{"\\u0069d":1}\n{"id":2}\n', "id INT").values == [1, 2]


@pytest.mark.parametrize("line", ['{"id":2,"id":3}', '{"id":2,"ID":3}', '{"id":null,"\\u0069d":3}'])
def test_a_column_that_is_named_twice_is_a_bad_record(read_json: ReadJson, line: str) -> None:
    found = read_json(f'{{"id":1}}\n{line}\n{{"id":4}}\n', "id INT")

    assert found.values == [1, 4]
    assert found.reasons == [(2, "names twice the column id")]
    assert found.bad[0].problem.column == "id"


def test_other_names_may_occur_twice(read_json: ReadJson) -> None:
    found = read_json('{"id":1,"x":1,"x":2}\n{"id":2,"x":1,"X":2}\n', "id INT")

    assert found.values == [1, 2]
    assert found.seen == {"id", "x", "X"}


def test_a_name_that_a_record_lacks_is_null(read_json: ReadJson) -> None:
    found = read_json('{"id":1,"n":1}\n{"id":2}\n{}\n', "id INT, n INT")

    assert found.rows == [(1, 1), (2, None), (None, None)]


def test_a_column_of_nulls_was_seen(read_json: ReadJson) -> None:
    assert read_json('{"id":1,"n":null}\n' * 40, "id INT, n INT").seen == {"id", "n"}


def test_a_column_that_no_record_has_was_not_seen(read_json: ReadJson) -> None:
    found = read_json('{"id":1}\n' * 40, "id INT, n INT, m INT")

    assert found.rows == [(1, None, None)] * 40
    assert found.seen == {"id"}


@pytest.mark.parametrize("rare", ['"n":1', '"n":null', '"n":null,"m":1', '"N":1', '"x":[{"y":2}]'])
def test_names_in_one_record_of_many(read_json: ReadJson, rare: str) -> None:
    lines = ['{"id":0}'] * 500
    lines[333] = f'{{"id":0,{rare}}}'
    found = read_json("\n".join(lines), "id INT, n INT, m INT")

    assert len(found.rows) == 500
    assert found.seen - {"id"} == {part.split('"')[1] for part in rare.split(",")}


def test_other_columns_may_hold_anything(read_json: ReadJson) -> None:
    values = ["1", "1.5", "1e400", '"x"', "null", "true", "[1,{}]", '{"a":{"a":1,"a":2}}', "NaN"]
    data = "".join(f'{{"id":{i},"other":{value}}}\n' for i, value in enumerate(values))
    found = read_json(data, "id INT")

    assert found.values == list(range(len(values)))
    assert not found.bad


def test_a_name_with_half_of_a_surrogate_pair_can_be_told(read_json: ReadJson) -> None:
    found = read_json('{"id":1,"\\ud800":2}\n', "id INT")

    assert found.values == [1]
    assert found.seen == {"id", "\\ud800"}


def test_the_empty_name(read_json: ReadJson) -> None:
    assert read_json('{"":1,"id":2}\n', "id INT").seen == {"", "id"}
