"""Columns of types that Spark does not have: a statement that uses one is refused.

Frames have such a column as a STRING with a note of its type. In the frame of a source its value
is an error, so that even a use that is not seen here ends the statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from spark_jobs.contract.sql_text import quote
from spark_jobs.errors import NotSupportedError, to_marker
from spark_jobs.spi.rows import RESERVED_PREFIX
from spark_jobs.spi.tables import TableHandle

_TYPE: Final = f"{RESERVED_PREFIX}opaque_type"


def opaque_fields(table: TableHandle) -> Iterator[StructField]:
    """The opaque columns of a table, for a frame."""
    for column in table.opaque_columns:
        yield StructField(column.name, StringType(), metadata={_TYPE: column.type})


def opaque_types(schema: StructType) -> dict[str, str]:
    """The types of the opaque columns of a frame, by name."""
    return {each.name: each.metadata[_TYPE] for each in schema if _TYPE in each.metadata}


def with_opaque_columns(frame: DataFrame, table: TableHandle) -> DataFrame:
    """``frame``, which has the rows of ``table``, with the opaque columns behind all others."""
    values = [
        F.raise_error(to_marker(_refusal(str(table.name), field.name, field.metadata[_TYPE])))
        .cast(field.dataType)
        .alias(field.name, metadata=field.metadata)
        for field in opaque_fields(table)
    ]
    return frame.select("*", *values) if values else frame


def refuse_opaque(types: Mapping[str, str], names: Iterable[str], where: str) -> None:
    """Refuse any of ``types``, the opaque columns of a table, among ``names``, in any case.

    Raises:
        NotSupportedError: names the column and its type.
    """
    used = {name.lower() for name in names}
    for name, kind in types.items():
        if name.lower() in used:
            raise _refusal(where, name, kind)


def refuse_opaque_reads(
    spark: SparkSession, reads: Mapping[str, Iterable[str]], where: str
) -> None:
    """As ``refuse_opaque``, of the columns that a query reads, by the names of its views."""
    for view, names in reads.items():
        refuse_opaque(opaque_types(spark.table(quote(view)).schema), names, where)


def refuse_all_columns(table: TableHandle, what: str, where: str) -> None:
    """Refuse ``what``, which means all columns of a table, if some are opaque.

    Raises:
        NotSupportedError: names the column and its type.
    """
    types = opaque_types(StructType(list(opaque_fields(table))))
    refuse_opaque(types, types, f"{where}: {what} means all columns of {table.name}")


def _refusal(where: str, column: str, kind: str) -> NotSupportedError:
    return NotSupportedError(
        f"{where}: column {column} has the type {kind}, which Spark does not have, so that "
        "statements cannot use it",
        "Name the other columns, also instead of *: rows keep their values in this one.",
    )
