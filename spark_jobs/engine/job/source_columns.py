"""The columns of a source, as those of a new table; no row of it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql.types import StructField

from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.spark_types import parse_type
from spark_jobs.contract.statements import ColumnSpec
from spark_jobs.engine.analysis.opaque_columns import opaque_types, refuse_opaque
from spark_jobs.engine.analysis.schema_evolution import ddl_of
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.runtime.progress import Progress
from spark_jobs.engine.source.source_access import SourceAccess
from spark_jobs.engine.source.sources import Sources
from spark_jobs.errors import NotSupportedError, RequestError

if TYPE_CHECKING:
    from spark_jobs.spi.connector import Connector


def source_columns(
    request: JobRequest,
    spark: SparkSession,
    connector: Connector,
    progress: Progress,
    source: str,
    access: SourceAccess,
) -> tuple[ColumnSpec, ...]:
    """The columns of the request's ``source``, which all may be NULL.

    Raises:
        JobError: as ``open_source``.
        NotSupportedError: no table has the type of a column.
    """
    moment = StatementTime(spark)
    sources = Sources(spark, connector, request, None, "", progress, moment, access=access)
    try:
        sources.open()
        schema = sources[source].frame.schema
    finally:
        sources.close()
    refuse_opaque(opaque_types(schema), schema.names, source)
    return tuple(_column(each) for each in schema)


def _column(field: StructField) -> ColumnSpec:
    kind = ddl_of(field.dataType, (field.name,))
    try:
        parse_type(kind)
    except RequestError:
        raise NotSupportedError(
            f"column {field.name} of the source has the type {kind.upper()}, which no table has.",
            "Cast it in the query.",
        ) from None
    return ColumnSpec(field.name, kind, comment=field.metadata.get("comment"))
