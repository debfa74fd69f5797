"""What a statement's source tells of the target rows that it can match, for scans to use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class DynamicFilter:
    """A row is of use only if it has, in each column, one of the column's values. Picklable.

    ``values``, by name of a table column: distinct and without NULL, in ascending order, of the
    Arrow type in which Spark hands the column over. After Trino's ``DynamicFilter``.
    """

    values: Mapping[str, pa.Array]
