"""Source rows of partitions that nobody expects: set aside, for a table of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from spark_jobs.contract.inserts import DEFAULT_AS, DEFAULT_OF
from spark_jobs.contract.request import TableName
from spark_jobs.contract.result import GuardReport, Metrics
from spark_jobs.contract.side_outputs import SideOutput, table_text
from spark_jobs.contract.sql_text import RESERVED_PREFIX, quote
from spark_jobs.engine.analysis.expressions import Expression
from spark_jobs.engine.analysis.store_assignment import ErrorLocation, frame_type, stored
from spark_jobs.engine.changes.kept_rows import keep, remove_side_folder
from spark_jobs.engine.runtime.sql_text import type_text
from spark_jobs.engine.source.materialized import materialize
from spark_jobs.errors import AnalysisError, CatalogError, ErrorCode, NotSupportedError
from spark_jobs.spi.connector import find_table

if TYPE_CHECKING:
    from spark_jobs.engine.analysis.partition_specs import Constants
    from spark_jobs.engine.source.open_source import OpenSource
    from spark_jobs.engine.write.statement_run import SparkRun
    from spark_jobs.spi.tables import PartitionField

_PLACE: Final = "quarantine_table"
_VALUE: Final = f"{RESERVED_PREFIX}partition_"


@dataclass(frozen=True, slots=True)
class LateRows:
    """The rows of a source without the late ones: ``rest``; those are ``count``, kept as ``side``.

    ``table``: where they go.
    """

    rest: DataFrame
    count: int
    table: str
    side: tuple[SideOutput, ...]

    def reported(self, metrics: Metrics) -> Metrics:
        """``metrics`` with the number of late rows."""
        noun = "row" if self.count == 1 else "rows"
        seen = f"{self.count:,} {noun} for {self.table}"
        report = GuardReport("outside_partitions", "quarantine", seen, held=True)
        return replace(metrics, guards=(*metrics.guards, report))


@dataclass(frozen=True, slots=True)
class Placing:
    """How a statement stores source rows in partitions.

    ``values`` are the expressions of columns over the source, which is called ``alias``, its
    columns by their names or, ``by_number``, ``c0``, ``c1`` and so on; ``types`` are those of the
    stored values.
    """

    alias: str
    values: Mapping[str, Expression]
    types: Mapping[str, DataType]
    by_number: bool = False


def set_aside(
    run: SparkRun[Any], opened: OpenSource, placing: Placing, expected: Sequence[Constants]
) -> LateRows:
    """Split the rows of a source; the late ones are kept, unless this is a dry run.

    Raises:
        JobError: as the source; VALUE_NOT_STORABLE for the value of a partition column.
    """
    table, names = run.guards.quarantine_table or "", opened.frame.columns
    frame = opened.frame
    if not opened.is_pinned:
        frame = materialize(run.spark, frame, names, run.connector.storage, run.scratch).frame
    source = frame.selectExpr(*map(quote, names))
    if placing.by_number:
        source = source.toDF(*(f"c{number}" for number in range(len(names))))
    fields = run.table.partitioned_by
    values = [placing.values[e.source].column.alias(_name(at)) for at, e in enumerate(fields)]
    placed = source.alias(placing.alias).select(F.col(f"{quote(placing.alias)}.*"), *values)
    placed = run.moment.fixed(placed)
    is_expected = F.coalesce(F.expr(_condition(fields, placing, expected)), F.lit(False))
    rest, late = (
        found.drop(*map(_name, range(len(fields)))).toDF(*names)
        for found in (placed.where(is_expected), placed.where(~is_expected))
    )
    if run.dry_run:
        return LateRows(rest, late.count(), table, ())
    with run.progress.phase("quarantine"):
        side = keep(run, run.spark, "quarantine", table, late)
    if not side.rows:
        remove_side_folder(run.connector.storage, run.side_folder)
        return LateRows(rest, 0, table, ())
    run.progress.say(f"{side.rows} rows of other partitions for {table}")
    return LateRows(rest, side.rows, table, (side,))


def _condition(
    fields: Sequence[PartitionField], placing: Placing, expected: Sequence[Constants]
) -> str:
    types = {each.name: each.type for each in fields}
    texts = {
        field.name: stored(
            _name(at),
            placing.values[field.source].type,
            placing.types[field.source],
            ErrorLocation(_PLACE, field.name),
        )
        for at, field in enumerate(fields)
    }
    specs = (
        " AND ".join(
            f"({texts[name]} <=> {constant.as_sql(types[name])})" for name, constant in spec.items()
        )
        for spec in expected
    )
    return " OR ".join(f"({each or 'TRUE'})" for each in specs) or "FALSE"


def _name(number: int) -> str:
    return f"{_VALUE}{number}"


def require_quarantine(run: SparkRun[Any], opened: OpenSource) -> None:
    """Check that late rows of a source can be stored, whatever their values are.

    Raises:
        CatalogError: TABLE_NOT_FOUND, with the statement that makes the table.
        AnalysisError: COLUMN_NOT_FOUND, TYPE_MISMATCH or EXPRESSION_INVALID.
        NotSupportedError: partitions are computed, the table has a key, or the source has DEFAULT.
    """
    _require_plain(run, opened.frame.columns)
    given = {each.name: each.dataType for each in opened.frame.schema}
    name = TableName.parse(run.guards.quarantine_table or "")
    text = table_text(str(name), {column: type_text(kind) for column, kind in given.items()})
    table = find_table(run.connector.metadata, name)
    if table is None:
        problem = f"{_PLACE}: there is no table {name}."
        raise CatalogError(ErrorCode.TABLE_NOT_FOUND, problem, f"Make it: {text}")
    run.connector.metadata.require_writable(table)
    if table.key_columns:
        raise NotSupportedError(
            f"{_PLACE}: {name} has a primary key, under which late rows would replace each other.",
            f"Name a table without one: {text}",
        )
    columns = {column.name.lower(): column for column in table.columns}
    for column, kind in given.items():
        target = columns.pop(column.lower(), None)
        if target is None:
            problem = f"{_PLACE}: {name} has no column {column}, which the source has."
            remedy = f"Add it with AlterTableOperator. A table that fits: {text}"
            raise AnalysisError(ErrorCode.COLUMN_NOT_FOUND, problem, remedy)
        if "CHAR(" in target.type.upper() or frame_type(target.type) != kind or not target.nullable:
            null = "" if target.nullable else " NOT NULL"
            raise AnalysisError(
                ErrorCode.TYPE_MISMATCH,
                f"{_PLACE}: column {column} of {name} is {target.type}{null}, and has to take "
                f"every {type_text(kind)} of the source, and NULL.",
                f"A table that fits: {text}",
            )
    for extra in columns.values():
        if not extra.nullable and extra.default is None:
            problem = (
                f"{_PLACE}: column {extra.name} of {name} is NOT NULL, and the source lacks it."
            )
            raise AnalysisError(ErrorCode.EXPRESSION_INVALID, problem, f"A table that fits: {text}")


def _require_plain(run: SparkRun[Any], names: Sequence[str]) -> None:
    for field in run.table.partitioned_by:
        if field.is_computed:
            raise NotSupportedError(
                f"{_PLACE}: the partition field {field.name} of {run.table.name} is computed from "
                f"{field.source}, so late rows are not told apart by the source's values.",
                "Split the source in two statements of a list, by a condition on that column.",
            )
    if any(name.startswith((DEFAULT_AS, DEFAULT_OF)) for name in names):
        raise NotSupportedError(
            f"{_PLACE}: the source has DEFAULT among its values, which no other table can store.",
            "Write the values, or leave the column out.",
        )
    lowered = [name.lower() for name in names]
    if len(set(lowered)) < len(lowered):
        raise NotSupportedError(
            f"{_PLACE}: two columns of the source have one name: {', '.join(names)}.",
            "Give each its own.",
        )
