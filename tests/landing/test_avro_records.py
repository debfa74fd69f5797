"""Avro files read back as another library wrote them; damaged and hostile ones end in an error."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest

from spark_jobs.avro import open_manifest
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.avro.records import records

INNER = {"type": "record", "name": "inner", "fields": [{"name": "n", "type": "long"}]}
TYPES: dict[str, tuple[Any, list[Any]]] = {
    "null": ("null", [None]),
    "boolean": ("boolean", [True, False]),
    "int": ("int", [0, -1, 2**31 - 1, -(2**31)]),
    "long": ("long", [0, 63, 64, -64, -65, 2**63 - 1, -(2**63)]),
    "float": ("float", [0.5, -2.0]),
    "double": ("double", [0.1, float("inf")]),
    "bytes": ("bytes", [b"", b"\x00\xff"]),
    "string": ("string", ["", "ü", "a" * 300]),
    "array": ({"type": "array", "items": "string"}, [[], ["a", "b"]]),
    "map": ({"type": "map", "values": "long"}, [{}, {"a": 1, "b": -2}]),
    "union": (["null", "long", "string"], [None, 3, "x"]),
    "enum": ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, ["A", "B"]),
    "fixed": ({"type": "fixed", "name": "f", "size": 3}, [b"abc"]),
    "record": (INNER, [{"n": 5}]),
    "nested": ({"type": "array", "items": ["null", INNER]}, [[None, {"n": 1}]]),
    "twice": (
        {
            "type": "record",
            "name": "outer",
            "namespace": "org.example",
            "fields": [{"name": "a", "type": INNER}, {"name": "b", "type": "inner"}],
        },
        [{"a": {"n": 1}, "b": {"n": 2}}],
    ),
    "logical": ({"type": "long", "logicalType": "local-timestamp-micros-of-ours"}, [7]),
}


def written(kind: Any, values: list[Any], codec: str = "null", **options: Any) -> bytes:
    fields = [{"name": "id", "type": "int"}, {"name": "v", "type": kind}]
    schema = {"type": "record", "name": "row", "fields": fields}
    stream = io.BytesIO()
    rows = [{"id": number, "v": value} for number, value in enumerate(values)]
    fastavro.writer(stream, schema, rows, codec, **options)
    return stream.getvalue()


@pytest.mark.parametrize("name", TYPES)
def test_values_of_each_type(name: str) -> None:
    kind, values = TYPES[name]

    found = list(records(open_manifest(written(kind, values))))

    assert found == [{"id": number, "v": value} for number, value in enumerate(values)]


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz", "zstandard"])
def test_several_blocks_of_each_codec(codec: str) -> None:
    values = [f"value {number}" * 20 for number in range(2000)]

    found = list(records(open_manifest(written("string", values, codec, sync_interval=4000))))

    assert [row["v"] for row in found] == values


def test_a_file_without_records() -> None:
    assert list(records(open_manifest(written("string", [])))) == []


@pytest.mark.parametrize("codec", ["null", "zstandard"])
def test_a_file_that_is_cut_off_is_refused(codec: str) -> None:
    content = written({"type": "array", "items": "string"}, [["a", "b"], ["c"]], codec)
    header = len(written({"type": "array", "items": "string"}, [], codec))

    for end in range(len(content)):
        if end != header:  # there ends a file without records
            with pytest.raises(Exception, match=r".*"):
                list(records(open_manifest(content[:end])))


def number(value: int) -> bytes:
    """Avro's form of a long."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, "long", value)
    return stream.getvalue()


def with_block(kind: Any, count: int, block: bytes) -> bytes:
    header = written(kind, [])
    return header + number(count) + number(len(block)) + block + header[-16:]


@pytest.mark.parametrize(
    ("kind", "block"),
    [
        ({"type": "array", "items": "null"}, number(0) + number(2**60)),
        ({"type": "array", "items": "long"}, number(0) + number(2**60)),
        ({"type": "map", "values": "null"}, number(0) + number(2**60)),
        ("bytes", number(0) + number(2**40)),
        ("bytes", number(0) + number(-1)),
        (["null", "long"], number(0) + number(-1)),
        (["null", "long"], number(0) + number(5)),
        ("long", number(0) + b"\xff" * 12),
    ],
)
def test_what_a_block_claims_is_not_believed(kind: Any, block: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        list(records(open_manifest(with_block(kind, 1, block))))


def test_records_that_are_not_there_are_not_counted() -> None:
    with pytest.raises(ValueError, match="not as many records"):
        list(records(open_manifest(with_block("long", 2**60, number(0) + number(1)))))


@pytest.mark.parametrize("codec", ["deflate", "bzip2", "xz", "zstandard"])
def test_a_bomb_is_refused(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_jobs.avro.MAX_BLOCK", 100_000)

    with pytest.raises(ValueError, match="more than 100000 bytes"):
        list(records(open_manifest(written("bytes", [b"\0" * 1_000_000], codec))))


def test_an_unknown_codec_is_named() -> None:
    content = written("long", [1], "deflate").replace(b"deflate", b"deflat2")

    with pytest.raises(NotSupportedError, match="deflat2"):
        list(records(open_manifest(content)))
