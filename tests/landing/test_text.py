"""Text files: each line is a row, as it stands there."""

from __future__ import annotations

import codecs
import pickle
from pathlib import Path

import pytest

from spark_jobs.landing import blocks
from spark_jobs.landing.blocks import RecordTooLongError
from spark_jobs.landing.rows import Wanted
from spark_jobs.landing.streams import UndecodableError
from spark_jobs.landing.text_reader import TextReader
from tests.landing.reading import Outcome, columns, read


@pytest.fixture(params=["whole blocks", "tiny blocks"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "tiny" in request.param:
        monkeypatch.setattr(blocks, "BLOCK_BYTES", 3)


def read_text(
    folder: Path, data: bytes, wanted: Wanted | None = None, **options: object
) -> Outcome:
    path = folder / "landed.txt"
    path.write_bytes(data)
    chosen = wanted or Wanted(columns("value STRING"))
    return read(TextReader(chosen, **options), path)  # type: ignore[arg-type]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_as_on_any_system(tmp_path: Path, end: bytes) -> None:
    found = read_text(tmp_path, end.join([b"a", b"", b" b\t", b"", b"c"]) + end)

    assert found.values == ["a", "", " b\t", "", "c"]


def test_line_ends_may_be_mixed(tmp_path: Path) -> None:
    assert read_text(tmp_path, b"a\r\nb\nc\rd\n\re").values == ["a", "b", "c", "d", "", "e"]


def test_no_other_character_ends_a_line(tmp_path: Path) -> None:
    text = "a\vb\fc\x85d\u2028e\x1cf\0"

    assert read_text(tmp_path, text.encode()).values == [text]


@pytest.mark.parametrize("data", [b"", codecs.BOM_UTF8])
def test_an_empty_file_has_no_lines(tmp_path: Path, data: bytes) -> None:
    assert read_text(tmp_path, data).records == 0


def test_a_byte_order_mark_is_left_out(tmp_path: Path) -> None:
    assert read_text(tmp_path, codecs.BOM_UTF8 + b"a\nb").values == ["a", "b"]


def test_bytes_that_are_not_utf8_are_a_bad_record(tmp_path: Path) -> None:
    found = read_text(tmp_path, b"a\n\xc3\xa9\n\xe9\nb\n\xff\n")

    assert found.values == ["a", "é", "b"]
    assert found.records == 5
    assert [(bad.location, bad.raw) for bad in found.bad] == [((3, 3), b"\xe9"), ((5, 5), b"\xff")]
    assert found.reasons[0][1] == "has bytes that are not UTF-8"


def test_bad_lines_become_null(tmp_path: Path) -> None:
    wanted = Wanted(columns("value STRING"), "null")
    found = read_text(tmp_path, b"a\n\xe9\n", wanted)

    assert (found.values, found.lost_records, found.bad) == (["a", None], 1, [])


def test_other_encodings(tmp_path: Path) -> None:
    assert read_text(tmp_path, "é\nü".encode("utf-16"), encoding="utf-16").values == ["é", "ü"]
    assert read_text(tmp_path, b"\xe9\r\n", encoding="iso-8859-1").values == ["é"]
    with pytest.raises(UndecodableError):
        read_text(tmp_path, b"\xe9\n", encoding="ascii")


def test_a_whole_file_is_a_row(tmp_path: Path) -> None:
    assert read_text(tmp_path, b"a\r\n\nb\n", whole_text=True).values == ["a\r\n\nb\n"]
    assert read_text(tmp_path, b"", whole_text=True).values == [""]


def test_a_line_may_have_as_many_bytes_as_the_source_allows(tmp_path: Path) -> None:
    data = b"a\n" + b"b" * 50 + b"\r\nc\n"
    assert read_text(tmp_path, data, max_record_bytes=50).values == ["a", "b" * 50, "c"]

    with pytest.raises(RecordTooLongError, match="line 2"):
        read_text(tmp_path, data, max_record_bytes=49)


def test_a_file_may_have_as_many_bytes_as_the_source_allows(tmp_path: Path) -> None:
    assert read_text(tmp_path, b"abc", whole_text=True, max_record_bytes=3).values == ["abc"]

    with pytest.raises(RecordTooLongError):
        read_text(tmp_path, b"abcd", whole_text=True, max_record_bytes=3)


@pytest.mark.parametrize("data", [b"a\n\nb\r\n\xc3\xa9c\nd", b"a\rb\rc", b"\n\n", b"abc\n"])
def test_any_two_parts_have_each_line_once(tmp_path: Path, data: bytes) -> None:
    lines = read_text(tmp_path, data).values
    reader, path = TextReader(Wanted(columns("value STRING"))), tmp_path / "landed.txt"

    for cut in range(1, len(data) + 1):
        parts = [read(reader, path, 0, cut), read(reader, path, cut)]
        assert parts[0].values + parts[1].values == lines, cut


def test_only_lines_of_utf8_are_split() -> None:
    wanted = Wanted(columns("value STRING"))

    assert TextReader(wanted).is_splittable
    assert not TextReader(wanted, whole_text=True).is_splittable
    assert not TextReader(wanted, encoding="utf-16").is_splittable


def test_lines_are_counted_where_no_column_is_wanted(tmp_path: Path) -> None:
    assert read_text(tmp_path, b"a\nb\n", Wanted(())).rows == [(), ()]


def test_a_reader_can_be_sent_to_executors(tmp_path: Path) -> None:
    path = tmp_path / "landed.txt"
    path.write_bytes(b"a\n")
    reader = pickle.loads(pickle.dumps(TextReader(Wanted(columns("value STRING")))))

    assert read(reader, path).values == ["a"]
