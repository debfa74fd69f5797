"""The dynamic filter of a statement: the source's values for the join keys.

After Trino's dynamic filtering. Only for types whose values compare in Arrow and in Python as they
do in Spark. This excludes floating-point numbers, which have NaN and two zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq
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

from spark_jobs.arrow_types import arrow_type
from spark_jobs.engine.analysis.analyzed import AnalyzedMerge
from spark_jobs.engine.analysis.expressions import JoinKey
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.runtime.older_spark import collected_as_arrow, try_cast
from spark_jobs.engine.source.materialized import MaterializedSource
from spark_jobs.spi.dynamic_filter import DynamicFilter

_INTEGRAL = (ByteType, ShortType, IntegerType, LongType)
_COMPARABLE = (*_INTEGRAL, StringType, DateType, DecimalType)
_MOST_ROWS: Final = 2_000_000


def dynamic_filter(
    merge: AnalyzedMerge,
    source: MaterializedSource | None,
    broadcast_limit: int,
    moment: StatementTime,
    filesystem: pafs.FileSystem,
) -> DynamicFilter | None:
    """The source's join key values; None if they exclude no row or are too many to collect.

    ``broadcast_limit`` is in bytes of the source; ``filesystem`` is that of the source's files.
    """
    keys = comparable_keys(merge)
    if source is None or not keys:
        return None
    if source.byte_size > broadcast_limit or source.row_count > _MOST_ROWS:
        return None
    by_column = {key.target_column: key for key in reversed(keys)}
    values = _stored(list(by_column.values()), source, filesystem)
    if values is None:
        values = _computed(list(by_column.values()), merge.source_alias, source, moment)
    columns = zip(by_column, values.columns, strict=True)
    return DynamicFilter({name: _distinct(column) for name, column in columns})


def comparable_keys(merge: AnalyzedMerge) -> list[JoinKey]:
    """The join keys that a target row must match to be needed; none if others are needed too."""
    if merge.read_set.by_source_predicates is not None:
        return []
    return [key for key in merge.read_set.join_keys if _is_comparable(key)]


def _stored(
    keys: Sequence[JoinKey], source: MaterializedSource, filesystem: pafs.FileSystem
) -> pa.Table | None:
    """The values as read from the source's files; None if they have to be computed."""
    columns = [key.source_column for key in keys if key.source.type == key.type]
    names = [source.stored_names.get(column) for column in columns if column is not None]
    wanted = [name for name in names if name is not None]
    if len(wanted) < len(keys) or not source.files:
        return None
    table = pa.concat_tables(
        pq.read_table(path, columns=list(dict.fromkeys(wanted)), filesystem=filesystem)
        for path in source.files
    )
    fields = [pa.field(f"c{i}", arrow_type(key.type)) for i, key in enumerate(keys)]
    return pa.table([table[name] for name in wanted], names=[f.name for f in fields]).cast(
        pa.schema(fields)
    )


def _computed(
    keys: Sequence[JoinKey], alias: str, source: MaterializedSource, moment: StatementTime
) -> pa.Table:
    values = source.frame.alias(alias).select(
        *(try_cast(key.source.column, key.type).alias(f"c{i}") for i, key in enumerate(keys))
    )
    return collected_as_arrow(moment.fixed(values))


def _distinct(values: pa.ChunkedArray) -> pa.Array:
    distinct = pc.unique(values.drop_null())
    return distinct.take(pc.sort_indices(distinct))


def _is_comparable(key: JoinKey) -> bool:
    given, wanted = key.source.type, key.type
    return isinstance(wanted, _COMPARABLE) and _same_family(given, wanted)


def _same_family(given: DataType, wanted: DataType) -> bool:
    both_integral = isinstance(given, _INTEGRAL) and isinstance(wanted, _INTEGRAL)
    return both_integral or given == wanted
