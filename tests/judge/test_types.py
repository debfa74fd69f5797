"""Java reads every type as pypaimon and the values themselves say."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.judge.judge import facts_from_java, read_with_java
from tests.judge.jvm import JudgeError
from tests.support.judged_values import differences, from_arrow

NAN, INFINITY = float("nan"), float("inf")
VALUES = {
    "boolean": (pa.bool_(), [True, False]),
    "tinyint": (pa.int8(), [-128, 127]),
    "smallint": (pa.int16(), [-32768, 32767]),
    "int": (pa.int32(), [-(2**31), 2**31 - 1]),
    "bigint": (pa.int64(), [-(2**63), 2**63 - 1, 2**53 + 1]),
    "float": (pa.float32(), [0.1, -0.0, 0.0, NAN, INFINITY, -INFINITY, 1.4e-45]),
    "double": (pa.float64(), [0.1, -0.0, 0.0, NAN, INFINITY, 5e-324, 1.7976931348623157e308]),
    "decimal": (pa.decimal128(10, 2), [Decimal("0.10"), Decimal("-99999999.99")]),
    "decimal wide": (pa.decimal128(38, 18), [Decimal("1E-18"), Decimal(10**20 - 1)]),
    "string": (pa.string(), ["", "NULL", "null", 'a"b\\c', "tab\tline\n", "Zürich 東京 👩‍🚀", " "]),
    "binary": (pa.binary(), [b"", b"\x00\xff", bytes(range(256))]),
    "date": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)]),
    "time": (pa.time32("ms"), [time(0), time(23, 59, 59, 999000)]),
    "timestamp": (
        pa.timestamp("us"),
        [datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2026, 3, 29, 2, 30)],  # noqa: DTZ001
    ),
    "timestamp ms": (pa.timestamp("ms"), [datetime(2026, 1, 1, 0, 0, 0, 1000)]),  # noqa: DTZ001
    "timestamp with zone": (
        pa.timestamp("us", "UTC"),
        [datetime(1969, 7, 20, 20, 17, 40, 1, UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC)],
    ),
    "array": (pa.list_(pa.string()), [[], ["a", None, ""], ["b"]]),
    "map": (pa.map_(pa.string(), pa.int64()), [[], [("a", 1), ("b", None), ("", 0)]]),
    "struct": (
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        [{"a": None, "b": None}, {"a": 1, "b": ""}],
    ),
    "nested": (
        pa.list_(
            pa.struct(
                [("m", pa.map_(pa.string(), pa.list_(pa.decimal128(4, 1)))), ("t", pa.date32())]
            )
        ),
        [[], [None, {"m": None, "t": None}, {"m": [("k", [Decimal("1.5"), None])], "t": None}]],
    ),
}
# Spark 4.1 has no type TIME that it can read from files.
COLUMNS = {name.replace(" ", "_"): VALUES[name] for name in VALUES if name != "time"}


@pytest.mark.parametrize("name", VALUES)
def test_values(warehouse, name):
    kind, values = VALUES[name]
    values = [None, *values, None]
    rows = pa.table({"id": pa.array(range(len(values)), pa.int64()), "v": pa.array(values, kind)})
    warehouse.create("d.t", rows.schema)
    warehouse.append("d.t", rows)

    found = warehouse.both_readers("d.t")

    assert not differences(found, from_arrow(rows))


def test_all_types_in_one_row(warehouse):
    columns = {name: pa.array([values[0], None], kind) for name, (kind, values) in VALUES.items()}
    rows = pa.table(columns)
    warehouse.create("d.t", rows.schema)
    warehouse.append("d.t", rows)
    assert not differences(warehouse.both_readers("d.t"), from_arrow(rows))


def test_snapshots_and_branches(warehouse):
    warehouse.create("d.t", pa.schema([("id", pa.int64())]))
    warehouse.append("d.t", pa.table({"id": [1]}))
    warehouse.table("d.t").branch_manager().create_branch("b")
    warehouse.append("d.t", pa.table({"id": [2]}))
    assert read_with_java(warehouse.path, "d.t", snapshot=1) == [{"id": 1}]
    assert len(read_with_java(warehouse.path, "d.t", snapshot=2)) == 2
    assert read_with_java(warehouse.path, "d.t", branch="b") == []
    assert len(facts_from_java(warehouse.path, "d.t").snapshots) == 2


def test_error_of_java_is_reported_and_the_judge_goes_on(warehouse):
    warehouse.create("d.t", pa.schema([("id", pa.int64())]))
    with pytest.raises(JudgeError, match="TableNotExistException"):
        read_with_java(warehouse.path, "d.missing")
    assert read_with_java(warehouse.path, "d.t") == []
