"""Which evidence may decide about rows that nobody has read: the one list (rule 11).

A row is decided by Spark's expression on its values. Evidence about many rows (bounds, counts,
dictionaries, page indexes, bloom filters) may decide in its place only for types whose order and
equality are the same in all of them. That excludes floating point, whose bounds leave out NaN and
whose zeros differ by their bytes, texts with a collation, whose bounds are in the order of bytes,
and nested values. Whatever is not listed here is decided by rows.

Types are named as Spark's ``simpleString`` does. Scans use a dynamic filter, values of a
statement's source, to skip rows that cannot match.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa


_WHOLE: Final = frozenset({"tinyint", "smallint", "int", "bigint"})
_TIMES: Final = frozenset({"timestamp", "timestamp_ntz"})
_DECIMAL: Final = "decimal"
_DATE: Final = "date"
# Without a collation: "string collate …" is another type.
_TEXT: Final = "string"
_EVERYWHERE: Final = _WHOLE | {_DECIMAL, _DATE, _TEXT}
# Bounds in manifests; a connector leaves out those that depend on the file's writer.
_BY_BOUNDS: Final = _EVERYWHERE | _TIMES | {"boolean"}
# What Spark's Parquet reader finds out by itself.
_BY_READER: Final = _EVERYWHERE | {"boolean", "binary"}
# Digits of decimals that are stored as numbers. Polars states wrong bounds of longer ones.
_MOST_DIGITS: Final = 18
_NUMBERS: Final = _WHOLE | {_DECIMAL, "float", "double"}


def bounds_decide(kind: str) -> bool:
    """Whether the bounds of a column of this type decide comparisons with it."""
    return _plain(kind) in _BY_BOUNDS


def keys_decide(kind: str) -> bool:
    """Whether a join key of this type is compared with bounds, and looked up, outside Spark."""
    return _plain(kind) in _EVERYWHERE


def reader_decides(kind: str, *, has_microseconds: bool = False) -> bool:
    """Whether Spark's Parquet reader may leave out rows by a column of this type.

    ``has_microseconds``: the file is known to store times in them; the reader rounds constants of
    filters to the unit of the file.
    """
    if _plain(kind) == _DECIMAL and _digits(kind) > _MOST_DIGITS:
        return False
    return _plain(kind) in _BY_READER or (kind == "timestamp" and has_microseconds)


def cast_keeps_order(given: str, wanted: str) -> bool:
    """Whether a cast that cannot fail leads from one of two values to no greater one.

    Not between the two kinds of timestamps: where clocks are put back or forward, it does not.
    """
    given, wanted = _plain(given), _plain(wanted)
    return (given in _NUMBERS and wanted in _NUMBERS) or (given == _DATE and wanted in _TIMES)


def _digits(kind: str) -> int:
    """The digits of ``decimal(p,s)``."""
    return int(kind.removeprefix(f"{_DECIMAL}(").partition(",")[0])


def _plain(kind: str) -> str:
    return _DECIMAL if kind.startswith(f"{_DECIMAL}(") else kind


@dataclass(frozen=True, slots=True)
class DynamicFilter:
    """A row passes only if, in each column, it has one of that column's values. Picklable.

    ``values`` are by table column name: distinct, without NULL, in ascending order, and of the
    Arrow type in which Spark hands over the column. Modelled on Trino's ``DynamicFilter``.
    """

    values: Mapping[str, pa.Array]
