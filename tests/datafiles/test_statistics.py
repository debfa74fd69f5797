"""Statistics of written columns: exact, and unknown where they would mislead."""

from __future__ import annotations

import datetime as dt
import math

import pyarrow as pa
import pytest

from spark_jobs.datafiles.statistics import MAX_BOUND_BYTES, ColumnStatistics, StatisticsCollector


def statistics_of(*arrays: pa.Array) -> ColumnStatistics:
    collector = StatisticsCollector()
    for array in arrays:
        collector.add(pa.table({"c": array}))
    return collector.result()["c"]


def test_bounds_span_all_row_groups() -> None:
    found = statistics_of(pa.array([3, None]), pa.array([None], pa.int64()), pa.array([-1, 2]))

    assert found == ColumnStatistics(-1, 3, 2)


def test_many_row_groups_keep_exact_bounds() -> None:
    found = statistics_of(*[pa.array([i]) for i in range(300)])

    assert found == ColumnStatistics(0, 299, 0)


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1.0, float("nan")]),
        pa.array([[1], [2]]),
        pa.array([{"a": 1}]),
        pa.array([None, None], pa.string()),
        pa.array(["x" * (MAX_BOUND_BYTES + 1), "a"]),
    ],
    ids=["nan", "list", "struct", "only null", "long text"],
)
def test_bounds_that_would_mislead_are_unknown(array: pa.Array) -> None:
    found = statistics_of(array)

    assert (found.minimum, found.maximum, found.null_count) == (None, None, array.null_count)


def test_a_nan_in_any_row_group_makes_the_bounds_unknown() -> None:
    found = statistics_of(pa.array([1.0]), pa.array([float("nan")]), pa.array([2.0]))

    assert found == ColumnStatistics(None, None, 0, nan_count=1)


@pytest.mark.parametrize("values", [[0.0], [-0.0], [0.0, -0.0], [-0.0, None, 0.0]])
def test_bounds_that_are_zero_include_both_zeros(values: list[float | None]) -> None:
    found = statistics_of(pa.array(values, pa.float32()))

    assert [math.copysign(1, each) for each in (found.minimum, found.maximum)] == [-1, 1]
    assert (found.minimum, found.maximum) == (0, 0)


def test_every_nan_is_counted() -> None:
    nan = float("nan")
    found = statistics_of(pa.array([nan, None]), pa.array([1.0]), pa.array([2.0, nan]))

    assert (found.null_count, found.nan_count) == (1, 2)
    assert ColumnStatistics.from_json(found.to_json()) == found


def test_a_dictionary_counts_only_the_values_in_use() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([1, None, 1]), ["a", "b", "z"])

    assert statistics_of(array) == ColumnStatistics("b", "b", 1)


@pytest.mark.parametrize(
    ("nanoseconds", "minimum", "maximum"),
    [
        (1_001, "1970-01-01 00:00:00.000001", "1970-01-01 00:00:00.000002"),
        (-1, "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00"),
    ],
)
def test_nanoseconds_widen_the_bounds_to_microseconds(
    nanoseconds: int, minimum: str, maximum: str
) -> None:
    found = statistics_of(pa.array([nanoseconds], pa.timestamp("ns")))

    assert (str(found.minimum), str(found.maximum)) == (minimum, maximum)


def test_dates_beyond_those_of_python_have_unknown_bounds() -> None:
    found = statistics_of(pa.array([5_000_000, 0], pa.int32()).cast(pa.date32()))

    assert (found.minimum, found.maximum) == (dt.date(1970, 1, 1), None)
