"""Pages that pyarrow cannot decode, although the file is whole: the error names them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError

LOCAL = pafs.LocalFileSystem()
FAR_APART = (
    "SELECT CASE range % 2 WHEN 0 THEN 2147483647 ELSE -2147483648 END::INT AS v FROM range(99)"
)


def read(path: Path) -> None:
    scan = FileScan(LOCAL, [pa.field("v", pa.int32())], {})
    with reading_file(str(path), LOCAL):
        list(scan.rows(str(path), np.zeros(0, np.int64)))


def test_differences_of_duckdb(tmp_path: Path) -> None:
    path = tmp_path / "far-apart.parquet"
    duckdb.sql(f"COPY ({FAR_APART}) TO '{path}' (PARQUET_VERSION V2, DICTIONARY_SIZE_LIMIT 1)")

    with pytest.raises(NotSupportedError) as raised:
        read(path)

    assert str(path) in raised.value.message
    assert "DELTA_BINARY_PACKED pages of DuckDB" in raised.value.message
    assert " in v, which" in raised.value.message


def test_damage_to_such_pages_of_another_writer(tmp_path: Path) -> None:
    path = tmp_path / "damaged.parquet"
    pq.write_table(
        pa.table({"v": pa.array(range(1000), pa.int32())}),
        path,
        use_dictionary=False,
        column_encoding={"v": "DELTA_BINARY_PACKED"},
        compression="none",
    )
    content = bytearray(path.read_bytes())
    content[40:60] = b"\xff" * 20
    path.write_bytes(content)

    with pytest.raises(CatalogError) as raised:
        read(path)

    assert raised.value.code is ErrorCode.DATA_FILE_UNREADABLE
