"""Files to be put together, and what is in them afterwards."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.datafiles.concatenate import InputFile, concatenate
from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet import thrift
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.rolling_writer import NewFiles
from tests.datafiles.parquet_files import require_consistent

LOCAL = pafs.LocalFileSystem()
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("text", pa.string()),
        ("price", pa.decimal128(9, 2)),
        ("at", pa.timestamp("us")),
        ("ratio", pa.float64()),
        ("list", pa.list_(pa.field("element", pa.int32()))),
    ]
)
# So small that every row group is large.
TINY = 1
LARGE = 2**28
# As Java's writers do it, as far as pyarrow can.
AS_JAVA: dict[str, Any] = {"store_decimal_as_integer": True, "store_schema": False}


def at(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


def rows_of(start: int, count: int) -> pa.Table:
    numbers = range(start, start + count)
    values = {
        "id": list(numbers),
        "text": [None if n % 7 == 0 else f"text {n % 5}" for n in numbers],
        "price": pa.array(numbers, pa.int32())
        .cast(pa.decimal128(12, 2))
        .cast(SCHEMA.field(2).type),
        "at": [at("2024-01-01") + dt.timedelta(seconds=n) for n in numbers],
        "ratio": [n / 3 for n in numbers],
        "list": [None if n % 4 == 0 else [n, None] for n in numbers],
    }
    return pa.table(values, schema=SCHEMA)


def stored(path: Path, rows: pa.Table, group: int | None = None, **arguments: Any) -> InputFile:
    pq.write_table(rows, path, group, **{**AS_JAVA, **arguments})
    return InputFile(str(path), rows.num_rows, nothing())


def nothing() -> Any:
    return np.empty(0, np.int64)


def without(file: InputFile, *positions: int) -> InputFile:
    return InputFile(file.path, file.row_count, np.array(positions, np.int64), file.mappings)


def put_together(
    target: Path, inputs: Sequence[InputFile], size: int = LARGE, schema: pa.Schema = SCHEMA
) -> WrittenFile:
    files = NewFiles(LOCAL, schema, size, Compression())
    written = concatenate(LOCAL, inputs, str(target), files)
    assert written is not None
    require_consistent(target)
    return written


def groups(path: Path | str) -> list[int]:
    metadata = pq.ParquetFile(path).metadata
    return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]


def chunks(path: Path | str) -> list[list[bytes]]:
    """The bytes of each column chunk, by row group."""
    content = Path(path).read_bytes()
    with LOCAL.open_input_file(str(path)) as file:
        found = footers.read_footer(file)
    return [
        [
            content[slice(*footers.chunk_range(footers.meta_of(chunk)))]
            for chunk in footers.chunks_of(group)
        ]
        for group in found.row_groups
    ]


def with_footer(path: Path, change: Any) -> None:
    """Change the footer of a file in place."""
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    fields, _ = thrift.parse(content[-8 - length : -8])
    change(fields)
    path.write_bytes(content[: -8 - length] + footers.framed(fields))
