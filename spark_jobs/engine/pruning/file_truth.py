"""The truth of a condition in a file, as Spark columns over the bounds of its values.

All columns here are booleans that are never NULL, except for bounds and constants. An unknown bound
is NULL, and so is a comparison with it until ``_certain`` replaces it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a column's values in a file, and whether values and NULLs may occur."""

    low: Column
    high: Column
    has_values: Column
    has_nulls: Column

    def cast(self, type_name: str) -> Bounds:
        """The bounds after a cast that keeps the order and yields no NULL."""
        low, high = self.low.cast(type_name), self.high.cast(type_name)
        return Bounds(low, high, self.has_values, self.has_nulls)


@dataclass(frozen=True, slots=True)
class Truth:
    """Whether a condition may be TRUE or FALSE for a row of a file, and must be for all rows."""

    may_be_true: Column
    must_be_true: Column
    may_be_false: Column
    must_be_false: Column

    @classmethod
    def unknown(cls) -> Truth:
        """The truth of a condition about which nothing is known."""
        return cls(F.lit(True), F.lit(False), F.lit(True), F.lit(False))

    @classmethod
    def exactly(cls, value: Column) -> Truth:
        """The truth of a condition with the same ``value`` for all rows."""
        holds, fails = F.coalesce(value, F.lit(False)), F.coalesce(~value, F.lit(False))
        return cls(holds, holds, fails, fails)

    def __invert__(self) -> Truth:
        return Truth(self.may_be_false, self.must_be_false, self.may_be_true, self.must_be_true)

    def __and__(self, other: Truth) -> Truth:
        return Truth(
            self.may_be_true & other.may_be_true,
            self.must_be_true & other.must_be_true,
            self.may_be_false | other.may_be_false,
            self.must_be_false | other.must_be_false,
        )

    def __or__(self, other: Truth) -> Truth:
        return ~(~self & ~other)


def is_null(bounds: Bounds) -> Truth:
    """``column IS NULL``"""
    return Truth(bounds.has_nulls, ~bounds.has_values, bounds.has_values, ~bounds.has_nulls)


def compared(kind: str, bounds: Bounds, constant: Column) -> Truth:
    """A comparison of a column with a constant; ``kind`` is the name of Spark's class."""
    low, high = bounds.low, bounds.high
    if kind == "EqualNullSafe":
        return _null_safe(compared("EqualTo", bounds, constant), bounds, constant)
    if kind == "LessThan":
        parts = (low < constant, high < constant, high >= constant, low >= constant)
    elif kind == "LessThanOrEqual":
        parts = (low <= constant, high <= constant, high > constant, low > constant)
    elif kind == "GreaterThan":
        parts = (high > constant, low > constant, low <= constant, high <= constant)
    elif kind == "GreaterThanOrEqual":
        parts = (high >= constant, low >= constant, low < constant, high < constant)
    else:
        all_equal = (low == constant) & (high == constant)
        within = (low <= constant) & (high >= constant)
        parts = (within, all_equal, ~all_equal, ~within)
    return _certain(bounds, constant.isNotNull(), *parts)


def is_among(bounds: Bounds, constants: Sequence[Column]) -> Truth:
    """``column IN (constants)``"""
    low, high = bounds.low, bounds.high
    listed = F.array(*constants)
    known = F.filter(listed, lambda each: each.isNotNull())
    has_null = F.exists(listed, lambda each: each.isNull())
    within = F.exists(known, lambda each: (low <= each) & (high >= each))
    all_equal = F.exists(known, lambda each: (low == each) & (high == each))
    # For a value that is not in a list with a NULL, IN is NULL, never FALSE.
    truth = _certain(bounds, F.size(known) > 0, within, all_equal, ~all_equal, ~within)
    return Truth(
        truth.may_be_true,
        truth.must_be_true,
        bounds.has_values & ~has_null & F.coalesce(~all_equal, F.lit(True)),
        ~bounds.has_nulls & ~has_null & F.coalesce(~within, F.lit(False)),
    )


def _certain(
    bounds: Bounds,
    may_by_default: Column,
    may_be_true: Column,
    must_be_true: Column,
    may_be_false: Column,
    must_be_false: Column,
) -> Truth:
    """NULL rows are neither TRUE nor FALSE; if a bound is unknown, only ``may`` holds."""
    return Truth(
        bounds.has_values & F.coalesce(may_be_true, may_by_default),
        ~bounds.has_nulls & F.coalesce(must_be_true, F.lit(False)),
        bounds.has_values & F.coalesce(may_be_false, may_by_default),
        ~bounds.has_nulls & F.coalesce(must_be_false, F.lit(False)),
    )


def _null_safe(equal: Truth, bounds: Bounds, constant: Column) -> Truth:
    missing = is_null(bounds)
    no_constant = constant.isNull()
    return Truth(
        F.when(no_constant, missing.may_be_true).otherwise(equal.may_be_true),
        F.when(no_constant, missing.must_be_true).otherwise(equal.must_be_true),
        F.when(no_constant, missing.may_be_false).otherwise(equal.may_be_false | bounds.has_nulls),
        F.when(no_constant, missing.must_be_false).otherwise(
            equal.must_be_false | ~bounds.has_values
        ),
    )
