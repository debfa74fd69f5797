"""New rows roll into files of a target size, place by place."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.rolling_writer import NewFiles, RollingWriter

SCHEMA = pa.schema([("id", pa.int64())])


def table(start: int, count: int) -> pa.Table:
    return pa.table({"id": range(start, start + count)}, schema=SCHEMA)


def writer_in(folder: Path, target_file_size: int) -> RollingWriter[str, WrittenFile]:
    files = NewFiles(pafs.LocalFileSystem(), SCHEMA, target_file_size, Compression("none", None))
    made: list[str] = []

    def new_path(place: str) -> str:
        made.append(place)
        return f"{folder}/{place}/{len(made)}.parquet"

    return RollingWriter(files, lambda place: files.open(new_path(place)))


def test_rows_of_a_place_share_a_file_whatever_their_batches(tmp_path: Path) -> None:
    writer = writer_in(tmp_path, 2**30)
    writer.write("a", table(0, 2))
    writer.write("a", table(2, 3))

    ((place, written),) = writer.finish()

    assert (place, written.rows, written.path) == ("a", 5, f"{tmp_path}/a/1.parquet")
    assert pq.read_table(written.path)["id"].to_pylist() == [0, 1, 2, 3, 4]
    assert written.size == Path(written.path).stat().st_size
    assert (written.statistics["id"].minimum, written.statistics["id"].maximum) == (0, 4)


def test_another_place_is_another_file(tmp_path: Path) -> None:
    writer = writer_in(tmp_path, 2**30)
    for place, start in (("a", 0), ("b", 1), ("a", 2)):
        writer.write(place, table(start, 1))

    found = [(place, pq.read_table(each.path)["id"].to_pylist()) for place, each in writer.finish()]

    assert found == [("a", [0]), ("b", [1]), ("a", [2])]


def test_a_file_that_has_reached_the_target_size_is_the_last_of_its_rows(tmp_path: Path) -> None:
    writer = writer_in(tmp_path, 8_000)
    for start in range(0, 3_000, 1_000):
        writer.write("a", table(start, 1_000))

    written = [each for _, each in writer.finish()]

    assert [each.rows for each in written] == [1_000, 1_000, 1_000]
    assert all(each.size >= 8_000 for each in written)


def test_row_groups_are_as_large_as_small_files_are_meant_to_be(tmp_path: Path) -> None:
    writer = writer_in(tmp_path, 2**30)
    writer.write("a", table(0, 1_000))
    writer.write("a", table(1_000, 1_000))

    ((_, written),) = writer.finish()

    assert pq.ParquetFile(written.path).num_row_groups == 1


def test_nothing_is_written_of_no_rows(tmp_path: Path) -> None:
    assert writer_in(tmp_path, 2**30).finish() == []
    assert list(tmp_path.iterdir()) == []
