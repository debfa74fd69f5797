"""Parts of a file: together they have each record once, wherever they begin."""

from __future__ import annotations

import codecs
import random
from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.errors import CatalogError
from spark_jobs.landing import blocks, csv_rows
from spark_jobs.landing.blocks import RecordTooLongError
from spark_jobs.landing.csv_reader import CsvReader
from spark_jobs.landing.csv_records import Dialect
from spark_jobs.landing.files import FilePart
from spark_jobs.landing.rows import Wanted
from spark_jobs.landing.streams import lines_before
from tests.landing.reading import LOCAL, Outcome, columns, landed, read

FILES = {
    "plain": b"id,v\n1,a\n2,b\n3,c\n",
    "no last line end": b"id,v\n1,a\n2,b\n3,c",
    "carriage returns and line feeds": b"id,v\r\n1,a\r\n2,b\r\n3,c\r\n",
    "empty lines": b"\n\nid,v\n\n1,a\n\n\n2,b\n\n",
    "empty lines with carriage returns": b"\r\n\r\nid,v\r\n\r\n1,a\r\n\r\n2,b",
    "byte order mark": codecs.BOM_UTF8 + b"id,v\n1,a\n22,b\n3,c\n",
    "byte order mark and an empty line": codecs.BOM_UTF8 + b"\nid,v\n1,a\n22,b\n3,c\n",
    "header alone": b"id,v\n",
    "header alone without a line end": b"id,v",
    "empty": b"",
    "empty lines alone": b"\n\n\r\n",
    "carriage returns alone": b"id,v\r1,a\r2,b\r3,c\r",
    "mixed line ends": b"\r\rid,v\r1,a\n2,b\r\n3,c\r4,d\n\n5,e",
    "bad records": b'id,v\nx,a\n2,b"\n3,c,d\n4,"d"x\n5\n6,f\n',
    "bad records with carriage returns": b'id,v\r\nx,a\r\n2,b"\r\n3,c,d\r\n4,"d"x\r\n6,f\r\n',
    "quotes": b'id,v\n1,"a,b"\n"2","""b"""\n3,""\n',
    "comments": b"#a,b\n#\nid,v\n1,a\n#x\n2,b\n#",
    "long lines": b"id,v\n1," + b"a" * 40 + b"\n2,b\n3," + b"c" * 40 + b"\n",
}


@pytest.fixture(params=["whole blocks", "exact way", "tiny blocks"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "exact way":
        monkeypatch.setattr(csv_rows, "regular_end", lambda *_, **__: 0)
    if request.param == "tiny blocks":
        monkeypatch.setattr(blocks, "BLOCK_BYTES", 5)


@pytest.mark.parametrize("has_header", [True, False])
@pytest.mark.parametrize("name", FILES)
def test_two_parts_are_the_whole_wherever_they_meet(
    tmp_path: Path, name: str, has_header: bool
) -> None:
    path, reader = _file(tmp_path, FILES[name]), _reader(has_header)
    whole = read(reader, path)

    for at in range(1, len(FILES[name]) + 2):
        first, second = read(reader, path, 0, at), read(reader, path, at)

        assert first.rows + second.rows == whole.rows, at
        assert first.records + second.records == whole.records, at
        assert _lines(first, path, 0) + _lines(second, path, at) == _lines(whole, path, 0), at


@pytest.mark.parametrize("name", FILES)
def test_many_parts_are_the_whole(tmp_path: Path, name: str) -> None:
    data = FILES[name]
    path, reader = _file(tmp_path, data), _reader(has_header=True)
    whole, chance = read(reader, path), random.Random(name)

    for _ in range(30):
        cuts = sorted({0, *(chance.randint(0, len(data) + 1) for _ in range(4))})
        ends = [*cuts[1:], chance.choice([None, len(data) + 5])]
        parts = [read(reader, path, *bounds) for bounds in zip(cuts, ends, strict=True)]

        assert [row for part in parts for row in part.rows] == whole.rows, cuts
        assert sum(len(part.bad) for part in parts) == len(whole.bad), cuts


def test_a_line_break_within_quotes_is_an_error_with_its_line_in_the_file(tmp_path: Path) -> None:
    path = _file(tmp_path, b'id,v\n1,a\n2,"b\nc"\n3,d\n')
    reader = _reader(has_header=True)

    for at in range(1, 15):
        with pytest.raises(CatalogError, match="csv, line 3 has a quote that is not closed"):
            [*read(reader, path, 0, at).rows, *read(reader, path, at).rows]


def test_a_long_record_is_told_with_its_line_in_the_file(tmp_path: Path) -> None:
    path = _file(tmp_path, b"id,v\n1,a\n2," + b"b" * 100 + b"\n3,d\n")
    reader = replace(_reader(has_header=True), max_record_bytes=50)

    for at in range(1, 12):
        with pytest.raises(RecordTooLongError, match="that begins on line 3"):
            [*read(reader, path, 0, at).rows, *read(reader, path, at).rows]


def test_a_part_knows_the_columns_by_the_header_of_the_file(tmp_path: Path) -> None:
    path = _file(tmp_path, b"V,z,ID\na,0,1\nb,0,2\n")

    assert read(_reader(has_header=True), path, 9).rows == [(2, "b")]


def _file(folder: Path, data: bytes) -> Path:
    path = folder / "landed.csv"
    path.write_bytes(data)
    return path


def _reader(has_header: bool) -> CsvReader:
    ddl = "id INT, v STRING" if has_header else "id STRING, v STRING"
    dialect = Dialect(multi_line=False, comment=b"#")
    return CsvReader(Wanted(columns(ddl)), dialect, has_header=has_header)


def _lines(found: Outcome, path: Path, start: int) -> list[tuple[int, str]]:
    """Line in the file and text of each bad record."""
    before = lines_before(LOCAL, FilePart(landed(path), start))
    return [(before + bad.location.line, bad.text) for bad in found.bad]
