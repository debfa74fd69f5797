"""The dynamic filter of a statement: the values that the source has for the join's keys.

After Trino's dynamic filtering. Only for types whose values compare in Arrow and in Python as they
do in Spark: floating point numbers, with NaN and two zeros, are not among them.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
)

from spark_jobs.engine.analyzed import AnalyzedMerge
from spark_jobs.engine.expressions import JoinKey
from spark_jobs.engine.materialized import MaterializedSource
from spark_jobs.engine.older_spark import collected_as_arrow, try_cast
from spark_jobs.engine.statement_time import StatementTime
from spark_jobs.spi.dynamic_filter import DynamicFilter

_INTEGRAL = (ByteType, ShortType, IntegerType, LongType)
_COMPARABLE = (*_INTEGRAL, StringType, DateType, DecimalType)
_MOST_ROWS: Final = 2_000_000


def dynamic_filter(
    merge: AnalyzedMerge,
    source: MaterializedSource | None,
    broadcast_limit: int,
    moment: StatementTime,
) -> DynamicFilter | None:
    """The values of the join's keys; None where they exclude no row or are too many to collect.

    ``broadcast_limit`` is in bytes of the source.
    """
    keys = comparable_keys(merge)
    if source is None or not keys:
        return None
    if source.byte_size > broadcast_limit or source.row_count > _MOST_ROWS:
        return None
    by_column = {key.target_column: key for key in reversed(keys)}
    values = source.frame.alias(merge.source_alias).select(
        *(
            try_cast(key.source.column, key.type).alias(f"c{i}")
            for i, key in enumerate(by_column.values())
        )
    )
    collected = collected_as_arrow(moment.fixed(values))
    return DynamicFilter({name: _distinct(collected.column(i)) for i, name in enumerate(by_column)})


def comparable_keys(merge: AnalyzedMerge) -> list[JoinKey]:
    """The equalities of ON that a row must meet to be of use; none where others are of use too."""
    if merge.region.by_source_predicates is not None:
        return []
    return [key for key in merge.region.join_keys if _is_comparable(key)]


def _distinct(values: pa.ChunkedArray) -> pa.Array:
    distinct = pc.unique(values.drop_null())
    return distinct.take(pc.sort_indices(distinct))


def _is_comparable(key: JoinKey) -> bool:
    given, wanted = key.source.type, key.type
    return isinstance(wanted, _COMPARABLE) and _same_family(given, wanted)


def _same_family(given: DataType, wanted: DataType) -> bool:
    both_integral = isinstance(given, _INTEGRAL) and isinstance(wanted, _INTEGRAL)
    return both_integral or given == wanted
