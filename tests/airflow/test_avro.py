"""Records of Avro files: small blocks, large ones, and blocks that claim what they do not hold."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest

from airflow_provider_merge.metadata.avro import Only, records

SCHEMA = {
    "type": "record",
    "name": "entry",
    "fields": [
        {"name": "partition", "type": "bytes"},
        {"name": "number", "type": "long"},
        {"name": "text", "type": "string"},
    ],
}
FIELDS = {"partition": None, "number": None}
ROWS = [
    {"partition": f"p{number // 100}".encode(), "number": number, "text": "x" * 50}
    for number in range(20_000)
]
WITHOUT_TEXT = [{"partition": row["partition"], "number": row["number"]} for row in ROWS]


def written(rows: list[dict[str, Any] | Any], block_bytes: int = 16_000) -> bytes:
    content = io.BytesIO()
    fastavro.writer(content, SCHEMA, rows, codec="null", sync_interval=block_bytes)
    return content.getvalue()


@pytest.mark.parametrize("block_bytes", [100, 16_000, 10_000_000], ids=["tiny", "usual", "one"])
def test_blocks_of_every_size(block_bytes: int) -> None:
    content = written(ROWS, block_bytes)
    assert list(records(content, FIELDS)) == WITHOUT_TEXT
    found = records(content, FIELDS, Only("partition", b"p7".__eq__))
    assert list(found) == WITHOUT_TEXT[700:800]
    assert list(records(content, FIELDS, Only("partition", b"none".__eq__))) == []


def test_no_records() -> None:
    assert list(records(written([]), FIELDS)) == []


def single_block(rows: list[dict[str, Any]]) -> tuple[Any, Any, Any, Any]:
    """A file of one block: what stands before it, its records, what stands behind."""
    content = written(rows, 10_000_000)
    sync = content[-16:]
    start = content.index(sync) + len(sync)
    block = content[start:-16]
    # Count and size are two bytes each for blocks of this length.
    return content[:start], block[:2], block[4:], sync


def numbered(value: int) -> bytes:
    return bytes([value << 1 & 0x7F | 0x80, value >> 6])


@pytest.mark.parametrize(
    "extra", [b"\x02\x00\x02\x00", b"\x00", b"\xff" * 9], ids=["rows", "0", "f"]
)
def test_a_block_with_more_than_its_records(extra: bytes) -> None:
    head, count, body, sync = single_block(ROWS[:70])
    assert list(records(head + count + numbered(len(body)) + body + sync, FIELDS))
    longer = body + extra
    with pytest.raises((ValueError, EOFError)):
        list(records(head + count + numbered(len(longer)) + longer + sync, FIELDS))


@pytest.mark.parametrize("claimed", [69, 71, 3000])
def test_a_block_with_another_number_of_records(claimed: int) -> None:
    head, _, body, sync = single_block(ROWS[:70])
    with pytest.raises((ValueError, EOFError)):
        list(records(head + numbered(claimed) + numbered(len(body)) + body + sync, FIELDS))
