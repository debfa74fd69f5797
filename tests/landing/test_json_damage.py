"""What is no JSON is a bad record, and no more than that."""

from __future__ import annotations

import pytest

from tests.landing.conftest import ReadJson


@pytest.mark.parametrize(
    "line",
    [
        '{"id":2',
        '{"id":2,',
        '{"id":2,}',
        '{"id":2}}',
        '{"id":2} x',
        '{"id":2}{"id":3}',
        '{"id":2} null',
        '{"id":2}null{"id":3}',
        '{"id":2},',
        '{"id":2} // two',
        '{"id":02}',
        '{"id":+2}',
        '{"id":.2}',
        '{"id":2.}',
        '{"id":0x2}',
        '{"id":Inf}',
        '{"id":-NaN}',
        '{"id":nul}',
        "{'id':2}",
        "{id:2}",
        '{"id" 2}',
        '{"id":"2}',
        '{"id":2,"s":"a\tb"}',
        '{"id":2,"s":"\\x41"}',
        '{"id":2,"s":"\\u12"}',
        '{"id":2,"s":"\0"}',
        '{"id":2}\0',
        '\0{"id":2}',
        '{\v"id":2}',
        '{\u00a0"id":2}',
        "x",
        "[",
        "]",
        "}",
        '[{"id":2}',
        '[{"id":2}],',
        '[{"id":2},]',
        '[{"id":2} {"id":3}]',
    ],
)
@pytest.mark.parametrize("count", [1, 40])
def test_lines_that_are_no_json(read_json: ReadJson, line: str, count: int) -> None:
    found = read_json('{"id":1}\n' * count + line + '\n{"id":4}', "id INT, s STRING")

    assert found.rows == [(1, None)] * count + [(4, None)]
    assert [(bad.location, bad.text) for bad in found.bad] == [((count + 1, count + 1), line)]
    assert found.bad[0].problem.reason.startswith("is not valid JSON: ")


@pytest.mark.parametrize("raw", [b'{"id":2,"s":"\xff"}', b'{"\xe9":1}', b'{"s":"\xed\xa0\x80"}'])
def test_bytes_that_are_not_utf8(read_json: ReadJson, raw: bytes) -> None:
    found = read_json(b'{"id":1}\n' + raw + b'\n{"id":3,"s":"\xc3\xa9"}\n', "id INT, s STRING")

    assert found.rows == [(1, None), (3, "é")]
    assert found.reasons == [(2, "has bytes that are not UTF-8")]
    assert found.bad[0].raw == raw


@pytest.mark.parametrize("depth", [900, 1200, 100_000])
@pytest.mark.parametrize("pair", ["[]", '{"a":}'])
def test_nesting_without_end_is_told(read_json: ReadJson, pair: str, depth: int) -> None:
    value = pair[:-1] * depth + "1" + pair[-1] * depth
    found = read_json(f'{{"id":1}}\n{{"id":2,"x":{value}}}\n{{"id":3}}\n', "id INT")

    assert found.values == [1, 3]
    assert found.reasons == [(2, "is not valid JSON: it is nested too deep")]


@pytest.mark.parametrize("pair", ["[]", '{"a":}'])
def test_nesting_that_ends_is_read(read_json: ReadJson, pair: str) -> None:
    value = pair[:-1] * 800 + "1" + pair[-1] * 800
    side_by_side = ",".join(["[{}]"] * 2_000)
    found = read_json(f'{{"id":1,"x":{value}}}\n{{"id":2,"x":[{side_by_side}]}}\n', "id INT")

    assert found.values == [1, 2]
    assert not found.reasons


@pytest.mark.parametrize("type_name", ["INT", "DOUBLE", "DECIMAL(6,2)", "BOOLEAN", "DATE"])
def test_a_number_of_a_million_digits_is_told(read_json: ReadJson, type_name: str) -> None:
    found = read_json(f'{{"v":{"9" * 1_000_000}}}\n{{"v":null}}\n', f"v {type_name}")

    assert found.values == [None]
    assert found.reasons[0][1].startswith(f"is not a valid {type_name}")


def test_a_number_of_a_million_digits_is_a_text(read_json: ReadJson) -> None:
    digits = "9" * 1_000_000

    assert read_json(f'{{"v":{digits}}}\n', "v STRING").values == [digits]


def test_each_record_may_have_names_of_its_own(read_json: ReadJson) -> None:
    # Arrow would make room for each name in each record.
    lines = [f'{{"id":{i},"u":{{"k{i}":1}},"n{i}":0}}' for i in range(1500)]
    found = read_json("\n".join(lines), "id INT")

    assert found.values == list(range(1500))


def test_of_the_other_names_a_few_are_told(read_json: ReadJson) -> None:
    found = read_json("{" + ",".join(f'"n{i}":0' for i in range(5000)) + ',"id":1}', "id INT")

    assert found.values == [1]
    assert "id" in found.seen
    assert len(found.seen) < 200
