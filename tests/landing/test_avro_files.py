"""Avro files: codecs, damage, and blocks of records."""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys
import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError
from spark_jobs.landing import avro_reader
from spark_jobs.landing.avro_reader import AvroReader
from spark_jobs.landing.files import FilePart
from spark_jobs.landing.records import Column
from spark_jobs.landing.rows import Wanted
from tests.landing.avro_writing import (
    INNER,
    NESTED,
    read_avro,
    record,
    write,
    write_as,
)
from tests.landing.reading import LOCAL, columns, landed, read


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz", "zstandard"])
def test_codecs(tmp_path: Path, codec: str) -> None:
    rows = [{"id": i, "s": "x" * 50} for i in range(3000)]
    path = write(tmp_path, record(id="int", s="string"), rows, codec, sync_interval=5000)

    assert [row[0] for row in read_avro(path, "id INT").rows] == list(range(3000))


def test_snappy(tmp_path: Path) -> None:
    path = write_as(tmp_path, record(id="int"), record(id="int"), [{"id": 7}], is_snappy=True)
    assert read_avro(path, "id INT").values == [7]

    data = bytearray(path.read_bytes())
    data[-17] ^= 1  # of the checksum
    path.write_bytes(data)
    with pytest.raises(CatalogError, match="cannot be decompressed"):
        read_avro(path, "id INT")


def test_an_unknown_codec(tmp_path: Path) -> None:
    path = write(tmp_path, record(id="int"), [])
    path.write_bytes(path.read_bytes().replace(b"\x08null", b"\x08lz77"))

    with pytest.raises(NotSupportedError, match="lz77"):
        read_avro(path, "id INT")


def test_a_file_that_is_cut_off_anywhere_has_no_other_rows(tmp_path: Path) -> None:
    rows = [{"id": i, "s": "x"} for i in range(200)]
    path = write(tmp_path, record(id="int", s="string"), rows, sync_interval=100)
    data = path.read_bytes()
    whole = 0

    for end in range(len(data)):
        path.write_bytes(data[:end])
        try:
            found = [row[0] for row in read_avro(path, "id INT").rows]
        except CatalogError:
            continue
        # Between blocks a file may end.
        whole += 1
        assert found == list(range(len(found)))
    assert whole < 20


@pytest.mark.parametrize("seed", range(100))
def test_damage_is_an_error_of_the_file(tmp_path: Path, seed: int) -> None:
    rows = [{"v": INNER, "again": None}] * 20
    path = write(tmp_path, NESTED, rows, "deflate" if seed % 2 else "null", sync_interval=100)
    data = bytearray(path.read_bytes())
    place = zlib.crc32(b"%d" % seed) % len(data)
    data[place] ^= 1 << seed % 8
    path.write_bytes(data)

    records = 20
    with contextlib.suppress(CatalogError, NotSupportedError):
        found = read_avro(path, (Column("v", pa.struct([("day", pa.date32())]), "X"),))
        records = found.records

    assert records == 20


@pytest.mark.parametrize("data", [b"", b"Obj", b"PAR1" * 10, b"Obj\x01" + b"\xff" * 40])
def test_what_is_no_avro_file(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "landed.avro"
    path.write_bytes(data)

    with pytest.raises(CatalogError) as error:
        read_avro(path, "id INT")
    assert error.value.code is ErrorCode.SOURCE_UNREADABLE
    assert error.value.message.startswith("landed.avro cannot be read as Avro: ")


def test_a_file_of_other_values_than_records(tmp_path: Path) -> None:
    path = write(tmp_path, "string", ["x"])  # type: ignore[list-item]

    with pytest.raises(NotSupportedError, match="string"):
        read_avro(path, "id INT")


def test_blocks_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_reader, "_CHUNK_RECORDS", 3)
    path = write(tmp_path, record(id="long"), [{"id": i * 2**31} for i in range(7)])
    reader = AvroReader(Wanted(columns("id INT")))

    found = list(reader.read(LOCAL, FilePart(landed(path))))

    assert [block.records for block in found] == [3, 3, 1]
    numbers = [bad.location.record for block in found for bad in block.bad]
    assert numbers == [2, 3, 4, 5, 6, 7]


def test_bad_values_become_null(tmp_path: Path) -> None:
    path = write(tmp_path, record(id="long"), [{"id": 1}, {"id": 2**40}])
    found = read_avro(path, "id INT", leniency="null")

    assert (found.values, found.lost_values, found.bad) == ([1, None], 1, [])


def test_a_reader_can_be_sent_to_executors(tmp_path: Path) -> None:
    path = write(tmp_path, record(id="int"), [{"id": 1}])
    reader = pickle.loads(pickle.dumps(AvroReader(Wanted(columns("id INT")))))

    assert not reader.is_splittable
    assert read(reader, path).values == [1]


def test_without_fastavro_the_error_says_what_to_install(tmp_path: Path) -> None:
    path = write(tmp_path, record(id="int"), [{"id": 1}])
    program = (
        "import sys; sys.modules['fastavro'] = None\n"
        "from pathlib import Path\n"
        "from spark_jobs.landing.avro_reader import AvroReader\n"
        "from spark_jobs.landing.rows import Wanted\n"
        "from tests.landing.reading import columns, read\n"
        f"read(AvroReader(Wanted(columns('id INT'))), Path({str(path)!r}))\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert "LIBRARY_MISSING" in done.stderr
    assert "pip install fastavro" in done.stderr
