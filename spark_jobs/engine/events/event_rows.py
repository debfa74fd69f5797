"""Change events as rows, whatever their format: the columns of the table, and what happened.

Beside the columns of the table, a row has ``_change_type`` (``insert``, ``update_before``,
``update_after``, ``delete``), and the sequence by the names that the target has for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import StructField, StructType

from spark_jobs.contract.cdc import CdcSource
from spark_jobs.contract.source_names import source_text
from spark_jobs.contract.sql_text import quote
from spark_jobs.contract.table_versions import (
    CHANGE_TYPE,
    DELETE,
    INSERT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
)
from spark_jobs.engine.analysis.catalyst import view_columns
from spark_jobs.engine.analysis.opaque_columns import refuse_opaque_reads
from spark_jobs.engine.analysis.store_assignment import raised
from spark_jobs.engine.events.documents import AFTER_MOVE, BEFORE_MOVE, OPERATION, document_rows
from spark_jobs.engine.runtime.sql_text import named, text_literal
from spark_jobs.errors import AnalysisError, ErrorCode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_QUERY = "Give columns other names, or leave events out, in a query below it (sql_source)."


def event_rows(spark: SparkSession, source: CdcSource) -> DataFrame:
    """Every event of ``source``, whose own source has a temporary view; no row is read yet.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND or AMBIGUOUS_REFERENCE, naming the column.
        NotSupportedError: a column of a type that Spark does not have, or a document of a form that
            is not read.

    Raises, when the rows are evaluated:
        DataError: CHANGE_EVENT_INVALID, naming the operation; NOT_NULL_VIOLATION, naming the
            column.
    """
    rows = spark.sql(f"SELECT * FROM {quote(source.source)}")
    refuse_opaque_reads(spark, view_columns(rows), source_text(source))
    rows = column_rows(source, rows) if source.format == "columns" else document_rows(source, rows)
    _require_distinct(source, rows.schema)
    columns = [column_of(source, rows.schema, name, "keys") for name in source.keys]
    columns += [column_of(source, rows.schema, e.column, "sequence") for e in source.sequence]
    for name in source.unchanged:
        column_of(source, rows.schema, name, "unchanged")
    return rows.where(_is_change(source, columns)).selectExpr(
        *(quote(name) for name in rows.columns if name != OPERATION),
        named(_change_type(source), CHANGE_TYPE),
    )


def column_rows(source: CdcSource, rows: DataFrame) -> DataFrame:
    """The rows of events that have a column for each column of the table."""
    _require_distinct(source, rows.schema, but=(CHANGE_TYPE,))
    operation = column_of(source, rows.schema, source.operation, "operation")
    left_out = {operation.name.lower()}
    left_out |= {column_of(source, rows.schema, e, "without").name.lower() for e in source.without}
    sequence = []
    for sequence_column in source.sequence:
        column_name = column_of(source, rows.schema, sequence_column.path, "sequence").name
        left_out.add(column_name.lower())
        sequence.append(named(quote(column_name), sequence_column.column))
    kept = [quote(name) for name in rows.columns if name.lower() not in left_out]
    told = named(f"CAST({quote(operation.name)} AS STRING)", OPERATION)
    return rows.selectExpr(*kept, *sequence, told)


def column_of(source: CdcSource, schema: StructType, name: str, field: str) -> StructField:
    """The column that a parameter names.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND, AMBIGUOUS_REFERENCE.
    """
    matching = [each for each in schema if each.name.lower() == name.lower()]
    where = f"{source_text(source)}: {field}"
    if not matching:
        known = ", ".join(each for each in schema.names if each != OPERATION)
        raise AnalysisError(
            ErrorCode.COLUMN_NOT_FOUND,
            f"{where}: {name} is not a column of its events",
            f"Their columns are: {known}. {_QUERY}",
            name=name,
        )
    if len(matching) > 1:
        problem = f"{where}: its events have several columns {name}"
        raise AnalysisError(ErrorCode.AMBIGUOUS_REFERENCE, problem, _QUERY)
    return matching[0]


def _require_distinct(source: CdcSource, schema: StructType, but: tuple[str, ...] = ()) -> None:
    """Refuse events with columns of one name, or of a name that this project gives a column."""
    names = [each.lower() for each in schema.names]
    own = [*source.technical, *([source.deleted.lower()] if source.deleted else [])]
    for name in names:
        is_own = name in own and name not in but and name != source.operation.lower()
        if names.count(name) > 1 or (is_own and not but):
            problem = f"{source_text(source)}: its events have several columns {name}"
            if is_own:
                problem = f"{source_text(source)}: {name} is a column of its events already"
            raise AnalysisError(ErrorCode.AMBIGUOUS_REFERENCE, problem, _QUERY)


def _is_change(source: CdcSource, columns: list[StructField]) -> str:
    """Whether an event changes a row; what nobody knows to apply raises.

    One expression: Spark may move the parts of several filters apart, and what is ignored may have
    neither key nor sequence.
    """
    values, who = source.values, source_text(source)
    truncated = raised(
        ErrorCode.CHANGE_EVENT_INVALID,
        text_literal(f"{who}: an event says that the table was emptied (truncate)"),
        "Empty the target by TRUNCATE TABLE in a task before it, if that is meant, and leave the "
        "event out: name its value in ignore of values.",
    )
    known = text_literal(f" is none of: {', '.join(values.changes)}")
    start = text_literal(f"{who}: {source.operation}: the operation ")
    unknown = raised(
        ErrorCode.CHANGE_EVENT_INVALID,
        f"concat({start}, coalesce(concat('''', substring({OPERATION}, 1, 100), ''''), 'NULL'), "
        f"{known})",
        "Say in values what it means, or name it there in ignore.",
    )
    nulls = (f"WHEN {quote(each.name)} IS NULL THEN {_null(source, each)}" for each in columns)
    is_told = f"CASE {' '.join(nulls)} ELSE TRUE END"
    cases = [
        ((*values.changes, BEFORE_MOVE, AFTER_MOVE), is_told),
        (values.ignore, "FALSE"),
        (values.truncate, truncated),
    ]
    told = [f"WHEN {_among(names)} THEN {then}" for names, then in cases if names]
    return f"CASE {' '.join(told)} ELSE {unknown} END"


def _change_type(source: CdcSource) -> str:
    values = source.values
    pairs = (
        ((*values.insert, AFTER_MOVE), INSERT),
        (values.update, UPDATE_AFTER),
        (values.delete, DELETE),
        ((*values.before, BEFORE_MOVE), UPDATE_BEFORE),
    )
    told = " ".join(f"WHEN {_among(names)} THEN '{kind}'" for names, kind in pairs if names)
    return f"CASE {told} END"


def _among(names: tuple[str, ...]) -> str:
    return f"{OPERATION} IN ({', '.join(map(text_literal, names))})"


def _null(source: CdcSource, column: StructField) -> str:
    is_key = column.name.lower() in map(str.lower, source.keys)
    role = "the key" if is_key else "the sequence"
    return raised(
        ErrorCode.NOT_NULL_VIOLATION,
        text_literal(f"{source_text(source)}: {column.name} of {role} is NULL in an event"),
        "Leave such events out, or give them a value, in a query below it (sql_source).",
    )
