"""Partition values as Iceberg's Java computes them, for 10,000 values of each type."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.connectors.iceberg.format.schema import IcebergType, arrow_type
from spark_jobs.connectors.iceberg.format.transforms import transformed
from tests.judge.iceberg_spark import CATALOG, IcebergSpark

_COUNT = 10_000
_DAY = 86_400_000_000
_LETTERS = "aZ 0äß€漢😀\u0000\uffff"


def integers(bits: int) -> Callable[[random.Random], int]:
    edges = (0, 1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)))

    def value(chance: random.Random) -> int:
        if chance.random() < 0.1:
            return chance.choice(edges)
        wide = chance.randrange(1, bits)
        return chance.randrange(-(2**wide), 2**wide)

    return value


def decimals(precision: int, scale: int) -> Callable[[random.Random], Decimal]:
    def value(chance: random.Random) -> Decimal:
        most = 10 ** chance.randrange(1, precision + 1) - 1
        return Decimal(chance.randint(-most, most)).scaleb(-scale)

    return value


def days(chance: random.Random) -> int:
    return chance.choice((0, -1, 1, 59, chance.randrange(-700_000, 2_900_000)))


def micros(chance: random.Random) -> int:
    edges = (0, -1, 1, -_DAY, _DAY - 1, -3_600_000_000)
    return chance.choice((*edges, chance.randrange(-500_000 * _DAY, 2_500_000 * _DAY)))


def text(chance: random.Random) -> str:
    return "".join(chance.choice(_LETTERS) for _ in range(chance.randrange(0, 12)))


_KINDS: dict[str, tuple[Callable[[random.Random], Any], tuple[str, ...]]] = {
    "int": (integers(32), ("bucket[7]", "truncate[5]")),
    "long": (integers(64), ("bucket[7]", "truncate[5]", "truncate[1000]")),
    "decimal(9, 2)": (decimals(9, 2), ("bucket[7]", "truncate[5]")),
    "decimal(38, 5)": (decimals(38, 5), ("bucket[1000]", "truncate[50]")),
    "date": (days, ("bucket[7]", "year", "month", "day")),
    "timestamptz": (micros, ("bucket[7]", "year", "month", "day", "hour")),
    "timestamp": (micros, ("bucket[7]", "year", "month", "day", "hour")),
    "string": (text, ("bucket[7]", "truncate[3]")),
    "binary": (lambda chance: text(chance).encode(), ("bucket[7]", "truncate[3]")),
}


def function(transform: str) -> str:
    name, _, number = transform.rstrip("]").partition("[")
    if number:
        return f"{CATALOG}.system.{name}({number}, v)"
    found = f"{CATALOG}.system.{name}s(v)"
    return f"datediff({found}, DATE'1970-01-01')" if name == "day" else found


@pytest.mark.slow
@pytest.mark.by_turns(3)
@pytest.mark.parametrize("kind", _KINDS)
def test_all_transforms_of_a_type(kind: str, iceberg_spark: IcebergSpark) -> None:
    make, transforms = _KINDS[kind]
    chance = random.Random(kind)
    values = [None if chance.random() < 0.02 else make(chance) for _ in range(_COUNT)]
    declared = IcebergType(kind)
    raw = pa.int32() if kind == "date" else pa.int64() if "timestamp" in kind else None
    array = pa.array(values, raw or arrow_type(declared)).cast(arrow_type(declared))
    path = iceberg_spark.folder / f"values of {kind}.parquet"
    pq.write_table(pa.table({"n": range(_COUNT), "v": array}), path, store_schema=False)

    columns = ", ".join(f"{function(each)} AS t{i}" for i, each in enumerate(transforms))
    rows = iceberg_spark.sql(f"SELECT n, {columns} FROM parquet.`{path}` ORDER BY n")

    assert len(rows) == _COUNT
    for number, transform in enumerate(transforms):
        found = transformed(array, declared, transform).to_pylist()
        wanted = [row[f"t{number}"] for row in rows]
        wanted = [bytes(each) if isinstance(each, bytearray) else each for each in wanted]
        differing = [i for i in range(_COUNT) if found[i] != wanted[i]]
        assert not differing, [(transform, array[i], found[i], wanted[i]) for i in differing[:5]]


@pytest.mark.parametrize(
    ("kind", "value", "hashed"),
    [
        ("int", 34, 2017239379),
        ("date", dt.date(2017, 11, 16), -653330422),
        ("timestamp", dt.datetime(2017, 11, 16, 22, 31, 8), -2047944441),  # noqa: DTZ001
        ("decimal(9, 2)", Decimal("14.20"), -500754589),
        ("string", "iceberg", 1210000089),
        ("binary", b"\0\1\2\3", -188683207),
    ],
)
def test_hashes_of_the_specification(kind: str, value: Any, hashed: int) -> None:
    array = pa.array([value], arrow_type(IcebergType(kind)))

    for buckets in (2, 16, 1_000_003):
        found = transformed(array, IcebergType(kind), f"bucket[{buckets}]").to_pylist()
        assert found == [(hashed & 0x7FFFFFFF) % buckets]
