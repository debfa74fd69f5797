"""Sources outside of catalogs and landed files, opened and then kept as files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from spark_jobs.contract.identifiers import quote
from spark_jobs.contract.outside_sources import JdbcSource, PythonSource
from spark_jobs.contract.sources import OutsideSource
from spark_jobs.contract.text_limits import TextLimits
from spark_jobs.engine.source.database import database_rows
from spark_jobs.engine.source.materialized import MaterializedSource, materialize
from spark_jobs.engine.source.python_rows import python_rows
from spark_jobs.engine.source.source_access import SourceAccess
from spark_jobs.engine.source.spark_rows import spark_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.spi.storage import WarehouseStorage


def outside_rows(
    spark: SparkSession, source: OutsideSource, limits: TextLimits, access: SourceAccess
) -> DataFrame:
    """The rows of ``source``, of which none is read yet; raises as the functions for its kind."""
    if isinstance(source, JdbcSource):
        return database_rows(spark, source, access.secrets(source.connection))
    if isinstance(source, PythonSource):
        return python_rows(spark, source)
    return spark_rows(spark, source, limits, access.password)


def kept_rows(
    spark: SparkSession, frame: DataFrame, storage: WarehouseStorage, scratch: str
) -> MaterializedSource:
    """All columns of ``frame``, evaluated once, in their order; raises as ``materialize``."""
    kept = materialize(spark, frame, frame.columns, storage, scratch)
    return replace(kept, frame=kept.frame.select(*map(quote, frame.columns)))
