"""Sources outside of catalogs and landed files: opened by Spark, and then kept as files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException

from spark_jobs.contract.outside_sources import JdbcSource, PythonSource, SparkSource
from spark_jobs.contract.source_names import source_text
from spark_jobs.contract.sources import OutsideSource
from spark_jobs.contract.sql_text import quote
from spark_jobs.contract.text_limits import PREFIX_SETTING, TextLimits
from spark_jobs.engine.runtime.failures import shortened
from spark_jobs.engine.runtime.older_spark import error_condition
from spark_jobs.engine.source.database import database_rows
from spark_jobs.engine.source.materialized import MaterializedSource, materialize
from spark_jobs.engine.source.python_rows import python_rows
from spark_jobs.engine.source.source_access import SourceAccess
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.spi.storage import WarehouseStorage

_MISSING: Final = (
    "DATA_SOURCE_NOT_FOUND",
    "_LEGACY_ERROR_TEMP_1139",  # Avro, which is in a jar of its own
    "_LEGACY_ERROR_TEMP_1140",  # Kafka
)
_NOT_FOUND: Final = "[DATA_SOURCE_NOT_FOUND]"
# What brings the data sources that Spark knows and does not have, by their names.
_PACKAGES: Final = {
    "kafka": "org.apache.spark:spark-sql-kafka-0-10_2.13:<version of Spark>",
    "bigquery": "com.google.cloud.spark:spark-bigquery-with-dependencies_2.13:<version>",
    "snowflake": "net.snowflake:spark-snowflake_2.13:<version>",
    "delta": "io.delta:delta-spark_2.13:<version>",
}


def outside_rows(
    spark: SparkSession, source: OutsideSource, limits: TextLimits, access: SourceAccess
) -> DataFrame:
    """The rows of ``source``, of which none is read yet; raises as the functions for its kind."""
    if isinstance(source, JdbcSource):
        return database_rows(spark, source, access.secrets(source.connection))
    if isinstance(source, PythonSource):
        return python_rows(spark, source)
    return _spark_rows(spark, source, limits, access.password)


def kept_rows(
    spark: SparkSession, frame: DataFrame, storage: WarehouseStorage, scratch: str
) -> MaterializedSource:
    """All columns of ``frame``, evaluated once, in their order; raises as ``materialize``."""
    kept = materialize(spark, frame, frame.columns, storage, scratch)
    return replace(kept, frame=kept.frame.select(*map(quote, frame.columns)))


def _spark_rows(
    spark: SparkSession,
    source: SparkSource,
    limits: TextLimits,
    password: Callable[[str], str],
) -> DataFrame:
    """The rows of ``source``; ``password`` is that of a connection by its name.

    Raises:
        CatalogError: LIBRARY_MISSING: there is no such data source. SOURCE_UNREADABLE.
        NotSupportedError: files are limited to some locations, which could not be checked.
    """
    where = source_text(source)
    if limits.source_prefixes is not None:
        raise NotSupportedError(
            f"{where}: {PREFIX_SETTING} limits which files are read, and a data source of Spark "
            "may read any.",
            "Use file_source, or a task of a configuration without this limit.",
        )
    secrets = {name: password(each) for name, each in source.secret_options.items()}
    reader = spark.read.format(source.format).options(**source.options).options(**secrets)
    try:
        if source.schema is not None:
            reader = reader.schema(source.schema)
        return reader.load()
    except (PySparkException, Py4JJavaError) as error:
        is_missing = isinstance(error, PySparkException) and (error_condition(error) in _MISSING)
        if is_missing or _NOT_FOUND in str(error):
            raise _missing(where, source.format) from None
        what = "schema: " if isinstance(error, ParseException) else ""
        text = (
            str(error).strip().splitlines()[0]
            if isinstance(error, AnalysisException)
            else (shortened(str(error)))
        )
        raise CatalogError(
            ErrorCode.SOURCE_UNREADABLE,
            f"{where}: {what}{text}",
            "Check the source's format, options and schema.",
        ) from None


def _missing(where: str, name: str) -> CatalogError:
    package = _PACKAGES.get(name.lower(), "<group>:<artifact>:<version>")
    return CatalogError(
        ErrorCode.LIBRARY_MISSING,
        f"{where}: no jar of the session has the data source {name}.",
        f"Set conf={{'spark.jars.packages': '{package}'}}, or spark.jars to the paths of its jars.",
    )
