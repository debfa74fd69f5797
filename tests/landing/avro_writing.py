"""Writes Avro files for tests."""

from __future__ import annotations

import datetime as dt
import io
import zlib
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa

from spark_jobs.landing.avro_reader import AvroReader
from spark_jobs.landing.records import Column
from spark_jobs.landing.rows import Wanted
from tests.landing.reading import Outcome, columns, read


def record(**fields: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "Row",
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
    }


def logical(kind: str, name: str, **more: int) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def write(
    folder: Path, schema: Any, rows: list[dict[str, Any]], codec: str = "null", **more: Any
) -> Path:
    path = folder / "landed.avro"
    with path.open("wb") as file:
        fastavro.writer(file, schema, rows, codec=codec, **more)
    return path


def write_as(
    folder: Path, schema: Any, stored: Any, rows: list[dict[str, Any]], *, is_snappy: bool = False
) -> Path:
    """A file whose header says ``schema``, with a block of records by the schema ``stored``."""
    path = write(folder, schema, [])
    header = path.read_bytes()
    if is_snappy:
        header = header.replace(b"\x08null", b"\x0csnappy")
    block = io.BytesIO()
    for row in rows:
        fastavro.schemaless_writer(block, fastavro.parse_schema(stored), row)
    data = block.getvalue()
    if is_snappy:
        data = pa.Codec("snappy").compress(data, asbytes=True) + zlib.crc32(data).to_bytes(4, "big")
    counts = io.BytesIO()
    fastavro.schemaless_writer(counts, fastavro.parse_schema("long"), len(rows))
    fastavro.schemaless_writer(counts, fastavro.parse_schema("long"), len(data))
    path.write_bytes(header + counts.getvalue() + data + header[-16:])
    return path


def read_avro(path: Path, wanted: str | tuple[Column, ...], **options: Any) -> Outcome:
    chosen = columns(wanted) if isinstance(wanted, str) else wanted
    return read(AvroReader(Wanted(chosen, **options)), path)


DECIMAL = logical("bytes", "decimal", precision=10, scale=2)
FIXED_DECIMAL = {**logical("fixed", "decimal", precision=6, scale=3), "name": "D", "size": 8}
SUIT = {"type": "enum", "name": "Suit", "symbols": ["HEARTS", "SPADES"]}
FIXED = {"type": "fixed", "name": "Four", "size": 4}
NESTED = record(
    v={
        "type": "record",
        "name": "Inner",
        "namespace": "a.b",
        "fields": [
            {"name": "Day", "type": ["null", logical("int", "date")]},
            {"name": "list", "type": {"type": "array", "items": SUIT}},
            {"name": "map", "type": {"type": "map", "values": ["null", "a.b.Suit"]}},
            {"name": "other", "type": ["int", "string"]},
        ],
    },
    again=["null", "a.b.Inner"],
)
INNER = {
    "Day": dt.date(2024, 2, 29),
    "list": ["HEARTS"],
    "map": {"x": "SPADES", "y": None},
    "other": 5,
}
