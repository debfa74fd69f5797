"""Files of all formats and schemas are put together; those that are damaged are refused."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from spark_jobs.datafiles.concatenate import InputFile, concatenate
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.rolling_writer import NewFiles
from spark_jobs.errors import CatalogError, DataError, ErrorCode, NotSupportedError
from tests.datafiles import avro_files
from tests.datafiles.files_to_concatenate import (
    LARGE,
    LOCAL,
    SCHEMA,
    TINY,
    at,
    nothing,
    put_together,
    rows_of,
    stored,
    without,
)


def test_timestamps_of_another_unit(tmp_path: Path) -> None:
    rows = rows_of(0, 10)
    finer = rows.set_column(3, "at", rows.column("at").cast(pa.timestamp("ns")))
    source = stored(tmp_path / "a.parquet", finer, coerce_timestamps="ms")

    put_together(tmp_path / "new.parquet", [source])

    assert pq.read_table(tmp_path / "new.parquet").equals(rows)


def test_files_of_all_formats_and_schemas_in_their_order(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("text", pa.string()), ("new", pa.int32())])
    old = pa.schema([("id", pa.int32()), ("name", pa.string())])
    mappings = [
        FieldMapping(schema.field("id"), old.field("id")),
        FieldMapping(schema.field("text"), old.field("name")),
        FieldMapping(schema.field("new"), None),
    ]

    def rows(start: int) -> pa.Table:
        numbers = range(start, start + 10)
        return pa.table({"id": list(numbers), "name": [f"{n}" for n in numbers]}, schema=old)

    orc.write_table(rows(0), tmp_path / "a.orc", stripe_size=1)
    pq.write_table(rows(10), tmp_path / "b.parquet", row_group_size=4)
    types = {"id": ["null", "int"], "name": ["null", "string"]}
    avro_files.write(tmp_path / "c.avro", types, rows(20).to_pylist(), block_bytes=16)
    current = pa.table({"id": range(30, 40), "text": list("abcdefghij"), "new": range(10)})
    pq.write_table(current.cast(schema), tmp_path / "d.parquet", store_schema=False)
    removed = np.array([0, 9], np.int64)
    names = ("a.orc", "b.parquet", "c.avro")
    inputs = [InputFile(str(tmp_path / name), 10, removed, mappings) for name in names]

    inputs.append(InputFile(str(tmp_path / "d.parquet"), 10, removed))
    written = put_together(tmp_path / "new.parquet", inputs, schema=schema)

    found = pq.read_table(tmp_path / "new.parquet").to_pydict()
    assert found["id"] == [n for n in range(40) if n % 10 not in (0, 9)]
    assert found["text"] == [str(n) for n in found["id"][:24]] + list("bcdefghi")
    assert found["new"] == [None] * 24 + list(range(1, 9))
    assert written.statistics["new"].to_json() == [1, 8, 24]


@pytest.mark.parametrize("name", ["a.orc", "a.avro", "a.parquet"])
def test_a_file_without_any_column_of_the_table(tmp_path: Path, name: str) -> None:
    schema = pa.schema([("new", pa.int32())])
    rows = pa.table({"gone": pa.array(range(10), pa.int32())})
    if name.endswith("orc"):
        orc.write_table(rows, tmp_path / name)
    elif name.endswith("avro"):
        avro_files.write(tmp_path / name, {"gone": "int"}, rows.to_pylist())
    else:
        pq.write_table(rows, tmp_path / name)
    source = InputFile(str(tmp_path / name), 10, np.array([3]), [FieldMapping(schema[0], None)])

    written = put_together(tmp_path / "new.parquet", [source], schema=schema)

    assert written.statistics["new"].to_json() == [None, None, 9]


def test_int96_timestamps_of_any_year(tmp_path: Path) -> None:
    schema = pa.schema([("at", pa.timestamp("us")), ("text", pa.string())])
    times = [at("0001-01-01"), None, at("1969-12-31T23:59:59.999999")]
    rows = pa.table({"at": times, "text": list("abc")}, schema=schema)
    late = pa.table({"at": [at("2262-01-01")], "text": ["d"]}, schema=schema)
    first = stored(tmp_path / "a.parquet", rows.slice(1), use_deprecated_int96_timestamps=True)
    second = stored(tmp_path / "b.parquet", late, use_deprecated_int96_timestamps=True)
    third = stored(tmp_path / "c.parquet", rows.slice(0, 1))

    written = put_together(tmp_path / "new.parquet", [first, second, third], TINY, schema)

    assert pq.read_table(tmp_path / "new.parquet").column("at").to_pylist() == [
        *times[1:],
        at("2262-01-01"),
        times[0],
    ]
    leaf = pq.ParquetFile(tmp_path / "new.parquet").schema.column(0)
    assert (leaf.physical_type, written.statistics["at"].minimum) == ("INT64", times[0])


def test_int96_timestamps_in_nested_values_are_refused(tmp_path: Path) -> None:
    schema = pa.schema([("s", pa.struct([("at", pa.timestamp("us"))]))])
    rows = pa.table({"s": [{"at": at("2024-01-01")}]}, schema=schema)
    source = stored(tmp_path / "a.parquet", rows, use_deprecated_int96_timestamps=True)
    files = NewFiles(LOCAL, schema, LARGE, Compression())

    with pytest.raises(NotSupportedError, match=rf"s\.at of data file {re.escape(source.path)}"):
        concatenate(LOCAL, [source], str(tmp_path / "new.parquet"), files)


def test_nulls_in_a_column_that_must_not_have_any_more(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("text", pa.string(), nullable=False)])
    rows = pa.table({"text": ["a", None]})
    source = stored(tmp_path / "a.parquet", rows)
    source = InputFile(
        source.path, 2, nothing(), [FieldMapping(schema.field(0), rows.schema.field(0))]
    )
    files = NewFiles(LOCAL, schema, LARGE, Compression())

    with pytest.raises(DataError, match=r"Column text .* holds 1 NULLs") as raised:
        concatenate(LOCAL, [source], str(tmp_path / "new.parquet"), files)

    assert raised.value.code is ErrorCode.NOT_NULL_VIOLATION
    put_together(tmp_path / "new.parquet", [without(source, 1)], schema=schema)


@pytest.mark.parametrize("counted", [9, 11])
@pytest.mark.parametrize("name", ["a.parquet", "a.orc", "a.avro"])
def test_another_row_count(tmp_path: Path, name: str, counted: int) -> None:
    schema = pa.schema([("id", pa.int64())])
    rows = pa.table({"id": range(10)}, schema=schema)
    if name.endswith("orc"):
        orc.write_table(rows, tmp_path / name)
    elif name.endswith("avro"):
        avro_files.write(tmp_path / name, {"id": ["null", "long"]}, rows.to_pylist())
    else:
        pq.write_table(rows, tmp_path / name)
    mappings = [FieldMapping(schema[0], schema[0])]
    require_unreadable(
        tmp_path, InputFile(str(tmp_path / name), counted, nothing(), mappings), "10 rows", schema
    )


def test_a_vector_beyond_the_end(tmp_path: Path) -> None:
    source = stored(tmp_path / "a.parquet", rows_of(0, 10))

    require_unreadable(tmp_path, without(source, 3, 10), "has 10 rows, but rows 3 to 10")


@pytest.mark.parametrize("size", [TINY, LARGE])
@pytest.mark.parametrize("harm", ["missing", "cut", "header", "value"])
def test_damage(tmp_path: Path, harm: str, size: int) -> None:
    path = tmp_path / "a.parquet"
    source = stored(path, rows_of(0, 1000), compression="none", write_page_checksum=True)
    content = bytearray(path.read_bytes())
    if harm == "cut":
        del content[-100:]
    elif harm == "header":
        content[4:8] = b"\xff\xff\xff\xff"
    else:
        content[2000] ^= 1
    path.write_bytes(content)
    if harm == "missing":
        path.unlink()

    require_unreadable(tmp_path, source, str(path), size=size)


def test_a_column_is_missing(tmp_path: Path) -> None:
    source = stored(tmp_path / "a.parquet", rows_of(0, 10).drop_columns(["price"]))

    with pytest.raises(NotSupportedError, match=r"a\.parquet has no column price"):
        put_together(tmp_path / "new.parquet", [source])


def require_unreadable(
    folder: Path,
    source: InputFile,
    message: str,
    schema: pa.Schema = SCHEMA,
    size: int = LARGE,
) -> None:
    files = NewFiles(LOCAL, schema, size, Compression())
    with pytest.raises(CatalogError, match=re.escape(message)) as raised:
        concatenate(LOCAL, [source], str(folder / "new.parquet"), files)
    assert raised.value.code is ErrorCode.DATA_FILE_UNREADABLE
    assert source.path in raised.value.message
