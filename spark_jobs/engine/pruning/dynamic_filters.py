"""The dynamic filter of a statement: the source's values for the join keys.

After Trino's dynamic filtering. Only for types whose values compare in Arrow and in Python as they
do in Spark (``spi.evidence``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, IntegralType

from spark_jobs.arrow_types import arrow_type
from spark_jobs.contract.sql_text import RESERVED_PREFIX
from spark_jobs.engine.analysis.analyzed import AnalyzedMerge
from spark_jobs.engine.analysis.expressions import JoinKey
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.runtime.older_spark import collected_as_arrow
from spark_jobs.engine.runtime.sql_text import embedded, named, type_text
from spark_jobs.engine.source.materialized import MaterializedSource
from spark_jobs.spi.evidence import DynamicFilter, keys_decide

_MOST_ROWS: Final = 2_000_000


def dynamic_filter(
    merge: AnalyzedMerge,
    source: MaterializedSource | None,
    broadcast_limit: int,
    moment: StatementTime,
) -> DynamicFilter | None:
    """The source's join key values; None if they exclude no row or are too many to collect.

    ``broadcast_limit`` is in bytes of the source.
    """
    keys = _one_per_column(merge)
    if source is None or not keys:
        return None
    if source.byte_size > broadcast_limit or source.row_count > _MOST_ROWS:
        return None
    values = _stored(keys, source)
    if values is None:
        values = _computed(keys, merge.source_alias, source, moment)
    columns = zip(keys, values.columns, strict=True)
    return DynamicFilter({key.target_column: _distinct(column) for key, column in columns})


def comparable_keys(merge: AnalyzedMerge) -> list[JoinKey]:
    """The join keys that a target row must match to be needed; none if others are needed too."""
    if merge.read_set.by_source_predicates is not None:
        return []
    types = merge.target_types
    return [
        key
        for key in merge.read_set.join_keys
        # Another type than the column's: it is a part of the column, or a cast of it.
        if key.type == types[key.target_column] and _is_comparable(key)
    ]


def with_key_columns(source: DataFrame, merge: AnalyzedMerge) -> tuple[DataFrame, list[str]]:
    """``source`` with the values of its join keys where no column has them as they are.

    Also returns the new columns. If they are materialised with the source, no other job has to
    compute them.
    """
    keys = {_key_column(key): key for key in _one_per_column(merge) if _column(key) is None}
    if not keys:
        return source, []
    columns = (named(key_value(key), name) for name, key in keys.items())
    return source.alias(merge.source_alias).selectExpr("*", *columns), list(keys)


def _one_per_column(merge: AnalyzedMerge) -> list[JoinKey]:
    by_column = {key.target_column: key for key in reversed(comparable_keys(merge))}
    return list(by_column.values())


def key_value(key: JoinKey) -> str:
    """The source's value for ``key`` in the target's type, as SQL; NULL if it does not fit."""
    return f"TRY_CAST({embedded(key.source.text)} AS {type_text(key.type)})"


def _column(key: JoinKey) -> str | None:
    """The source's column that holds the values of ``key`` as they are."""
    return key.source_column if key.source.type == key.type else None


def _key_column(key: JoinKey) -> str:
    return f"{RESERVED_PREFIX}key_{key.target_column}"


def _stored(keys: Sequence[JoinKey], source: MaterializedSource) -> pa.Table | None:
    """The values as read from the source's files; None if they have to be computed."""
    values = source.values([_column(key) or _key_column(key) for key in keys])
    if values is None:
        return None
    fields = [pa.field(f"c{i}", arrow_type(key.type)) for i, key in enumerate(keys)]
    return pa.table(values, names=[field.name for field in fields]).cast(pa.schema(fields))


def _computed(
    keys: Sequence[JoinKey], alias: str, source: MaterializedSource, moment: StatementTime
) -> pa.Table:
    values = source.frame.alias(alias).selectExpr(
        *(named(key_value(key), f"c{i}") for i, key in enumerate(keys))
    )
    return collected_as_arrow(moment.fixed(values))


def _distinct(values: pa.ChunkedArray) -> pa.Array:
    distinct = pc.unique(values.drop_null())
    return distinct.take(pc.sort_indices(distinct))


def _is_comparable(key: JoinKey) -> bool:
    given, wanted = key.source.type, key.type
    return keys_decide(wanted.simpleString()) and _same_family(given, wanted)


def _same_family(given: DataType, wanted: DataType) -> bool:
    both_integral = isinstance(given, IntegralType) and isinstance(wanted, IntegralType)
    return both_integral or given == wanted
