"""``*`` in the clauses of a MERGE whose source has change events: the columns of the row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql.types import StructType

from spark_jobs.contract.cdc import CdcSource, last_of
from spark_jobs.contract.event_clauses import is_newer
from spark_jobs.contract.source_names import source_text
from spark_jobs.contract.sql_text import quote
from spark_jobs.contract.statements import (
    Action,
    Assignment,
    InsertAction,
    InsertAllAction,
    MergeSpec,
    UpdateAction,
    UpdateAllAction,
)
from spark_jobs.engine.analysis.store_assignment import frame_type
from spark_jobs.engine.events.last_events import not_told
from spark_jobs.engine.events.stored_keys import keeps_order
from spark_jobs.engine.runtime.sql_text import find_name
from spark_jobs.errors import AnalysisError, ErrorCode, NotSupportedError
from spark_jobs.spi.tables import TableHandle

_KEEP: Final = (
    "Add the column to the target, which keeps there the sequence of the last event of each row, "
    "or say late='apply'."
)


def plain_clauses(
    spec: MergeSpec, source: CdcSource, table: TableHandle, schema: StructType
) -> MergeSpec:
    """``spec`` with assignments in place of ``*``; ``schema`` is that of the source's rows.

    A column whose value is not told keeps the target's.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND, TYPE_MISMATCH: the target does not keep the sequence.
    """
    if source.late == "ignore":
        _require_kept(source, table, schema)
    stars = _Stars(spec, source, table, schema)
    cases = (replace(each, action=stars.plain(each.action)) for each in spec.cases)
    return replace(spec, cases=tuple(cases))


@dataclass(frozen=True, slots=True)
class _Stars:
    spec: MergeSpec
    source: CdcSource
    table: TableHandle
    schema: StructType

    def plain(self, action: Action) -> Action:
        if isinstance(action, UpdateAllAction):
            keys = {each.lower() for each in self.source.keys}
            names = [each for each in self._columns() if each.lower() not in keys]
            if not names:  # nothing but the key: the row is as it is
                names = self._columns()
            return UpdateAction(tuple(Assignment(quote(e), self._value(e)) for e in names))
        if isinstance(action, InsertAllAction):
            names = self._columns()
            return InsertAction(tuple(map(self._inserted, names)), tuple(map(quote, names)))
        return action

    def _columns(self) -> list[str]:
        """The target's columns that the row has, then those that it gets by evolution."""
        known, names = self.table.column_names, self.schema.names
        for name in known:
            if name.lower() in self.source.technical:
                raise NotSupportedError(
                    f"{self.table.name} has a column {name}, a name of change events' own.",
                    "Rename the column.",
                )
        if not self.spec.schema_evolution:
            for name in known:
                if find_name(name, names) is None:
                    self._missing(name)
            return list(known)
        named_columns = {each.column.lower() for each in self.source.sequence}
        named_columns |= {self.source.deleted.lower()} if self.source.deleted else set()
        own = named_columns | self.source.technical
        new = [e for e in names if e.lower() not in own and find_name(e, known) is None]
        return [each for each in known if find_name(each, names) is not None] + new

    def _missing(self, name: str) -> None:
        technical = self.source.technical
        has = ", ".join(each for each in self.schema.names if each.lower() not in technical)
        raise AnalysisError(
            ErrorCode.COLUMN_NOT_FOUND,
            f"{source_text(self.source)}: its events lack the column {name} of {self.table.name}; "
            f"they have only: {has}",
            "Add the column in a query (sql_source), or let on_schema_change be append: then the "
            "column keeps its value.",
            name=name,
        )

    def _alias_of(self, column: str) -> str:
        return f"{self.spec.source_alias}.{quote(column)}"

    def _value(self, name: str) -> str:
        """What an UPDATE stores in a column."""
        mine = self._alias_of(find_name(name, self.schema.names) or name)
        unchanged = find_name(name, self.source.unchanged)
        if unchanged is None:
            return mine
        target, last = self.spec.target_alias, self._alias_of(last_of(unchanged))
        newer = is_newer(self.source, target, last)
        is_told = f"{last} IS NOT NULL" + (f" AND {newer}" if newer else "")
        row = f"{target}.{quote(name)}"
        if find_name(name, self.table.column_names) is None or name in self.table.added_columns:
            row = not_told(self.source, name)
        gone = self.source.deleted
        is_gone = f"WHEN {target}.{quote(gone)} THEN {not_told(self.source, name)} " if gone else ""
        return f"CASE WHEN {is_told} THEN {mine} {is_gone}ELSE {row} END"

    def _inserted(self, name: str) -> str:
        mine = self._alias_of(find_name(name, self.schema.names) or name)
        unchanged = find_name(name, self.source.unchanged)
        if unchanged is None:
            return mine
        last = self._alias_of(last_of(unchanged))
        return f"CASE WHEN {last} IS NOT NULL THEN {mine} ELSE {not_told(self.source, name)} END"


def _require_kept(source: CdcSource, table: TableHandle, schema: StructType) -> None:
    """Check that the target has the columns of the sequence, of types with the same order."""
    for sequence_column in source.sequence:
        where = f"{source_text(source)}: sequence"
        column_name = find_name(sequence_column.column, table.column_names)
        if column_name is None:
            problem = f"{where}: {table.name} has no column {sequence_column.column}"
            raise AnalysisError(
                ErrorCode.COLUMN_NOT_FOUND, problem, _KEEP, name=sequence_column.column
            )
        column = next(e for e in table.columns if e.name == column_name)
        given = schema[find_name(sequence_column.column, schema.names) or column_name].dataType
        if not keeps_order(given, frame_type(column.type)):
            raise AnalysisError(
                ErrorCode.TYPE_MISMATCH,
                f"{where}: {sequence_column.column} is of the type {given.simpleString()} in "
                f"events, and of {column.type} in {table.name}, which would round it",
                "Give both the same type.",
            )
