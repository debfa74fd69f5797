"""Sources with one row for each key: window functions over the rows of another source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import StructField, StructType

from spark_jobs.contract.deduplication import DeduplicatedSource
from spark_jobs.contract.source_names import source_text
from spark_jobs.contract.sql_text import RESERVED_PREFIX, quote
from spark_jobs.engine.analysis.catalyst import view_columns
from spark_jobs.engine.analysis.compared_types import is_comparable
from spark_jobs.engine.analysis.opaque_columns import refuse_opaque_reads
from spark_jobs.engine.analysis.store_assignment import raised
from spark_jobs.engine.runtime.sql_text import named, text_literal
from spark_jobs.errors import AnalysisError, ErrorCode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RANK, _NUMBER, _FIRST = (f"{RESERVED_PREFIX}{name}_of_key" for name in ("rank", "number", "first"))


def deduplicated(spark: SparkSession, source: DeduplicatedSource) -> DataFrame:
    """The rows of ``source``, whose own source has a temporary view; no row is read yet.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND, AMBIGUOUS_REFERENCE or TYPE_MISMATCH, naming the column.
        NotSupportedError: a column of a type that Spark does not have.

    Raises, when the rows are evaluated:
        DataError: SOURCE_KEY_NOT_UNIQUE, naming the key; NOT_NULL_VIOLATION, naming the column.
    """
    rows = spark.sql(f"SELECT * FROM {quote(source.source)}")
    refuse_opaque_reads(spark, view_columns(rows), source_text(source))
    keys = [_column(source, rows.schema, name, "by") for name in source.by]
    order = [_column(source, rows.schema, name, "order_by") for name in source.order_by]
    for field in (*keys, *order):
        if field.nullable:
            rows = rows.where(
                f"CASE WHEN {quote(field.name)} IS NULL THEN {_null(source, field)} ELSE TRUE END"
            )
    chosen = {each.name for each in (*keys, *order)}
    others = [each for each in rows.schema if each.name not in chosen]
    choose = _any_of if source.tie == "any" else _the_only
    kept = choose(source, rows, keys, order, others)
    return kept.selectExpr(*map(quote, rows.columns))


def _any_of(
    source: DeduplicatedSource,
    rows: DataFrame,
    keys: list[StructField],
    order: list[StructField],
    others: list[StructField],
) -> DataFrame:
    """The last row by ``order``, then by all other columns, so that it is always the same one."""
    sorted_by = [*order, *(each for each in others if is_comparable(each.dataType))]
    number = named(f"row_number() OVER ({_window(keys, sorted_by)})", _NUMBER)
    return rows.selectExpr("*", number).where(f"{_NUMBER} = 1")


def _the_only(
    source: DeduplicatedSource,
    rows: DataFrame,
    keys: list[StructField],
    order: list[StructField],
    others: list[StructField],
) -> DataFrame:
    """The last row by ``order``; a second one must be equal in all columns."""
    window = f"OVER ({_window(keys, order)})"
    values = ", ".join(quote(each.name) for each in others)
    row = f"struct({values})"
    has_first = bool(others) and all(is_comparable(each.dataType) for each in others)
    ranked = rows.selectExpr(
        "*",
        named(f"rank() {window}", _RANK),
        named(f"row_number() {window}", _NUMBER),
        *([named(f"first({row}) {window}", _FIRST)] if has_first else ()),
    )
    is_same = f"{row} <=> {_FIRST}" if has_first else "FALSE" if others else "TRUE"
    return ranked.where(f"{_RANK} = 1").where(
        f"CASE WHEN {_NUMBER} = 1 THEN TRUE WHEN {is_same} THEN FALSE ELSE {_tie(source, keys)} END"
    )


def _window(keys: list[StructField], order: list[StructField]) -> str:
    partition = ", ".join(quote(each.name) for each in keys)
    terms = [f"{quote(each.name)} DESC NULLS LAST" for each in order]
    return f"PARTITION BY {partition} ORDER BY {', '.join(terms) or 'NULL'}"


def _column(source: DeduplicatedSource, schema: StructType, name: str, field: str) -> StructField:
    matching = [each for each in schema if each.name.lower() == name.lower()]
    where = f"{source_text(source)}: {field}"
    if not matching:
        raise AnalysisError(
            ErrorCode.COLUMN_NOT_FOUND,
            f"{where}: {name} is not a column of it",
            f"Its columns are: {', '.join(schema.names)}. Give a nested field a name in a query "
            "(sql_source).",
            name=name,
        )
    if len(matching) > 1:
        raise AnalysisError(
            ErrorCode.AMBIGUOUS_REFERENCE,
            f"{where}: it has several columns {name}",
            "Give them different names in a query (sql_source).",
        )
    if not is_comparable(matching[0].dataType):
        kind = matching[0].dataType.simpleString()
        raise AnalysisError(
            ErrorCode.TYPE_MISMATCH,
            f"{where}: {name} is of the type {kind}, of which no value is the greatest",
            "Use a column of another type, or a value of it in a query (sql_source).",
        )
    return matching[0]


def _null(source: DeduplicatedSource, column: StructField) -> str:
    role = "the key" if column.name.lower() in map(str.lower, source.by) else "the order"
    return raised(
        ErrorCode.NOT_NULL_VIOLATION,
        text_literal(f"{source_text(source)}: {column.name} of {role} is NULL in a row"),
        "Leave such rows out, or give them a value, in a query below it (sql_source).",
    )


def _tie(source: DeduplicatedSource, keys: list[StructField]) -> str:
    key = f"to_json(struct({', '.join(quote(each.name) for each in keys)}))"
    equal = f" and equal values of {', '.join(source.order_by)}" if source.order_by else ""
    start = text_literal(f"{source_text(source)}: different rows have the key ")
    return raised(
        ErrorCode.SOURCE_KEY_NOT_UNIQUE,
        f"concat({start}, {key}, {text_literal(equal)})",
        "Add a column to order_by that tells which row is the last, or keep any with tie='any'.",
    )
