"""Which columns of a new file have dictionaries: those whose values repeat."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.writer import ParquetFileWriter

COUNT = 10_000


def dictionaries(path: Path, rows: pa.Table) -> dict[str, bool]:
    writer = ParquetFileWriter(pafs.LocalFileSystem(), str(path), rows.schema, Compression())
    writer.write_row_group(rows)
    writer.finish()
    assert pq.read_table(path).equals(rows)
    group = pq.ParquetFile(path).metadata.row_group(0)
    chunks = [group.column(index) for index in range(group.num_columns)]
    return {chunk.path_in_schema: chunk.has_dictionary_page for chunk in chunks}


def test_only_values_that_repeat_get_a_dictionary(tmp_path: Path) -> None:
    numbers = range(COUNT)
    rows = pa.table(
        {
            "unique": [f"text {n}" for n in numbers],
            "some": [n % 1000 for n in numbers],
            "nothing": pa.nulls(COUNT, pa.int32()),
            "s": [{"x": n, "m": [(n, "v")], "l": [n]} for n in numbers],
        },
        schema=pa.schema(
            {
                "unique": pa.string(),
                "some": pa.int64(),
                "nothing": pa.int32(),
                "s": pa.struct(
                    {
                        "x": pa.int64(),
                        "m": pa.map_(pa.int64(), pa.string()),
                        "l": pa.list_(pa.field("element", pa.int64())),
                    }
                ),
            }
        ),
    )
    found = dictionaries(tmp_path / "new.parquet", rows)
    assert not found.pop("unique")
    assert found.keys() == {
        *("some", "nothing", "s.x"),
        *("s.m.key_value.key", "s.m.key_value.value", "s.l.list.element"),
    }
    assert all(found.values())


def test_a_small_file_is_like_one_of_java(tmp_path: Path) -> None:
    rows = pa.table({"unique": list(range(100))})
    assert dictionaries(tmp_path / "new.parquet", rows) == {"unique": True}


def test_a_file_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "new.parquet"
    schema = pa.schema({"id": pa.int64()})
    assert ParquetFileWriter(pafs.LocalFileSystem(), str(path), schema, Compression()).finish()
    assert pq.read_table(path).num_rows == 0
