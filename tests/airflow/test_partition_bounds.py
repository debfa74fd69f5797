"""Manifests that sensors leave out by the bounds of their partitions."""

from __future__ import annotations

import math
import struct

import pytest

from airflow_provider_merge.metadata.iceberg.partition_values import PartitionField
from airflow_provider_merge.metadata.paimon.partition_filter import PaimonPartitionFilter


def row(value: float) -> bytes:
    """A Paimon row of one DOUBLE."""
    return struct.pack(">i", 1) + bytes(8) + struct.pack("<d", value)


def number(value: int) -> bytes:
    return value.to_bytes(4, "little", signed=True)


@pytest.mark.parametrize(
    ("kind", "low", "high", "may"),
    [
        ("DOUBLE", row(1), row(2), True),
        ("DOUBLE", row(math.nan), row(math.nan), True),
        ("INT", row(0), row(0), False),
    ],
)
def test_bounds_of_floating_point_leave_out_nothing(
    kind: str, low: bytes, high: bytes, may: bool
) -> None:
    wanted = PaimonPartitionFilter(("p",), (kind,), {0: 7.0 if kind == "DOUBLE" else 7})

    assert wanted.may_hold(low, high) is may


@pytest.mark.parametrize(
    ("value", "low", "high", "may"),
    [(3, 1, 5, True), (7, 1, 5, False), (7, 5, 1, True), (3, 5, 1, True)],
)
def test_impossible_bounds_leave_out_nothing(value: int, low: int, high: int, may: bool) -> None:
    field = PartitionField("p", "int", "p")

    assert field.may_lie(value, number(low), number(high)) is may
