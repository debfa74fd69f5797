"""Row-change processors: from joined rows to change rows, one class per paradigm.

After Trino's ``MergeProcessorOperator``, ``ChangeOnlyUpdatedColumnsMergeProcessor`` and
``DeleteAndInsertMergeProcessor``. The columns of a change row are described in ``spi.rows``.

While they join, Spark adds up what its tasks observe, the row pairs that ON joined among it. When
an executor is lost, tasks whose output is lost run again and count again. So the tasks are counted
too, both all of them and the distinct partitions: they tell whether the count is exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.contract.sql_text import quote
from spark_jobs.contract.statements import When
from spark_jobs.engine.analysis.analyzed import AnalyzedCase, AnalyzedMerge
from spark_jobs.engine.analysis.expressions import Expression
from spark_jobs.engine.analysis.key_columns import keeps_key
from spark_jobs.engine.merge.cases import MATCHED, with_case_number, with_operation, with_values
from spark_jobs.engine.runtime.query_status import observed_metric
from spark_jobs.engine.runtime.sql_text import column_of, named
from spark_jobs.engine.write.recorder import OLD_ROW
from spark_jobs.spi import rows
from spark_jobs.spi.tables import RowChangeParadigm
from spark_jobs.spi.writes import WriteLayout

_OBSERVATION: Final = "merge_join"
_TASK: Final = f"{rows.RESERVED_PREFIX}task"
# monotonically_increasing_id numbers a partition's rows below this.
_ROWS_OF_A_PARTITION: Final = 1 << 33
_COUNTED_TWICE: Final = -1


class RowChangeProcessor(ABC):
    """Turns joined rows into change rows for one statement."""

    def __init__(
        self,
        merge: AnalyzedMerge,
        insert_layout: WriteLayout,
        row_id_columns: Sequence[str] = (),
        recorded: Sequence[str] = (),
    ) -> None:
        """Prepare a statement; ``row_id_columns`` are as in ``ConnectorMetadata``.

        ``recorded``: the target columns whose old values UPDATE and DELETE rows carry.
        """
        self._merge = merge
        self._insert_layout = insert_layout
        self._row_id_columns = tuple(row_id_columns)
        self._recorded = tuple(recorded)
        self._split = [case.number for case in merge.cases if self.splits(case)]
        assigned = {column for case in merge.cases for column in case.values}
        columns = merge.table.column_names if self._split else ()
        self._copied = [column for column in columns if column not in assigned]
        self._values = {case.number: self._values_of(case) for case in merge.cases}

    @abstractmethod
    def splits(self, case: AnalyzedCase) -> bool:
        """Whether an UPDATE of this case becomes a DELETE and an INSERT of the whole new row."""

    @property
    def target_columns(self) -> frozenset[str]:
        """Target columns that the statement and its change rows need."""
        needed = self._merge.target_columns.union(self._copied, self._travelling, self.recorded)
        for values in self._values.values():
            needed = needed.union(*(value.target_columns for value in values.values()))
        return needed

    @property
    def inserts_apart(self) -> bool:
        """Whether new rows are found separately, without the whole rows that UPDATEs need."""
        needs_rows = self._split or len(self._travelling) > len(self._merge.table.key_columns)
        return bool(needs_rows) and {case.when for case in self._merge.cases} == {
            "matched",
            "not_matched",
        }

    @property
    def _travelling(self) -> tuple[str, ...]:
        """The target columns that accompany row ids."""
        return self._row_id_columns if self._changes_rows else ()

    @property
    def recorded(self) -> tuple[str, ...]:
        """The target columns whose old values UPDATE and DELETE rows carry, if there are any."""
        return self._recorded if self._changes_rows else ()

    @property
    def _changes_rows(self) -> bool:
        return self._merge.has("matched") or self._merge.has("not_matched_by_source")

    def only(self, when: When) -> RowChangeProcessor:
        """The processor for one kind of the statement's clauses."""
        return self._for(self._merge.only(when))

    def every_match(self) -> RowChangeProcessor:
        """The processor for MATCHED clauses that keeps every matched row, as if strict."""
        return self._for(replace(self._merge.only("matched"), strict=True))

    def unrecorded(self) -> RowChangeProcessor:
        """The processor for change rows without old values."""
        return type(self)(self._merge, self._insert_layout, self._row_id_columns)

    def _for(self, merge: AnalyzedMerge) -> RowChangeProcessor:
        return type(self)(merge, self._insert_layout, self._row_id_columns, self._recorded)

    @property
    def merge(self) -> AnalyzedMerge:
        """The statement."""
        return self._merge

    @property
    def updated_columns(self) -> frozenset[str]:
        """The columns that UPDATEs may change."""
        return frozenset(
            column
            for case in self._merge.cases
            for column, value in case.values.items()
            if case.operation == rows.UPDATE and not self._keeps_key(case, column, value)
        )

    @property
    def writes_inserts(self) -> bool:
        """Whether INSERT rows can occur among the change rows."""
        return bool(self._split) or self._merge.has("not_matched")

    @property
    def assigned_columns(self) -> tuple[tuple[str, ...], ...]:
        """The columns that an UPDATE row of a case carries, by case number."""
        keys = self._merge.table.key_columns
        return tuple(
            tuple(name for name in self._values[case.number] if name not in keys)
            if case.operation == rows.UPDATE and case.number not in self._split
            else ()
            for case in self._merge.cases
        )

    def change_rows(self, joined: DataFrame) -> DataFrame:
        """The change rows of ``joined``.

        A joined row to which no clause applies is dropped. Under the strict cardinality rule, a
        matched one stays as a bare row id with operation -1.
        """
        numbered = with_case_number(joined, self._merge)
        if self._changes_rows:
            numbered = _observed(numbered)
        keep = f"{rows.CASE_NUMBER} >= 0"
        if self._merge.strict and self._merge.has("matched"):
            keep += f" OR {MATCHED}"
        kept = with_operation(numbered.where(keep), self._merge)
        valued = with_values(
            kept,
            self._merge,
            self._values,
            self._copied,
            self._travelling,
            self.recorded,
            spreads=self.writes_inserts,
        )
        return self._with_split_updates(valued)

    def _with_split_updates(self, changes: DataFrame) -> DataFrame:
        """``changes`` with ``__merge_from_update``; DELETE rows carry no values."""
        if not self._split:
            return changes.selectExpr("*", named("FALSE", rows.FROM_UPDATE))
        columns = changes.columns
        split = f"{rows.CASE_NUMBER} IN ({', '.join(map(str, self._split))})"
        halves = f"CAST(array({rows.DELETE}, {rows.INSERT}) AS ARRAY<TINYINT>)"
        operations = f"explode(IF({split}, {halves}, array({rows.OPERATION})))"
        exploded = changes.selectExpr(
            named(operations, rows.OPERATION),
            *(quote(name) for name in columns if name != rows.OPERATION),
            named(split, rows.FROM_UPDATE),
            *self._moved_from(split),
        )
        without = dict.fromkeys(self._merge.table.column_names, rows.DELETE)
        without |= {rows.ROW_ID: rows.INSERT, rows.MOVED_FROM: rows.DELETE}
        empty = {name: f"{rows.OPERATION} = {operation}" for name, operation in without.items()}
        # The INSERT half has both rows.
        empty[OLD_ROW] = f"{rows.FROM_UPDATE} AND {rows.OPERATION} = {rows.DELETE}"
        return exploded.selectExpr(
            *(
                named(f"IF({empty[name]}, NULL, {quote(name)})", name)
                if name in empty
                else quote(name)
                for name in exploded.columns
            )
        )

    def _moved_from(self, split: str) -> list[str]:
        """The column with the old row of a split UPDATE, for tables whose rows have identities."""
        if not self._merge.table.has_identities:
            return []
        return [named(f"IF({split}, {rows.ROW_ID}, NULL)", rows.MOVED_FROM)]

    def _values_of(self, case: AnalyzedCase) -> Mapping[str, Expression]:
        if case.number not in self._split:
            return {
                column: value
                for column, value in case.values.items()
                if not self._keeps_key(case, column, value)
            }
        return {
            column: case.values.get(column) or self._old_value(column)
            for column in self._merge.table.column_names
            if column not in self._copied
        }

    def _keeps_key(self, case: AnalyzedCase, column: str, value: Expression) -> bool:
        table = self._merge.table
        is_key = column in table.key_columns or column in table.fixed_columns
        is_update = case.operation == rows.UPDATE
        return is_update and is_key and keeps_key(self._merge, column, value)

    def _old_value(self, column: str) -> Expression:
        return Expression(
            text=column_of(self._merge.target_alias, column),
            target_columns=frozenset([column]),
            source_columns=frozenset(),
            type=self._merge.stored_types[column],
            deterministic=True,
        )


class ChangeOnlyUpdatedColumnsProcessor(RowChangeProcessor):
    """An UPDATE stays one row, unless it assigns a column that decides where the row is stored."""

    def splits(self, case: AnalyzedCase) -> bool:
        """True if an UPDATE assigns one of the insert layout's deciding columns."""
        deciding = self._insert_layout.deciding_columns.difference(self._merge.table.key_columns)
        return case.operation == rows.UPDATE and any(
            column in deciding and not self._keeps_key(case, column, value)
            for column, value in case.values.items()
        )


class DeleteAndInsertProcessor(RowChangeProcessor):
    """Every UPDATE becomes a DELETE and an INSERT."""

    def splits(self, case: AnalyzedCase) -> bool:
        """True for every UPDATE."""
        return case.operation == rows.UPDATE


_PROCESSORS: dict[RowChangeParadigm, type[RowChangeProcessor]] = {
    RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS: ChangeOnlyUpdatedColumnsProcessor,
    RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW: DeleteAndInsertProcessor,
}


def processor_for(
    paradigm: RowChangeParadigm,
    merge: AnalyzedMerge,
    insert_layout: WriteLayout,
    row_id_columns: Sequence[str] = (),
    recorded: Sequence[str] = (),
) -> RowChangeProcessor:
    """The processor for a connector's paradigm."""
    return _PROCESSORS[paradigm](merge, insert_layout, row_id_columns, recorded)


def _observed(joined: DataFrame) -> DataFrame:
    """``joined``, which has ``__merge_matched``, with an observation that counts matched rows."""
    is_first = f"monotonically_increasing_id() % {_ROWS_OF_A_PARTITION} = 0"
    task = f"CASE WHEN {is_first} THEN spark_partition_id() END"
    is_exact = f"count({_TASK}) = size(collect_set({_TASK}))"
    matched = f"IF({is_exact}, count(CASE WHEN {MATCHED} THEN 1 END), {_COUNTED_TWICE})"
    metric = F.expr(named(f"CAST({matched} AS BIGINT)", "matched"))
    return joined.selectExpr("*", named(task, _TASK)).observe(_OBSERVATION, metric).drop(_TASK)


def observed_matches(evaluated: DataFrame) -> int | None:
    """The matched rows that ``_observed`` counted below an evaluated frame.

    None if some were counted twice.
    """
    matched = observed_metric(evaluated, _OBSERVATION)
    return None if matched == _COUNTED_TWICE else matched
