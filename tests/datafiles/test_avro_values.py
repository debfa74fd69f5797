"""Values of Avro files are those of the recorded types; any other file is refused."""

from __future__ import annotations

import io
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from tests.datafiles.avro_files import decimal, long, record, refused, scan, write

EDGES: dict[str, tuple[pa.DataType, Any, list[Any]]] = {
    "boolean": (pa.bool_(), "boolean", [True, False]),
    "tinyint": (pa.int8(), "int", [-128, 127]),
    "smallint": (pa.int16(), "int", [-(2**15), 2**15 - 1]),
    "int": (pa.int32(), "int", [-(2**31), 2**31 - 1]),
    "bigint": (pa.int64(), "long", [-(2**63), 2**63 - 1]),
    "float": (pa.float32(), "float", [-0.0, math.inf, 1.401298464324817e-45]),
    "double": (pa.float64(), "double", [-0.0, -math.inf, 5e-324, 1.7976931348623157e308]),
    "decimal": (
        pa.decimal128(38, 38),
        decimal(38, 38),
        [Decimal(f"{sign}0.{'9' * 38}") for sign in ("", "-")] + [Decimal("0E-38")],
    ),
    "whole decimal": (pa.decimal128(38, 0), decimal(38, 0), [Decimal(10**38 - 1), Decimal(-1)]),
    "string": (pa.string(), "string", ["", "中\0é", "a" * 70_000]),
    "bytes": (pa.binary(), "bytes", [b"", b"\xff\0"]),
    "date": (
        pa.date32(),
        {"type": "int", "logicalType": "date"},
        [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)],
    ),
    "timestamp": (
        pa.timestamp("us"),
        long("local-timestamp-micros"),
        [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)],  # noqa: DTZ001
    ),
    "instant": (
        pa.timestamp("ms", "UTC"),
        long("timestamp-millis"),
        [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999000, UTC)],
    ),
    "array": (
        pa.list_(pa.list_(pa.int8())),
        {"type": "array", "items": ["null", {"type": "array", "items": ["null", "int"]}]},
        [[], [None, [], [1, None]]],
    ),
    "record": (
        pa.struct([("b", pa.decimal128(3, 1)), ("a", pa.struct([("é", pa.string())]))]),
        record(
            "r_v",
            a=["null", record("r_v_a", é=["null", "string"])],
            b=["null", decimal(3, 1)],
        ),
        [{"b": None, "a": None}, {"b": Decimal("-9.9"), "a": {"é": None}}],
    ),
}


@pytest.mark.parametrize("null_first", [True, False])
@pytest.mark.parametrize("name", EDGES)
def test_values(tmp_path: Path, name: str, null_first: bool) -> None:
    kind, stored, values = EDGES[name]
    union = ["null", stored] if null_first else [stored, "null"]
    rows = [{"v": value} for value in [None, *values]]
    path = write(tmp_path / "a.avro", {"v": union}, rows)

    found = scan(path, [pa.field("v", kind)], len(rows))

    expected = pa.array([None, *values], kind).to_pylist()
    assert repr([each["v"] for each in found]) == repr(expected)  # 0.0 is not -0.0.


def test_nan(tmp_path: Path) -> None:
    path = write(tmp_path / "a.avro", {"v": "double"}, [{"v": math.nan}])
    assert math.isnan(scan(path, [pa.field("v", pa.float64())])[0]["v"])


def test_maps_with_keys_that_are_texts(tmp_path: Path) -> None:
    stored = {"type": "map", "values": ["null", {"type": "int", "logicalType": "date"}]}
    rows = [{"v": {}}, {"v": {"": None, "k": date(2000, 1, 1)}}, {"v": None}]
    path = write(tmp_path / "a.avro", {"v": ["null", stored]}, rows)
    found = scan(path, [pa.field("v", pa.map_(pa.string(), pa.date32()))])
    assert found == [{"v": []}, {"v": [("", None), ("k", date(2000, 1, 1))]}, {"v": None}]


def test_maps_with_other_keys_are_arrays_of_records(tmp_path: Path) -> None:
    entries = {"type": "array", "items": record("r_v", key="int", value=["null", "string"])}
    rows = [{"v": [{"key": 2, "value": None}, {"key": 1, "value": "x"}]}, {"v": []}, {"v": None}]
    path = write(tmp_path / "a.avro", {"v": ["null", entries]}, rows)
    found = scan(path, [pa.field("v", pa.map_(pa.int32(), pa.string()))])
    assert found == [{"v": [(2, None), (1, "x")]}, {"v": []}, {"v": None}]


def test_a_record_that_is_named_twice(tmp_path: Path) -> None:
    types = {"a": record("x", é="int"), "b": ["null", "x"]}
    path = write(tmp_path / "a.avro", types, [{"a": {"é": 1}, "b": {"é": 2}}])
    kind = pa.struct([("é", pa.int32())])
    found = scan(path, [pa.field("a", kind), pa.field("b", kind)])
    assert found == [{"a": {"é": 1}, "b": {"é": 2}}]


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"])
def test_codecs(tmp_path: Path, codec: str) -> None:
    rows = [{"v": i} for i in range(1_000)]
    path = write(tmp_path / "a.avro", {"v": "long"}, rows, codec, 500)
    assert scan(path, [pa.field("v", pa.int64())], 1_000) == rows


def test_no_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.avro", {"v": "long"}, [])
    assert scan(path, [pa.field("v", pa.int64())], 0) == []


OTHERWISE: dict[str, tuple[Any, Any, pa.DataType]] = {
    "a longer number": ("long", 1, pa.int32()),
    "a shorter number": ("int", 1, pa.int64()),
    "a number that does not fit": ("int", 128, pa.int8()),
    "a date for a number": ({"type": "int", "logicalType": "date"}, date(2000, 1, 1), pa.int32()),
    "bytes for a text": ("bytes", b"x", pa.string()),
    "a decimal of another scale": (decimal(9, 3), Decimal(1), pa.decimal128(9, 2)),
    "a decimal with more digits": (decimal(4, 0), Decimal(9999), pa.decimal128(3, 0)),
    "a number for an instant": ("long", 1, pa.timestamp("us", "UTC")),
    "several types": (["int", "string"], 1, pa.int32()),
    "an array for a struct": (
        {"type": "array", "items": "int"},
        [1],
        pa.struct([("x", pa.int32())]),
    ),
    "another element": ({"type": "array", "items": "long"}, [1], pa.list_(pa.int32())),
    "a field is missing": (record("r_v", y="int"), {"y": 1}, pa.struct([("x", pa.int32())])),
    "entries of several types": (
        {"type": "array", "items": ["int", "string"]},
        [1],
        pa.map_(pa.int32(), pa.int32()),
    ),
    "entries that may be NULL": (
        {"type": "array", "items": ["null", record("r_v", key="int", value="int")]},
        [None],
        pa.map_(pa.int32(), pa.int32()),
    ),
    "a map for other keys": (
        {"type": "map", "values": "int"},
        {"a": 1},
        pa.map_(pa.int32(), pa.int32()),
    ),
}


@pytest.mark.parametrize("case", OTHERWISE)
def test_files_that_do_not_hold_what_their_schema_says(tmp_path: Path, case: str) -> None:
    stored, value, kind = OTHERWISE[case]
    path = write(tmp_path / "a.avro", {"v": stored}, [{"v": value}])
    refused(path, pa.field("v", kind))


def test_a_missing_column(tmp_path: Path) -> None:
    path = write(tmp_path / "a.avro", {"v": "int"}, [{"v": 1}])
    assert "no column w" in refused(path, pa.field("w", pa.int32()))


def test_damaged_files(tmp_path: Path) -> None:
    rows = [{"v": f"{i}"} for i in range(1_000)]
    whole = Path(write(tmp_path / "a.avro", {"v": "string"}, rows, "deflate", 500)).read_bytes()
    blocks = list(fastavro.block_reader(io.BytesIO(whole)))
    damaged = tmp_path / "damaged.avro"
    field = pa.field("v", pa.string())
    for content in (
        b"",
        whole[:3],
        whole[:30],
        whole[:-1],
        whole[:-20],
        whole[: blocks[-1].offset],
        whole[:-30] + b"\0" + whole[-29:],
        whole.replace(b"deflate", b"inflate"),
        whole.replace(b'"string"', b'"double"'),
        b"PAR1" + whole,
    ):
        damaged.write_bytes(content)
        refused(str(damaged), field, 1_000)
