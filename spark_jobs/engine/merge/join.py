"""The join of source and target, whose kind follows from the clauses; without a source, a filter.

======================================  ======================================
clauses                                 join
======================================  ======================================
only MATCHED                            INNER
only NOT MATCHED                        source ANTI target
NOT MATCHED and MATCHED                 source LEFT OUTER target
NOT MATCHED BY SOURCE, no NOT MATCHED   target LEFT OUTER source
NOT MATCHED BY SOURCE and NOT MATCHED   FULL OUTER
======================================  ======================================

If ON has a join key, target rows without a match are not needed, the source fits a broadcast and
the scan has no dynamic filter, then a broadcast LEFT SEMI join reduces the target first. The other
rows are neither shuffled nor given a row id.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.contract.identifiers import quote
from spark_jobs.engine.analysis.analyzed import AnalyzedMerge
from spark_jobs.engine.merge.cases import SOURCE_PRESENT
from spark_jobs.engine.runtime.names import column_of
from spark_jobs.engine.runtime.sql_text import named, null_of
from spark_jobs.spi import rows


def join(
    merge: AnalyzedMerge, target: DataFrame, source: DataFrame, broadcast_source: bool
) -> DataFrame:
    """The joined rows of a MERGE.

    ``target`` has the columns that the clauses use and ``__merge_row_id``; ``source`` has its
    columns and ``__merge_source_present``. Both keep their alias. The kind of join leaves out rows
    that have no match and so cannot be changed by any clause. In an ANTI join the row id is NULL.
    """
    on = merge.on.column
    target = target.alias(merge.target_alias)
    source = source.alias(merge.source_alias)
    small = F.broadcast(source) if broadcast_source else source
    if merge.has("not_matched_by_source"):
        kind = "full_outer" if merge.has("not_matched") else "left_outer"
        return target.join(source if kind == "full_outer" else small, on, kind)
    if not merge.has("not_matched"):
        return target.join(small, on, "inner")
    if merge.has("matched"):
        return source.join(target, on, "left_outer")
    no_row_id = null_of(target.schema[rows.ROW_ID].dataType)
    return source.join(target, on, "left_anti").selectExpr("*", named(no_row_id, rows.ROW_ID))


def with_source_present(frame: DataFrame) -> DataFrame:
    """``frame`` with ``__merge_source_present`` (boolean), which is true."""
    return frame.selectExpr("*", named("TRUE", SOURCE_PRESENT))


def filtered(merge: AnalyzedMerge, target: DataFrame) -> DataFrame:
    """The rows of a statement without a source: those for which WHERE is TRUE.

    They look like joined rows that all matched a source row.
    """
    # Spark does not take a bare NULL as boolean.
    where = merge.on.column.cast("boolean")
    if merge.on.long is not None and merge.on.long.has_many_terms:
        # Spark would hand each term to its Parquet reader, whose stack a thousand overflow.
        where = F.coalesce(where, F.lit(False))
    return with_source_present(target.alias(merge.target_alias).where(where))


def reduced(merge: AnalyzedMerge, target: DataFrame, source: DataFrame) -> DataFrame:
    """``target`` without rows that match no source row, if no clause needs them and ON has a key.

    The row id is taken apart before the join and put together after it: Spark moves a semi join
    below a scan's own joins and projections, unless one of them makes a struct. So only matching
    rows pay the cost of a row id.
    """
    if merge.has("not_matched_by_source") or not merge.read_set.join_keys:
        return target
    target = target.alias(merge.target_alias)
    source = source.alias(merge.source_alias)
    keys = [column_of(merge.source_alias, name) for name in sorted(merge.on.source_columns)]
    matching = F.broadcast(source.selectExpr(*keys).alias(merge.source_alias))
    columns = [quote(name) for name in target.columns if name != rows.ROW_ID]
    names = target.selectExpr(f"{rows.ROW_ID}.*").columns
    fields = {f"{rows.RESERVED_PREFIX}row_id_{i}": name for i, name in enumerate(names)}
    parts = [named(f"{rows.ROW_ID}.{quote(name)}", flat) for flat, name in fields.items()]
    flat = target.selectExpr(*columns, *parts).alias(merge.target_alias)
    matched = flat.join(matching, merge.on.column, "left_semi")
    row_id = f"struct({', '.join(named(flat, name) for flat, name in fields.items())})"
    return matched.selectExpr(*columns, named(row_id, rows.ROW_ID))
