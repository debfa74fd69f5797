"""Parts of a file have each record once, and blocks are bounded."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from spark_jobs.landing import json_reader
from spark_jobs.landing.blocks import RecordTooLongError
from spark_jobs.landing.files import FilePart
from spark_jobs.landing.json_reader import JsonReader
from spark_jobs.landing.rows import Wanted
from tests.landing.conftest import ReadJson
from tests.landing.reading import LOCAL, columns, landed, read

LINES = b'{"id":1}\n\n[{"id":2},{"id":3}]\r\n{"id":"x"}\n{"id":\n{"id":4}'


def test_any_two_parts_have_each_record_once(tmp_path: Path, json_way: str) -> None:
    path = tmp_path / "landed.json"
    path.write_bytes(LINES)
    reader = JsonReader(Wanted(columns("id INT")))

    for cut in range(1, len(LINES) + 1):
        first, second = read(reader, path, 0, cut), read(reader, path, cut)
        assert first.values + second.values == [1, 2, 3, 4], (json_way, cut)
        assert first.records + second.records == 6
        assert [bad.location.record for bad in second.bad] == [None] * len(second.bad)


def test_only_lines_of_utf8_are_split() -> None:
    wanted = Wanted(columns("id INT"))

    assert JsonReader(wanted).is_splittable
    assert not JsonReader(wanted, multi_line=True).is_splittable
    assert not JsonReader(wanted, encoding="utf-16").is_splittable


def test_a_line_may_have_as_many_bytes_as_the_source_allows(read_json: ReadJson) -> None:
    line = '{"id":2,"s":"' + "x" * 85 + '"}'
    assert len(line) == 100
    data = f'{{"id":1}}\n\n{line}\n{{"id":3}}\r\n'
    assert read_json(data, "id INT", max_record_bytes=100).values == [1, 2, 3]

    with pytest.raises(RecordTooLongError, match="line 3"):
        read_json(data, "id INT", max_record_bytes=99)


def test_a_line_without_end_stops_at_the_limit(tmp_path: Path, json_way: str) -> None:
    path = tmp_path / "landed.json"
    path.write_bytes(b'{"id":1}\n{"id":2}\n{' + b" " * 5000)
    reader = JsonReader(Wanted(columns("id INT")), max_record_bytes=100)

    with pytest.raises(RecordTooLongError, match="line 3"):
        read(reader, path)
    with pytest.raises(RecordTooLongError, match="line 3"):
        read(reader, path, 9)


def test_a_block_has_no_more_than_so_many_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_reader, "_CHUNK_RECORDS", 3)
    path = tmp_path / "landed.json"
    path.write_bytes(b"[" + b",".join([b'{"id":1}'] * 7) + b'{"id":]\n' + b'{"id":"x"}\n[{}]\n' * 4)
    reader = JsonReader(Wanted(columns("id INT")))

    found = list(reader.read(LOCAL, FilePart(landed(path))))

    assert [block.records for block in found] == [3, 3, 3]
    numbers = [bad.location.record for block in found for bad in block.bad]
    assert numbers == [1, 2, 4, 6, 8]


def test_a_reader_can_be_sent_to_executors(tmp_path: Path) -> None:
    path = tmp_path / "landed.json"
    path.write_bytes(LINES)
    reader = pickle.loads(pickle.dumps(JsonReader(Wanted(columns("id INT")))))

    assert read(reader, path).values == [1, 2, 3, 4]
