"""Checks INSERT against the schemas: which source column goes where, and the rows to store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructType

from spark_jobs.contract.inserts import (
    DEFAULT_AS,
    DEFAULT_OF,
    InsertStatement,
)
from spark_jobs.contract.sql_text import quote
from spark_jobs.contract.statements import InsertAction
from spark_jobs.engine.analysis.analyzer import declared_types, refuse_reserved_names, target_side
from spark_jobs.engine.analysis.assignments import AssignmentAnalyzer, split_name
from spark_jobs.engine.analysis.expression_analyzer import ExpressionAnalyzer
from spark_jobs.engine.analysis.expressions import Expression, Side
from spark_jobs.engine.analysis.opaque_columns import (
    opaque_types,
    refuse_all_columns,
    refuse_opaque,
)
from spark_jobs.engine.analysis.partition_specs import Constants
from spark_jobs.engine.analysis.store_assignment import ErrorLocation, stored
from spark_jobs.engine.runtime.sql_text import column_of, embedded, find_name, named
from spark_jobs.errors import AnalysisError, ErrorCode
from spark_jobs.spi import rows
from spark_jobs.spi.tables import TableHandle

# What expressions call the source.
SOURCE = f"{rows.RESERVED_PREFIX}source"
_TARGET = f"{rows.RESERVED_PREFIX}target"
_LABEL = "INSERT"


@dataclass(frozen=True, slots=True)
class AnalyzedInsert:
    """An INSERT whose names and types have been checked.

    ``values`` are the expressions of all table columns over the source's columns, which are named
    ``c0``, ``c1`` … by position; ``order_by`` are columns with ASC or DESC.
    """

    table: TableHandle
    values: Mapping[str, Expression]
    stored_types: Mapping[str, DataType]
    order_by: tuple[str, ...]

    @property
    def copied(self) -> dict[str, int] | None:
        """The position of every table column's source column; None if any value is computed."""
        positions = {}
        for name, value in self.values.items():
            column = value.copied_column(self.stored_types[name])
            if column is None:
                return None
            positions[name] = int(column[1:])
        return positions

    def rows(self, source: DataFrame) -> DataFrame:
        """The rows of ``source`` as the table stores them."""
        values = [
            named(embedded(value.text), f"c{index}")
            for index, value in enumerate(self.values.values())
        ]
        columns = [
            named(
                stored(f"c{i}", value.type, self.stored_types[name], ErrorLocation(_LABEL, name)),
                name,
            )
            for i, (name, value) in enumerate(self.values.items())
        ]
        return source.alias(SOURCE).selectExpr(*values).selectExpr(*columns)


def by_index(source: DataFrame) -> DataFrame:
    """``source`` with its columns named ``c0``, ``c1`` …"""
    return source.toDF(*(f"c{index}" for index in range(len(source.columns))))


def analyze_insert(
    spark: SparkSession,
    spec: InsertStatement,
    table: TableHandle,
    schema: StructType,
    partition: Constants,
) -> AnalyzedInsert:
    """Check names and types against the table and the source's ``schema``. Reads no data.

    ``partition`` has the constants of the statement's partition spec.

    Raises:
        RequestError: SYNTAX_ERROR.
        AnalysisError: the spec does not fit the schemas; the message names the column.
    """
    refuse_reserved_names(table.column_names, "target")
    types = declared_types(table)
    refuse_opaque(opaque_types(schema), schema.names, f"{_LABEL}: the source")
    target = target_side(spark, _TARGET, table)
    source = Side(SOURCE, by_index(spark.createDataFrame([], schema)))
    expressions = ExpressionAnalyzer(spark, target, source)
    columns = _source_columns(schema.names)
    if spec.by_name:
        refuse_opaque(target.opaque, [column.name for column in columns], f"{_LABEL} BY NAME")
        names = _by_name(table, [column.name for column in columns])
    else:
        names = _by_position(spec, table, len(columns))
    values = [
        (name, column.value(_default_of(table, name)))
        for name, column in zip(names, columns, strict=True)
    ]
    declared = {column.name: column.type for column in table.columns}
    given = {split_name(name)[0].lower() for name in names}
    columns_of = {each.name: each.column for each in table.partitioned_by}
    for name, constant in partition.items():
        column = columns_of[name]
        if column is not None and column.lower() not in given:
            values.append((quote(column), constant.as_sql(declared[column])))
    _require_partition_columns(table, [name for name, _ in values])
    action = InsertAction(tuple(text for _, text in values), tuple(name for name, _ in values))
    evolves = spec.schema_evolution
    assignments = AssignmentAnalyzer(expressions, table, target, source, types, evolves)
    return AnalyzedInsert(
        table=table,
        values=assignments.values(action, "source", _LABEL),
        stored_types=types,
        order_by=tuple(_sort_key(text, table) for text in spec.order_by),
    )


@dataclass(frozen=True, slots=True)
class _SourceColumn:
    """A column of the source: its values, the target's default, or either, depending on ``flag``.

    ``text`` is None if all rows get the default; ``flag`` is None if no choice is made per row.
    """

    name: str
    text: str | None
    flag: str | None

    def value(self, default: str) -> str:
        """The value as an expression over the source."""
        if self.text is None:
            return "DEFAULT"
        return self.text if self.flag is None else f"IF({self.flag}, {default}, {self.text})"


def _source_columns(names: Sequence[str]) -> list[_SourceColumn]:
    texts = {name: column_of(SOURCE, f"c{index}") for index, name in enumerate(names)}
    source_columns = []
    for index, name in enumerate(names):
        if not name.startswith(DEFAULT_OF):
            is_default = name.startswith(DEFAULT_AS)
            text = None if is_default else column_of(SOURCE, f"c{index}")
            flag = texts.get(f"{DEFAULT_OF}{index + 1}")
            source_columns.append(_SourceColumn(name.removeprefix(DEFAULT_AS), text, flag))
    return source_columns


def _default_of(table: TableHandle, name: str) -> str:
    found = find_name(split_name(name)[0], table.column_names)
    return next((each.default for each in table.columns if each.name == found), None) or "NULL"


def _by_position(spec: InsertStatement, table: TableHandle, count: int) -> list[str]:
    """The target columns of ``count`` source columns."""
    if spec.columns:
        wanted = list(spec.columns)
    else:
        refuse_all_columns(table, "leaving out the list of columns", _LABEL)
        _require_added_last(table)
        named_fields = {split_name(name)[0].lower() for name in spec.partition}
        fixed = {
            partition_field.column.lower()
            for partition_field in table.partitioned_by
            if partition_field.column is not None and partition_field.name.lower() in named_fields
        }
        added = list(map(quote, table.added_columns))
        known = [name for name in table.column_names if name not in table.added_columns]
        wanted = [quote(name) for name in known if name.lower() not in fixed] + added
        if count == len(table.column_names):
            wanted = [*map(quote, known), *added]
    if len(wanted) != count:
        raise AnalysisError(
            ErrorCode.EXPRESSION_INVALID,
            f"{_LABEL}: the source has {count} columns for {len(wanted)} columns of "
            f"{table.name}: {', '.join(wanted)}",
            "Name the columns that get a value, or insert BY NAME.",
        )
    return wanted


def _require_added_last(table: TableHandle) -> None:
    """Refuse new columns that would have other positions when the statement runs again."""
    added = table.added_columns
    if added and table.column_names[-len(added) :] != added:
        raise AnalysisError(
            ErrorCode.EXPRESSION_INVALID,
            f"{_LABEL} by position: {table.name} gets its new columns ({', '.join(added)}) before "
            "others, so the next rows would be stored in other columns",
            "Insert BY NAME.",
        )


def _by_name(table: TableHandle, names: Sequence[str]) -> list[str]:
    wanted: list[str] = []
    for name in names:
        column_name = find_name(name, table.column_names)
        if column_name is None:
            raise AnalysisError(
                ErrorCode.COLUMN_NOT_FOUND,
                f"{_LABEL} BY NAME: the source's column {name} is not a column of {table.name}",
                f"Its columns are: {', '.join(table.column_names)}.",
            )
        if quote(column_name) in wanted:
            raise AnalysisError(
                ErrorCode.AMBIGUOUS_REFERENCE,
                f"{_LABEL} BY NAME: the source has two columns {column_name}",
                "Rename one of them.",
            )
        wanted.append(quote(column_name))
    return wanted


def _require_partition_columns(table: TableHandle, names: Sequence[str]) -> None:
    """Refuse partition columns without a value: their rows would go where nobody expects them."""
    given = {split_name(name)[0].lower() for name in names}
    keys = {each.column for each in table.partitioned_by}
    for column in table.columns:
        is_key = column.name in keys
        if is_key and column.default is None and column.name.lower() not in given:
            raise AnalysisError(
                ErrorCode.COLUMN_NOT_FOUND,
                f"{_LABEL}: the partition column {column.name} of {table.name} gets no value",
                "Select it in the source, or name it in the partition spec.",
            )


def _sort_key(text: str, table: TableHandle) -> str:
    words = text.split()
    direction = words.pop() if len(words) > 1 and words[-1].upper() in ("ASC", "DESC") else "ASC"
    name = find_name(split_name(" ".join(words))[0], table.column_names)
    if name is None:
        raise AnalysisError(
            ErrorCode.COLUMN_NOT_FOUND,
            f"order_by: {text} is not a column of {table.name}",
            "Write a column, perhaps with ASC or DESC behind it.",
        )
    return f"{quote(name)} {direction}"
