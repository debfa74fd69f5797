"""What the MATCHED clauses do with the match of a source row, evaluated once for each source row.

Only for clauses that read nothing of the target. Spark evaluates them with the same processor as
for joined rows, on the source alone. So it evaluates them for rows that match nothing, too, which
may fail where the statement must not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from spark_jobs.arrow_types import arrow_type
from spark_jobs.contract.sql_text import RESERVED_PREFIX, quote
from spark_jobs.engine.merge.cases import SOURCE_PRESENT
from spark_jobs.engine.merge.source_rows import SourceRows, require_small, source_rows
from spark_jobs.engine.pruning.dynamic_filters import key_value
from spark_jobs.engine.runtime.older_spark import collected_as_arrow
from spark_jobs.engine.runtime.sql_text import column_of, named
from spark_jobs.spi import rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_jobs.engine.analysis.analyzed import AnalyzedCase, AnalyzedMerge
    from spark_jobs.engine.analysis.expressions import JoinKey
    from spark_jobs.engine.merge.general_plan import GeneralPlan
    from spark_jobs.engine.merge.processors import RowChangeProcessor
    from spark_jobs.engine.source.materialized import MaterializedSource

_PART: Final = f"{RESERVED_PREFIX}part_"


@dataclass(frozen=True, slots=True)
class PreparedClauses:
    """A row for each row of the source.

    ``changes`` has the operation, the case number and the ``assigned`` columns of the change row of
    each match.
    """

    changes: pa.Table
    assigned: tuple[str, ...]


def why_not_prepared(merge: AnalyzedMerge, keys: Sequence[JoinKey]) -> str | None:
    """Why clauses cannot be evaluated on the source alone; None: they can.

    ``keys`` are the join keys that are looked up.
    """
    if not merge.read_set.has_only_keys or len(keys) < len(merge.read_set.join_keys):
        return "ON is more than equalities that can be looked up"
    matched = [case for case in merge.cases if case.when == "matched"]
    if any(each.target_columns for case in matched for each in case.expressions):
        return "a MATCHED clause reads columns of the target"
    return None


def copied_columns(merge: AnalyzedMerge, processor: RowChangeProcessor) -> Mapping[str, str] | None:
    """The source column of each assigned column, if nothing has to be evaluated for a match.

    That is so without MATCHED clauses, and with one that has no condition and copies columns or
    deletes. Else None.
    """
    matched = merge.only("matched").cases
    if not matched:
        return {}
    return _copied_by(merge, matched, processor.assigned_columns[matched[0].number])


def inserted_copies(merge: AnalyzedMerge) -> Mapping[str, str] | None:
    """The source column of each column of new rows, if nothing has to be evaluated for them.

    That is so with one NOT MATCHED clause that has no condition and copies columns. Else None.
    """
    cases = merge.only("not_matched").cases
    columns = [name for name in merge.table.column_names if name in cases[0].values]
    return _copied_by(merge, cases, columns)


def _copied_by(
    merge: AnalyzedMerge, cases: Sequence[AnalyzedCase], columns: Iterable[str]
) -> Mapping[str, str] | None:
    """The source column of each of ``columns``, if there is one of ``cases``, which copies them."""
    case, *others = cases
    if others or case.condition is not None:
        return None
    copied = {name: case.values[name].copied_column(merge.stored_types[name]) for name in columns}
    copies_all = all(column is not None for column in copied.values())
    return {name: column for name, column in copied.items() if column} if copies_all else None


def prepared_clauses(
    general: GeneralPlan, source: MaterializedSource, keys: Sequence[JoinKey]
) -> tuple[SourceRows, PreparedClauses]:
    """Evaluate keys and MATCHED clauses for all rows of ``source``.

    Returns:
        The rows with the columns that the NOT MATCHED clauses read, and what the MATCHED ones do.

    Raises:
        PySparkException, Py4JError: an expression failed on a row.
        NotSupportedError: as ``require_small``.
    """
    merge = general.merge
    of_inserts = merge.only("not_matched")
    columns = sorted(of_inserts.source_columns) if of_inserts.cases else []
    if not merge.has("matched") or not general.files:
        keyed_rows = source_rows(source, columns, keys, merge.source_alias, general.moment)
        return keyed_rows, PreparedClauses(_no_changes(keyed_rows.rows.num_rows), ())
    copied = copied_columns(merge, general.processor)
    if copied is not None:
        return _copied(general, source, keys, columns, copied)
    of_frame = source.frame.schema
    schema = StructType([StructField(name, of_frame[name].dataType) for name in columns])
    parts = [*map(key_value, keys), *(column_of(merge.source_alias, name) for name in columns)]
    frame = _evaluated(general, source, parts)
    values = collected_as_arrow(general.moment.fixed(frame))
    require_small(values.columns)
    kinds = [arrow_type(field.dataType) for field in frame.schema]
    arrays = [values.column(index).cast(kind) for index, kind in enumerate(kinds)]
    of_keys = [_array(each) for each in arrays[: len(keys)]]
    of_source = pa.table(arrays[len(keys) : len(parts)], [f"c{i}" for i in range(len(columns))])
    keyed_rows = SourceRows(schema, of_source, of_keys)
    names = frame.columns[len(parts) :]
    changes = pa.table(arrays[len(parts) :], names)
    return keyed_rows, PreparedClauses(changes, tuple(names[2:]))


def _copied(
    general: GeneralPlan,
    source: MaterializedSource,
    keys: Sequence[JoinKey],
    columns: Sequence[str],
    copied: Mapping[str, str],
) -> tuple[SourceRows, PreparedClauses]:
    """As ``prepared_clauses``, for a clause whose values need no evaluation."""
    merge = general.merge
    names = sorted({*columns, *copied.values()})
    keyed_rows = source_rows(source, names, keys, merge.source_alias, general.moment)
    of_source = dict(zip(names, keyed_rows.rows.columns, strict=True))
    (case,) = merge.only("matched").cases
    assigned = [name for name in merge.table.column_names if name in copied]
    count = keyed_rows.rows.num_rows
    changes = {
        rows.OPERATION: np.full(count, case.operation, np.int8),
        rows.CASE_NUMBER: np.full(count, case.number, np.int32),
        **{name: of_source[copied[name]] for name in assigned},
    }
    return keyed_rows.only(columns), PreparedClauses(pa.table(changes), tuple(assigned))


def _evaluated(general: GeneralPlan, source: MaterializedSource, parts: Sequence[str]) -> DataFrame:
    """``parts``, then operation, case number and assigned columns, for each row of the source.

    The parts travel as the row id, which a processor leaves as it is.
    """
    names = [f"{_PART}{index}" for index in range(len(parts))]
    row_id = f"struct({', '.join(map(named, parts, names))})"
    frame = source.frame.alias(general.merge.source_alias)
    frame = frame.selectExpr("*", named(row_id, rows.ROW_ID), named("TRUE", SOURCE_PRESENT))
    changes = general.processor.every_match().unrecorded().change_rows(frame)
    change_columns = (rows.OPERATION, rows.CASE_NUMBER)
    assigned = [name for name in changes.columns if name in general.merge.target_types]
    return changes.selectExpr(
        *(named(f"{rows.ROW_ID}.{name}", name) for name in names),
        *change_columns,
        *map(quote, assigned),
    )


def _no_changes(count: int) -> pa.Table:
    operations = np.full(count, rows.NO_OPERATION, np.int8)
    cases = np.full(count, rows.NO_CASE, np.int32)
    return pa.table({rows.OPERATION: operations, rows.CASE_NUMBER: cases})


def _array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
