"""Java finds the rows of partitions with special values, by reading and by filtering."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.judge.judge import facts_from_java, read_with_java
from tests.support.judged_values import differences, from_arrow

PARTITIONS = {
    "string": (
        pa.string(),
        [
            None,
            "a/b",
            "a=b",
            "a%2Fb",
            "50%",
            "東京 ü",
            "a*b",
            "[x]{y}",
            "a:b",
            "it's",
            "x#y?z",
            ".",
        ],
    ),
    "blank": (pa.string(), ["", " ", "x"]),
    "int": (pa.int32(), [None, -1, 0]),
    "bigint": (pa.int64(), [-(2**63), 2**63 - 1]),
    "boolean": (pa.bool_(), [True, False, None]),
    "date": (pa.date32(), [None, date(1969, 12, 31), date(2026, 2, 28)]),
    "float": (pa.float32(), [0.0, 12.3, -0.001, 9999999.0, None]),
    "double": (pa.float64(), [0.0, 12.3, -0.001, 9999999.999999998, None]),
    "decimal": (pa.decimal128(10, 2), [None, Decimal("-0.10"), Decimal("12345678.90")]),
    "timestamp": (
        pa.timestamp("us"),
        [None, datetime(2026, 1, 1), datetime(2026, 1, 1, 12, 30, 15, 1)],  # noqa: DTZ001
    ),
    "timestamp with zone": (
        pa.timestamp("us", "UTC"),
        [None, datetime(2026, 1, 1, 1, 2, 3, tzinfo=UTC)],
    ),
}


def partitioned(warehouse, kind, values):
    rows = pa.table({"p": pa.array(values, kind), "id": pa.array(range(len(values)), pa.int64())})
    warehouse.create("d.t", rows.schema, ["p"])
    warehouse.append("d.t", rows)
    return rows


@pytest.mark.parametrize("name", PARTITIONS)
def test_rows(warehouse, name):
    rows = partitioned(warehouse, *PARTITIONS[name])
    assert not differences(warehouse.both_readers("d.t"), from_arrow(rows))


@pytest.mark.parametrize("name", PARTITIONS)
def test_facts(warehouse, name):
    rows = partitioned(warehouse, *PARTITIONS[name])
    partitions = facts_from_java(warehouse.path, "d.t").partitions
    expected = sorted(repr((row["p"],)) for row in from_arrow(rows))
    assert sorted(repr(each.values) for each in partitions) == expected
    assert {(each.rows, each.files) for each in partitions} == {(1, 1)}


@pytest.mark.parametrize("value", PARTITIONS["string"][1])
def test_filter_on_a_partition(warehouse, value):
    rows = partitioned(warehouse, *PARTITIONS["string"])
    expected = [row for row in from_arrow(rows) if row["p"] == value]
    assert read_with_java(warehouse.path, "d.t", where=("p", value)) == expected
