"""Logical types of new files that pyarrow writes otherwise: UUID, and TIME that is not of UTC."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_changes import FileChanges
from spark_jobs.datafiles.parquet.annotations import ANNOTATION
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.rewrite import rewrite, rewrite_whole
from spark_jobs.datafiles.parquet.writer import ParquetFileWriter, WrittenFile

KINDS = {"uuid": pa.binary(16), "time": pa.time64("us")}
FILES = pafs.LocalFileSystem()
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


def rows_of(count: int) -> pa.Table:
    keys = [random.Random(n).randbytes(16) for n in range(count)]
    times = [dt.time(n % 24, n % 60, 1, n) for n in range(count)]
    columns = [
        range(count),
        keys,
        [{"t": time, "u": key} for time, key in zip(times, keys, strict=True)],
        [[key, None] for key in keys],
        [[(key, time)] for key, time in zip(keys, times, strict=True)],
        keys,
        times,
    ]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def written(path: Path, *groups: pa.Table) -> WrittenFile:
    writer = ParquetFileWriter(FILES, str(path), SCHEMA, Compression())
    for group in groups:
        writer.write_row_group(group)
    return writer.finish()


def annotations(path: Path) -> dict[str, str]:
    schema = pq.ParquetFile(path).schema
    leaves = [schema.column(i) for i in range(len(schema))]
    return {leaf.path: str(leaf.logical_type) for leaf in leaves}


def test_columns_and_nested_fields_are_annotated(tmp_path: Path) -> None:
    path, rows = tmp_path / "new.parquet", rows_of(200)

    found = written(path, rows.slice(0, 50), rows.slice(50, 50), rows.slice(100))

    assert found.size == path.stat().st_size
    file = pq.ParquetFile(path)
    assert file.metadata.num_row_groups == 3
    assert file.read().equals(rows)
    assert annotations(path) == {
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


@pytest.mark.parametrize("way", [rewrite, rewrite_whole])
def test_a_rewritten_file_has_the_same(tmp_path: Path, way: Callable[..., WrittenFile]) -> None:
    # So many that dictionaries are given up.
    source, target, rows = tmp_path / "old.parquet", tmp_path / "new.parquet", rows_of(9000)
    written(source, rows.slice(0, 6000), rows.slice(6000))
    gone = np.arange(0, 9000, 3)
    changes = FileChanges(gone, np.ones(len(gone), bool), {})

    way(
        FILES,
        str(source),
        str(target),
        changes,
        Compression(),
        [FieldMapping(f, f) for f in SCHEMA],
    )

    assert pq.read_table(target).equals(rows.take(np.setdiff1d(np.arange(9000), gone)))
    assert annotations(target) == annotations(source)


def test_a_file_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "new.parquet"
    written(path)

    assert annotations(path)["u"] == "UUID"
