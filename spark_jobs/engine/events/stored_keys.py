"""Keys of events as the target stores them: what it keeps as one key is one key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import (
    AtomicType,
    CharType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    StringType,
    VarcharType,
)

from spark_jobs.contract.cdc import CdcSource
from spark_jobs.contract.event_clauses import event_on
from spark_jobs.contract.source_names import source_text
from spark_jobs.contract.sql_text import quote
from spark_jobs.contract.statements import MergeSpec, Statement
from spark_jobs.engine.analysis.analyzer import declared_types
from spark_jobs.engine.analysis.store_assignment import ErrorLocation, frame_type, stored
from spark_jobs.engine.events.event_rows import column_of
from spark_jobs.engine.runtime.sql_text import find_name, named
from spark_jobs.errors import AnalysisError, ErrorCode
from spark_jobs.spi.tables import TableHandle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def stored_keys(
    source: CdcSource, rows: DataFrame, statement: Statement, table: TableHandle | None
) -> DataFrame:
    """``rows`` with keys as ``table`` stores them, if ``statement`` finds its rows by these keys.

    Raises:
        AnalysisError: TYPE_MISMATCH: the table would store different keys as one.

    Raises, when the rows are evaluated:
        DataError: VALUE_NOT_STORABLE, naming the key.
    """
    if table is None or not _finds_by_keys(source, statement):
        return rows
    types, casts = declared_types(table), {}
    for key in source.keys:
        field, name = column_of(source, rows.schema, key, "keys"), find_name(key, list(types))
        if name is None:
            continue
        given, declared = field.dataType, types[name]
        wanted = frame_type(declared.simpleString())
        has_length = isinstance(declared, CharType | VarcharType)
        if not isinstance(given, AtomicType) or (keeps_order(given, wanted) and not has_length):
            continue
        if not isinstance(given, StringType) and not isinstance(wanted, StringType):
            raise AnalysisError(
                ErrorCode.TYPE_MISMATCH,
                f"{source_text(source)}: keys: {key} is of the type {given.simpleString()} in "
                f"events, and of {declared.simpleString()} in {table.name}, which may store "
                "different keys as one",
                "Give both the same type, by a cast in a query (sql_source).",
            )
        location = ErrorLocation(f"{source_text(source)}: keys", field.name)
        casts[field.name] = stored(quote(field.name), given, declared, location)
    columns = (named(casts[e], e) if e in casts else quote(e) for e in rows.columns)
    return rows.selectExpr(*columns) if casts else rows


def keeps_order(given: DataType, kept: DataType) -> bool:
    """Whether values of one type are stored as the other without a loss, in the same order.

    A number that is too large is an error when it is stored.
    """
    if isinstance(kept, IntegralType | DecimalType):
        return _scale(given) is not None and (_scale(given) or 0) <= (_scale(kept) or 0)
    if isinstance(kept, DoubleType):
        return isinstance(given, FloatType | DoubleType)
    return type(given) is type(kept)


def _scale(kind: DataType) -> int | None:
    """The digits behind the point; None: the type is of no exact numbers."""
    if isinstance(kind, DecimalType):
        return kind.scale
    return 0 if isinstance(kind, IntegralType) else None


def _finds_by_keys(source: CdcSource, statement: Statement) -> bool:
    if not source.net:  # versions, which have the keys of their events
        return True
    return (
        isinstance(statement, MergeSpec)
        and statement.source == source.name
        and statement.on == event_on(source, statement.target_alias, statement.source_alias)
    )
