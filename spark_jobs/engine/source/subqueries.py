"""The sources that a statement's subqueries read, as temporary views.

The views are empty while the statement is analysed; then they get rows that are evaluated once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spark_jobs.contract.sql_text import quote
from spark_jobs.engine.analysis.char_columns import noted_lengths, with_noted_lengths
from spark_jobs.engine.runtime.sql_text import find_name
from spark_jobs.engine.source.materialized import materialize
from spark_jobs.engine.source.open_source import OpenSource

if TYPE_CHECKING:
    from spark_jobs.spi.storage import WarehouseStorage


@contextmanager
def empty_views(spark: SparkSession, sources: Mapping[str, OpenSource]) -> Iterator[None]:
    """Make the views of ``sources`` empty within the block.

    This way a nondeterministic source does not make the statement that reads it nondeterministic.
    """
    for name, source in sources.items():
        spark.createDataFrame([], source.frame.schema).createOrReplaceTempView(name)
    try:
        yield
    finally:
        for name, source in sources.items():
            source.frame.createOrReplaceTempView(name)


def materialize_views(
    spark: SparkSession,
    sources: Mapping[str, OpenSource],
    columns: Mapping[str, frozenset[str]],
    storage: WarehouseStorage,
    folder: str,
) -> int:
    """Evaluate ``columns`` of ``sources`` once and let their views read the result.

    Pinned and landed sources are left as they are.

    Returns:
        The number of evaluated or landed rows.

    Raises:
        NotSupportedError: a column of a type that Parquet cannot hold.
    """
    row_count = 0
    for name, read in columns.items():
        source = find_name(name, sources)
        if source is None:
            continue
        landed = sources[source].landed
        if landed is not None:
            row_count += landed.row_count
        elif not sources[source].is_pinned:
            frame = sources[source].frame
            materialized = materialize(spark, frame, read, storage, folder)
            with_all_columns(materialized.frame, frame.schema).createOrReplaceTempView(source)
            row_count += materialized.row_count
    return row_count


def with_all_columns(kept: DataFrame, schema: StructType) -> DataFrame:
    """``kept`` with the columns of ``schema`` in their order, on which ``*`` depends.

    Columns that were not kept are NULL; the statement does not read their values.
    """
    rows = kept.select(
        *(
            F.col(quote(field.name))
            if field.name in kept.columns
            else F.lit(None).cast(field.dataType).alias(field.name)
            for field in schema
        )
    )
    return with_noted_lengths(rows, noted_lengths(schema))
