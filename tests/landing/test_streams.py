"""Compressed files: whole, in several members, cut off and damaged."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from spark_jobs.errors import NotSupportedError
from spark_jobs.landing.streams import codec_of, opened
from tests.landing.conftest import ReadCsv
from tests.landing.reading import LOCAL

DDL = "id INT, v STRING"
DATA = b"id,v\n" + b"".join(b"%d,text %d\n" % (i, i * 7919) for i in range(40))
ROWS = [(i, f"text {i * 7919}") for i in range(40)]


def zstd(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return packed


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": zstd,
}
packed = pytest.mark.parametrize("ending", PACKERS)


@packed
def test_a_compressed_file_is_read(read_csv: ReadCsv, ending: str) -> None:
    assert read_csv(PACKERS[ending](DATA), DDL, name=f"landed.csv{ending}").rows == ROWS


def test_the_ending_is_told_in_any_case(read_csv: ReadCsv) -> None:
    assert read_csv(gzip.compress(DATA), DDL, name="LANDED.CSV.GZ").rows == ROWS


@packed
def test_all_members_of_a_compressed_file_are_read(read_csv: ReadCsv, ending: str) -> None:
    pack = PACKERS[ending]
    # The second member begins within a line.
    data = pack(DATA[:100]) + pack(DATA[100:]) + pack(b"")

    assert read_csv(data, DDL, name=f"landed.csv{ending}").rows == ROWS


@packed
def test_a_compressed_file_that_is_cut_off_anywhere_is_an_error(
    tmp_path: Path, ending: str
) -> None:
    whole = PACKERS[ending](DATA)
    path = tmp_path / f"landed.csv{ending}"
    for size in range(len(whole)):
        path.write_bytes(whole[:size])

        with pytest.raises(OSError, match=r"Truncated|empty"):
            _read(path)


@packed
def test_bytes_behind_a_compressed_file_are_an_error(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"landed.csv{ending}"
    path.write_bytes(PACKERS[ending](DATA) + b"garbage")

    with pytest.raises(OSError, match="failed"):
        _read(path)


@packed
def test_a_file_that_is_not_compressed_as_its_name_says_is_an_error(
    tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"landed.csv{ending}"
    path.write_bytes(DATA)

    with pytest.raises(OSError, match="failed"):
        _read(path)


def test_a_damaged_check_sum_is_an_error(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(DATA))
    whole[-8] ^= 1
    path = tmp_path / "landed.csv.gz"
    path.write_bytes(whole)

    with pytest.raises(OSError, match="incorrect data check"):
        _read(path)


@pytest.mark.parametrize("ending", [".deflate", ".lz4", ".lzo", ".snappy", ".zip", ".ZIP"])
def test_other_codecs_are_refused_by_name(ending: str) -> None:
    with pytest.raises(NotSupportedError, match=ending.lower()):
        codec_of(f"landed.csv{ending}")


def test_a_compressed_file_has_no_parts(tmp_path: Path) -> None:
    path = tmp_path / "landed.csv.gz"
    path.write_bytes(gzip.compress(DATA))

    with pytest.raises(ValueError, match="no parts"), opened(LOCAL, str(path), "utf-8", 10):
        pass


def _read(path: Path) -> bytes:
    found = b""
    with opened(LOCAL, str(path), "utf-8") as stream:
        while data := stream.read(16):
            found += data
    return found
