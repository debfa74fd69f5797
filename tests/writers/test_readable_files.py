"""Which columns of a file Spark's reader does not read by value."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.spark_reads.readable_files import columns_not_for_spark

NUMBERS = pa.array([1, None, 3], pa.int64())
PLAIN = {"use_dictionary": False}
SPLIT = {**PLAIN, "column_encoding": {"v": "BYTE_STREAM_SPLIT"}}


def not_for_spark(values: pa.Array, wanted: pa.DataType | None = None, **options: Any) -> bool:
    """Whether a column of a file is, behind a nested one and before another."""
    held = pa.table({"first": pa.array([{"x": 1, "y": ["a"]}] * 3), "v": values, "w": [1, 2, 3]})
    sink = io.BytesIO()
    pq.write_table(held, sink, store_schema=False, **options)
    kinds = {"first": held.schema.field("first").type, "v": wanted or values.type}
    found = columns_not_for_spark(pq.read_metadata(io.BytesIO(sink.getvalue())), kinds)
    assert found <= {"v", "first"}
    return "v" in found


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "lz4", "zstd"])
def test_codecs_of_spark(codec: str) -> None:
    assert not not_for_spark(NUMBERS, compression=codec)


def test_brotli() -> None:
    assert not_for_spark(NUMBERS, compression="brotli")


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages(version: str) -> None:
    delta = {**PLAIN, "column_encoding": {"v": "DELTA_BINARY_PACKED"}}
    assert not not_for_spark(NUMBERS, data_page_version=version, **delta)
    assert not_for_spark(NUMBERS, data_page_version=version, **SPLIT)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (pa.array([1, 2, 3], pa.int8()), pa.int32()),
        (pa.array([1, 2, 3], pa.timestamp("ms")), pa.timestamp("us")),
        (pa.array([1, 2, 3], pa.timestamp("us", "UTC")), pa.timestamp("us", "UTC")),
        (pa.array([1, 2, 3]).cast(pa.decimal128(19, 0)), pa.decimal128(30, 0)),
    ],
)
def test_types_that_spark_reads_by_value(values: pa.Array, wanted: pa.DataType) -> None:
    assert not not_for_spark(values, wanted)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (pa.array([1, 2, 3], pa.uint8()), pa.int32()),
        (pa.array([1, 2, 3], pa.uint64()), pa.int64()),
        (pa.array([b"a", b"\xff", None]), pa.string()),
        (pa.array([b"a", b"b", None], pa.binary(1)), pa.binary()),
        (pa.array([1000, 2000, 3000], pa.timestamp("ns")), pa.timestamp("us")),
        (pa.array([1, 2, 3], pa.timestamp("us")), pa.timestamp("us", "UTC")),
        (pa.array([[b"a"], None, []]), pa.list_(pa.string())),
        (pa.array([{"x": b"a"}, None, None]), pa.struct([("x", pa.string())])),
    ],
)
def test_types_that_spark_does_not_read_by_value(values: pa.Array, wanted: pa.DataType) -> None:
    assert not_for_spark(values, wanted)


def test_int96() -> None:
    times = pa.array([1, 2, 3], pa.timestamp("us"))
    assert not not_for_spark(times, use_deprecated_int96_timestamps=True)
