"""What a run has changed, read from what its tasks recorded, and the table as it will be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    IntegerType,
    StructField,
    StructType,
)

from spark_jobs.contract import row_checks
from spark_jobs.contract.sql_text import quote
from spark_jobs.engine.analysis.analyzer import declared_types
from spark_jobs.engine.analysis.char_columns import char_lengths, padded
from spark_jobs.engine.analysis.store_assignment import frame_type
from spark_jobs.engine.runtime.sql_text import named, null_of
from spark_jobs.engine.source.materialized import spilled_frame
from spark_jobs.engine.write.recorder import (
    CASE,
    NEW,
    OLD,
    OPERATION,
    ROW_ID,
    SPLIT,
    numbered,
)
from spark_jobs.spi import rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.engine.analysis.analyzed import AnalyzedMerge
    from spark_jobs.engine.write.change_writer import TaskReport
    from spark_jobs.spi.connector import Connector
    from spark_jobs.spi.tables import PlannedFile, TableHandle

_HALF: Final = f"{OPERATION} = {rows.DELETE} AND {SPLIT}"
_IDS: Final = f"{rows.RESERVED_PREFIX}ids"


@dataclass(frozen=True, slots=True)
class ChangeShape:
    """How recorded rows of a statement on ``table`` become the rows of ``changes``.

    ``assigned``: the columns that UPDATE rows of a case carry, by case number; they keep the old
    values of others. ``numbers_clauses``: case numbers are those of WHEN clauses. ``matched_by``:
    the columns of the table by which a MERGE finds rows.
    """

    table: TableHandle
    assigned: Mapping[int, Sequence[str]] = field(default_factory=dict)
    numbers_clauses: bool = False
    matched_by: frozenset[str] = frozenset()

    @classmethod
    def of(cls, merge: AnalyzedMerge) -> ChangeShape:
        """The shape of a MERGE, DELETE or UPDATE."""
        table = merge.table
        fixed = {*table.key_columns, *table.fixed_columns}
        assigned = {
            case.number: [name for name in case.values if name not in fixed]
            for case in merge.cases
            if case.operation == rows.UPDATE
        }
        matched_by = merge.on.target_columns if merge.has_source else frozenset[str]()
        return cls(table, assigned, merge.has_source, matched_by)

    def keeps(self, column: str) -> bool:
        """Whether UPDATE rows may keep the old value of a column."""
        return any(column not in names for names in self.assigned.values())

    @property
    def types(self) -> dict[str, DataType]:
        """The types in frames of the table's columns."""
        return {column.name: frame_type(column.type) for column in self.table.columns}

    def recorded_fields(self, row_id: StructType | None = None) -> list[StructField]:
        """The columns of the files."""
        fields = [
            StructField(OPERATION, ByteType()),
            StructField(CASE, IntegerType()),
            StructField(SPLIT, BooleanType()),
        ]
        for number, kind in enumerate(self.types.values()):
            fields += [StructField(numbered(each, number), kind) for each in (OLD, NEW)]
        for number, each in enumerate(row_id or ()):
            fields.append(StructField(numbered(ROW_ID, number), each.dataType))
        return fields

    def changes(self, recorded: DataFrame) -> DataFrame:
        """The rows of ``changes`` from recorded ones."""
        updated = f"{OPERATION} = {rows.UPDATE} OR {SPLIT}"
        kind = f"CASE WHEN {updated} THEN 'update' WHEN {OPERATION} = {rows.DELETE} THEN 'delete'"
        clause = f"{CASE} + 1" if self.numbers_clauses else "CAST(NULL AS INT)"
        has_no_old = f"{OPERATION} = {rows.INSERT} AND NOT {SPLIT}"
        old = [named(numbered(OLD, i), name) for i, name in enumerate(self.types)]
        new = [named(self._new(i, name), name) for i, name in enumerate(self.types)]
        return recorded.where(f"NOT ({_HALF})").selectExpr(
            named(f"{kind} ELSE 'insert' END", row_checks.OPERATION),
            named(clause, row_checks.CLAUSE),
            named(f"IF({has_no_old}, NULL, struct({', '.join(old)}))", row_checks.OLD),
            named(
                f"IF({OPERATION} = {rows.DELETE}, NULL, struct({', '.join(new)}))", row_checks.NEW
            ),
        )

    def deleted(self, removed: DataFrame) -> DataFrame:
        """The rows of ``changes`` from rows of the table that are removed."""
        struct = StructType([StructField(name, kind) for name, kind in self.types.items()])
        old = [named(quote(name), name) for name in self.types]
        return removed.selectExpr(
            named("'delete'", row_checks.OPERATION),
            named("CAST(NULL AS INT)", row_checks.CLAUSE),
            named(f"struct({', '.join(old)})", row_checks.OLD),
            named(null_of(struct), row_checks.NEW),
        )

    def stored(self, recorded: DataFrame) -> DataFrame:
        """The rows that are stored."""
        columns = [named(self._new(i, name), name) for i, name in enumerate(self.types)]
        return recorded.where(f"{OPERATION} <> {rows.DELETE}").selectExpr(*columns)

    def as_table(self, frame: DataFrame) -> DataFrame:
        """``frame`` with the table's columns, compared by Spark as those of the table."""
        return padded(frame, char_lengths(declared_types(self.table)))

    def _new(self, number: int, name: str) -> str:
        old, new = numbered(OLD, number), numbered(NEW, number)
        keeping = [str(case) for case, names in self.assigned.items() if name not in names]
        if not keeping:
            return new
        is_kept = f"{OPERATION} = {rows.UPDATE} AND {CASE} IN ({', '.join(keeping)})"
        return f"IF({is_kept}, {old}, {new})"


@dataclass(frozen=True, slots=True)
class Unpublished:
    """What a run has done to the ``planned`` files of ``table``, none of which is published.

    ``reports`` tell what tasks have changed; ``removed`` files lose every row without being read.
    """

    table: TableHandle
    planned: Sequence[PlannedFile]
    removed: Sequence[PlannedFile] = ()
    reports: Sequence[TaskReport] = ()

    @property
    def recorded(self) -> tuple[str, ...]:
        """The names of the files with what tasks have recorded."""
        return tuple(name for report in self.reports for name in report.recorded)


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """The rows of ``work``; ``folder``, relative to the workspace, has the recorded files."""

    spark: SparkSession
    connector: Connector
    shape: ChangeShape
    folder: str
    work: Unpublished

    @property
    def has_any(self) -> bool:
        """Whether any row may have changed."""
        return bool(self.work.recorded or self.work.removed)

    def changes(self) -> DataFrame:
        """A row for each changed row; see ``RowCheck``."""
        changes = self.shape.changes(self._recorded())
        if not self.work.removed:
            return changes
        return changes.unionAll(self.shape.deleted(self._read(self.work.removed)))

    def new_rows(self) -> DataFrame:
        """The rows that are stored."""
        return self.shape.as_table(self.shape.stored(self._recorded()))

    def target(self) -> DataFrame:
        """The table as it will be: its rows without the changed ones, and the new ones."""
        kept = self._kept().selectExpr(*map(quote, self.shape.types))
        return self.shape.as_table(kept.unionAll(self.shape.stored(self._recorded())))

    def _kept(self) -> DataFrame:
        removed = {file.ordinal for file in self.work.removed}
        files = [file for file in self.work.planned if file.ordinal not in removed]
        read = self._read(files)
        row_id = read.schema[rows.ROW_ID].dataType
        assert isinstance(row_id, StructType)  # noqa: S101 - see ConnectorScan.read
        parts = [named(numbered(ROW_ID, number), each.name) for number, each in enumerate(row_id)]
        changed = self._recorded(row_id).where(f"{OPERATION} <> {rows.INSERT}")
        ids = changed.selectExpr(named(f"struct({', '.join(parts)})", _IDS))
        return read.join(ids, read[rows.ROW_ID] == ids[_IDS], "left_anti")

    def _recorded(self, row_id: StructType | None = None) -> DataFrame:
        fields = self.shape.recorded_fields(row_id)
        names = {each.name: each.name for each in fields}
        files = [f"{self.folder}/{name}" for name in self.work.recorded]
        return spilled_frame(self.spark, self.connector.storage, files, fields, names)

    def _read(self, files: Sequence[PlannedFile]) -> DataFrame:
        table = self.shape.table
        return self.connector.scan.read(self.spark, table, files, table.column_names)
