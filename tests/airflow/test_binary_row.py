"""Partition values as manifests hold them, byte by byte."""

from __future__ import annotations

import struct

import pytest

from airflow_provider_merge.metadata.paimon.binary_row import decoded


# The NULL bits of up to 56 fields and the row kind take one word.
@pytest.mark.parametrize("count", [1, 56, 57, 120, 121])
def test_rows_of_so_many_fields(count: int) -> None:
    values = [None if index in (0, count // 2) else index for index in range(count)]
    bits = sum(1 << 8 + index for index, value in enumerate(values) if value is None)
    words = -(-(count + 8) // 64)
    fields = (struct.pack("<q", value or 0) for value in values)
    row = struct.pack(">i", count) + bits.to_bytes(8 * words, "little") + b"".join(fields)

    assert decoded(row, ["BIGINT"] * count) == tuple(values)
