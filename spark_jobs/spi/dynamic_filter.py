"""Column values of a statement's source, which scans use to skip rows that cannot match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class DynamicFilter:
    """A row passes only if, in each column, it has one of that column's values. Picklable.

    ``values`` are by table column name: distinct, without NULL, in ascending order, and of the
    Arrow type in which Spark hands over the column. Modelled on Trino's ``DynamicFilter``.
    """

    values: Mapping[str, pa.Array]
