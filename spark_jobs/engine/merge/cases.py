"""The searched CASE: which clause applies to a joined row, and the values that it assigns.

After Trino's plan for MERGE: ``CASE WHEN present AND condition THEN …`` in source order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import AtomicType

from spark_jobs.contract.sql_text import RESERVED_PREFIX, quote
from spark_jobs.engine.analysis.analyzed import AnalyzedMerge
from spark_jobs.engine.analysis.expressions import NULL, Expression, LongExpression
from spark_jobs.engine.analysis.long_expressions import selected
from spark_jobs.engine.analysis.store_assignment import ErrorLocation, stored
from spark_jobs.engine.runtime.sql_text import column_of, embedded, failing, named, null_of
from spark_jobs.engine.write.recorder import OLD_ROW
from spark_jobs.engine.write.redistribution import SPREAD_SEED
from spark_jobs.errors import DataError, ErrorCode
from spark_jobs.spi import rows

SOURCE_PRESENT = "__merge_source_present"
MATCHED = "__merge_matched"


def with_case_number(joined: DataFrame, merge: AnalyzedMerge) -> DataFrame:
    """``joined`` with ``__merge_matched`` (boolean) and ``__merge_case_number`` (int, -1: none)."""
    applies = {
        "matched": f"{rows.ROW_ID} IS NOT NULL AND {SOURCE_PRESENT} IS NOT NULL",
        "not_matched": f"{rows.ROW_ID} IS NULL",
        "not_matched_by_source": f"{SOURCE_PRESENT} IS NULL",
    }
    branches = [
        f"WHEN {applies[case.when]}"
        f"{'' if case.condition is None else f' AND {embedded(case.condition.short_text)}'}"
        f" THEN {case.number}"
        for case in merge.cases
    ]
    number = f"CASE {' '.join(branches)} ELSE {rows.NO_CASE} END"
    texts = "*", named(applies["matched"], MATCHED), named(number, rows.CASE_NUMBER)
    return selected(joined, texts, _long(case.condition for case in merge.cases))


def with_operation(joined: DataFrame, merge: AnalyzedMerge) -> DataFrame:
    """``joined`` with ``__merge_operation`` (tinyint): that of the clause that applies."""
    branches = " ".join(f"WHEN {case.number} THEN {case.operation}" for case in merge.cases)
    chosen = f"CASE {rows.CASE_NUMBER} {branches} ELSE {rows.NO_OPERATION} END"
    return joined.selectExpr("*", named(f"CAST({chosen} AS TINYINT)", rows.OPERATION))


def with_values(
    joined: DataFrame,
    merge: AnalyzedMerge,
    values: Mapping[int, Mapping[str, Expression]],
    copied: Collection[str],
    travelling: Sequence[str] = (),
    recorded: Sequence[str] = (),
    *,
    spreads: bool = True,
) -> DataFrame:
    """``joined``'s change columns and the assigned and copied table columns, in the table's order.

    ``values[case_number]`` are the expressions to evaluate for a case. Each is evaluated once, and
    only on the rows of its case. ``__merge_spread_seed`` (bigint) depends only on the joined row,
    not on assigned values, which may be nondeterministic; it is 0 unless ``spreads``, because only
    new rows need it. ``copied`` columns keep the target's
    value; so do ``travelling`` ones where no case assigns another. ``OLD_ROW`` has the target's
    values of the ``recorded`` columns, if there are any.

    Raises, when the frame is evaluated:
        DataError: KEY_CHANGED: an UPDATE assigns another value to a key column.
    """
    change = [rows.OPERATION, rows.CASE_NUMBER, rows.ROW_ID]
    old = {name: f"{RESERVED_PREFIX}old_{index}" for index, name in enumerate(travelling)}
    texts = (
        *change,
        named(_spread_seed(joined, merge) if spreads else "0L", SPREAD_SEED),
        *(
            f"CASE WHEN {rows.CASE_NUMBER} = {number} THEN {embedded(value.short_text)} END"
            f" AS {_raw_name(number, index)}"
            for number, assigned in values.items()
            for index, value in enumerate(assigned.values())
            if value is not NULL
        ),
        *(named(column_of(merge.target_alias, name), name) for name in copied),
        *(named(column_of(merge.target_alias, name), old[name]) for name in travelling),
        *([named(_old_row(merge, recorded), OLD_ROW)] if recorded else []),
    )
    long = _long(value for assigned in values.values() for value in assigned.values())
    evaluated = selected(joined, texts, long)
    columns = [
        quote(name)
        if name in copied
        else named(_assigned_value(merge, name, values, old.get(name)), name)
        for name in merge.table.column_names
        if name in copied or name in old or any(name in assigned for assigned in values.values())
    ]
    return evaluated.selectExpr(*change, SPREAD_SEED, *([OLD_ROW] if recorded else []), *columns)


def _old_row(merge: AnalyzedMerge, recorded: Sequence[str]) -> str:
    parts = (named(column_of(merge.target_alias, name), f"c{i}") for i, name in enumerate(recorded))
    return f"IF({rows.ROW_ID} IS NULL, NULL, struct({', '.join(parts)}))"


def _long(expressions: Iterable[Expression | None]) -> list[LongExpression]:
    return [each.long for each in expressions if each is not None and each.long is not None]


def _raw_name(number: int, index: int) -> str:
    """The column with a value of a case as it is before it is stored."""
    return f"{RESERVED_PREFIX}value_{number}_{index}"


def _spread_seed(joined: DataFrame, merge: AnalyzedMerge) -> str:
    """A number that depends on the source row."""
    source = [column_of(merge.source_alias, name) for name in sorted(merge.source_columns)]
    types = joined.selectExpr(*source).schema.fields if source else []
    hashable = [
        column
        for column, field in zip(source, types, strict=True)
        if isinstance(field.dataType, AtomicType)
    ]
    return f"xxhash64({', '.join([rows.ROW_ID, *hashable])})"


def _assigned_value(
    merge: AnalyzedMerge,
    name: str,
    values: Mapping[int, Mapping[str, Expression]],
    old: str | None,
) -> str:
    """The value of a column: that of the case that applies, else the old one, or NULL."""
    missing = null_of(merge.target_types[name]) if old is None else old
    branches = " ".join(
        f"WHEN {number} THEN {value}" for number, value in _values_by_case(merge, name, values, old)
    )
    return f"CASE {rows.CASE_NUMBER} {branches} ELSE {missing} END" if branches else missing


def _values_by_case(
    merge: AnalyzedMerge,
    name: str,
    values: Mapping[int, Mapping[str, Expression]],
    old: str | None,
) -> Iterator[tuple[int, str]]:
    cases = {case.number: case for case in merge.cases}
    for number, assigned in values.items():
        # A row that no case gives a value is NULL already, unless it keeps the old one.
        if name not in assigned or (old is None and assigned[name] is NULL):
            continue
        location = ErrorLocation(cases[number].label, name)
        value = null_of(merge.target_types[name])
        if assigned[name] is not NULL:
            raw = _raw_name(number, list(assigned).index(name))
            value = stored(raw, assigned[name].type, merge.stored_types[name], location)
        is_update = cases[number].operation == rows.UPDATE
        if old is not None and is_update and name in merge.table.key_columns:
            value = _unchanged(value, old, location)
        yield number, value


def _unchanged(value: str, old: str, location: ErrorLocation) -> str:
    """``old``, or an error if ``value`` differs from it."""
    problem = DataError(
        ErrorCode.KEY_CHANGED,
        f"{location.clause} would change {location.path}, a column of the primary key",
        "Leave the column out, or delete the row and insert it anew.",
    )
    return f"CASE WHEN {value} <=> {old} THEN {old} ELSE {failing(problem)} END"
