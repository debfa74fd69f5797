"""The searched CASE: which clause applies to a joined row, and the values that it assigns.

After Trino's plan for MERGE: ``CASE WHEN present AND condition THEN …`` in source order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import AtomicType

from spark_jobs.contract.identifiers import quote
from spark_jobs.engine.analysis.analyzed import AnalyzedMerge
from spark_jobs.engine.analysis.expressions import NULL, Expression
from spark_jobs.engine.analysis.store_assignment import ErrorLocation, stored
from spark_jobs.engine.runtime.names import column_of
from spark_jobs.engine.write.redistribution import SPREAD_SEED
from spark_jobs.errors import DataError, ErrorCode, to_marker
from spark_jobs.spi import rows

SOURCE_PRESENT = "__merge_source_present"
MATCHED = "__merge_matched"


def with_case_number(joined: DataFrame, merge: AnalyzedMerge) -> DataFrame:
    """``joined`` with ``__merge_matched`` (boolean) and ``__merge_case_number`` (int, -1: none)."""
    target_present = F.col(rows.ROW_ID).isNotNull()
    source_present = F.col(SOURCE_PRESENT).isNotNull()
    applies = {
        "matched": target_present & source_present,
        "not_matched": ~target_present,
        "not_matched_by_source": ~source_present,
    }
    number = F.lit(rows.NO_CASE)
    for case in reversed(merge.cases):
        holds = applies[case.when]
        if case.condition is not None:
            holds = holds & case.condition.column
        number = F.when(holds, F.lit(case.number)).otherwise(number)
    return joined.withColumn(MATCHED, applies["matched"]).withColumn(rows.CASE_NUMBER, number)


def with_operation(joined: DataFrame, merge: AnalyzedMerge) -> DataFrame:
    """``joined`` with ``__merge_operation`` (tinyint): that of the clause that applies."""
    chosen = F.lit(rows.NO_OPERATION)
    for case in merge.cases:
        applies = F.col(rows.CASE_NUMBER) == case.number
        chosen = F.when(applies, F.lit(case.operation)).otherwise(chosen)
    return joined.withColumn(rows.OPERATION, chosen.cast("tinyint"))


def with_values(
    joined: DataFrame,
    merge: AnalyzedMerge,
    values: Mapping[int, Mapping[str, Expression]],
    copied: Collection[str],
    travelling: Sequence[str] = (),
) -> DataFrame:
    """``joined``'s change columns and the assigned and copied table columns, in the table's order.

    ``values[case_number]`` are the expressions to evaluate for a case. Each is evaluated once, and
    only on the rows of its case. ``__merge_spread_seed`` (bigint) depends only on the joined row,
    not on assigned values, which may be nondeterministic. ``copied`` columns keep the target's
    value; so do ``travelling`` ones where no case assigns another.

    Raises, when the frame is evaluated:
        DataError: KEY_CHANGED: an UPDATE assigns another value to a key column.
    """
    is_case = {number: F.col(rows.CASE_NUMBER) == number for number in values}
    raw = {
        (number, name): F.when(is_case[number], expression.column).alias(
            f"__merge_value_{number}_{index}"
        )
        for number, assigned in values.items()
        for index, (name, expression) in enumerate(assigned.items())
        if expression is not NULL
    }
    change = [rows.OPERATION, rows.CASE_NUMBER, rows.ROW_ID, SPREAD_SEED]
    seeded = joined.withColumn(SPREAD_SEED, _spread_seed(joined, merge))
    kept = [F.col(column_of(merge.target_alias, name)) for name in copied]
    old = {
        name: F.col(column_of(merge.target_alias, name)).alias(f"__merge_old_{index}")
        for index, name in enumerate(travelling)
    }
    evaluated = seeded.select(*change, *raw.values(), *kept, *old.values())
    initial = {name: F.col(f"__merge_old_{index}") for index, name in enumerate(travelling)}
    columns = [
        F.col(quote(name))
        if name in copied
        else _assigned_column(merge, name, values, is_case, initial.get(name))
        for name in merge.table.column_names
        if name in copied or name in old or any(name in assigned for assigned in values.values())
    ]
    return evaluated.select(*change, *columns)


def _unchanged(value: Column, old: Column, location: ErrorLocation) -> Column:
    """``old``, or an error if ``value`` differs from it."""
    problem = DataError(
        ErrorCode.KEY_CHANGED,
        f"{location.clause} would change {location.path}, a column of the primary key",
        "Leave the column out, or delete the row and insert it anew.",
    )
    return F.when(value.eqNullSafe(old), old).otherwise(F.raise_error(F.lit(to_marker(problem))))


def _spread_seed(joined: DataFrame, merge: AnalyzedMerge) -> Column:
    source = [F.col(column_of(merge.source_alias, name)) for name in sorted(merge.source_columns)]
    types = joined.select(*source).schema.fields if source else []
    hashable = [
        column
        for column, field in zip(source, types, strict=True)
        if isinstance(field.dataType, AtomicType)
    ]
    return F.xxhash64(rows.ROW_ID, *hashable)


def _assigned_column(
    merge: AnalyzedMerge,
    name: str,
    values: Mapping[int, Mapping[str, Expression]],
    is_case: Mapping[int, Column],
    old: Column | None,
) -> Column:
    labels = {case.number: case.label for case in merge.cases}
    updates = {case.number for case in merge.cases if case.operation == rows.UPDATE}
    chosen = F.lit(None).cast(merge.target_types[name]) if old is None else old
    for number, assigned in values.items():
        # A row that no case gives a value is NULL already, unless it keeps the old one.
        if name not in assigned or (old is None and assigned[name] is NULL):
            continue
        location = ErrorLocation(labels[number], name)
        value = F.lit(None).cast(merge.target_types[name])
        if assigned[name] is not NULL:
            raw = F.col(f"__merge_value_{number}_{list(assigned).index(name)}")
            value = stored(raw, assigned[name].type, merge.stored_types[name], location)
        if old is not None and number in updates and name in merge.table.key_columns:
            value = _unchanged(value, old, location)
        chosen = F.when(is_case[number], value).otherwise(chosen)
    return chosen.alias(name)
