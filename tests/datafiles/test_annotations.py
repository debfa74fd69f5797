"""Logical types of new files that pyarrow writes otherwise: UUID, and TIME that is not of UTC."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.datafiles.parquet.annotations import ANNOTATION
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.writer import ParquetFileWriter

KINDS = {"uuid": pa.binary(16), "time": pa.time64("us")}
TIME = "Time(isAdjustedToUTC=false, timeUnit=microseconds)"


def field(name: str, number: int, kind: str, *, nullable: bool = True) -> pa.Field:
    metadata = {b"PARQUET:field_id": str(number).encode(), ANNOTATION: kind.encode()}
    return pa.field(name, KINDS[kind], nullable, metadata)


SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), metadata={b"PARQUET:field_id": b"1"}),
        field("u", 2, "uuid"),
        pa.field("s", pa.struct([field("t", 4, "time"), field("u", 5, "uuid")])),
        pa.field("l", pa.list_(field("element", 7, "uuid"))),
        pa.field("m", pa.map_(field("key", 9, "uuid", nullable=False), field("value", 10, "time"))),
        pa.field("plain", pa.binary(16), metadata={b"PARQUET:field_id": b"11"}),
        pa.field("of_utc", pa.time64("us"), metadata={b"PARQUET:field_id": b"12"}),
    ]
)


def test_columns_and_nested_fields_are_annotated(tmp_path: Path) -> None:
    path = tmp_path / "new.parquet"
    keys = [bytes([n]) * 16 for n in range(200)]
    times = [dt.time(n % 24, n % 60, 1, n) for n in range(200)]
    columns = [
        range(200),
        keys,
        [{"t": time, "u": key} for time, key in zip(times, keys, strict=True)],
        [[key, None] for key in keys],
        [[(key, time)] for key, time in zip(keys, times, strict=True)],
        keys,
        times,
    ]
    rows = pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA)
    writer = ParquetFileWriter(pafs.LocalFileSystem(), str(path), SCHEMA, Compression())
    for start in (0, 50, 100):
        writer.write_row_group(rows.slice(start, 50 if start < 100 else 100))
    written = writer.finish()

    assert written.size == path.stat().st_size
    file = pq.ParquetFile(path)
    assert file.metadata.num_row_groups == 3
    assert file.read().to_pylist() == rows.to_pylist()
    leaves = [file.schema.column(i) for i in range(len(file.schema))]
    assert {leaf.path: str(leaf.logical_type) for leaf in leaves} == {
        "id": "None",
        "u": "UUID",
        "s.t": TIME,
        "s.u": "UUID",
        "l.list.element": "UUID",
        "m.key_value.key": "UUID",
        "m.key_value.value": TIME,
        "plain": "None",
        "of_utc": TIME.replace("false", "true"),
    }


def test_a_file_without_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "new.parquet")
    ParquetFileWriter(pafs.LocalFileSystem(), path, SCHEMA, Compression()).finish()

    assert str(pq.ParquetFile(path).schema.column(1).logical_type) == "UUID"
