"""The located plan: the task that reads a target file finds its matches and changes that file.

After the page sources of Presto and early Trino that update rows. Target rows are not shuffled. A
task looks up the keys of the rows that it reads (``lookup_join``); Spark checks ON, evaluates the
clauses with the same processor as in the general plan, and hands the changes to the sink, all in
one stage. If the clauses are *prepared* (``prepared_clauses``), the task does without Spark. The
source rows that matched none are known afterwards: they go through the NOT MATCHED clauses in a
second job (``unmatched_rows``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, LongType, StructField, StructType

from spark_jobs.contract.identifiers import RESERVED_PREFIX, quote
from spark_jobs.engine.analysis.expressions import JoinKey
from spark_jobs.engine.merge.cases import SOURCE_PRESENT
from spark_jobs.engine.merge.general_plan import GeneralPlan, PlanResult
from spark_jobs.engine.merge.located_writer import LOCATED_SCHEMA, LocatedReport, LocatedWriter
from spark_jobs.engine.merge.lookup_join import SOURCE_ROW, LookupJoin
from spark_jobs.engine.merge.prepared_changes import PreparedChanges, columns_of
from spark_jobs.engine.merge.prepared_clauses import PreparedClauses
from spark_jobs.engine.merge.source_lookup import (
    OpenLookup,
    SourceLookup,
    make_lookup,
    one_batch,
    write_batch,
)
from spark_jobs.engine.merge.source_rows import SourceRows
from spark_jobs.engine.merge.unmatched_rows import UnmatchedRows
from spark_jobs.engine.runtime.older_spark import parsed_type
from spark_jobs.engine.runtime.sql_text import named
from spark_jobs.engine.write.change_writer import ChangeWriter, TaskReport
from spark_jobs.engine.write.derivation import by_position
from spark_jobs.engine.write.redistribution import SPREAD_SEED
from spark_jobs.spi import rows
from spark_jobs.spi.arrow_tasks import map_in_arrow, map_tasks
from spark_jobs.spi.connector import ArrowRows
from spark_jobs.spi.dynamic_filter import DynamicFilter
from spark_jobs.spi.storage import WarehouseStorage
from spark_jobs.storage.files import make_folder

_FLAT = f"{RESERVED_PREFIX}flat"


@dataclass(frozen=True, slots=True)
class LocatedPlan:
    """One run of the located plan; ``general`` has the statement's parts.

    ``keys`` are the join keys to look up. The lookup's files go to ``folder``, which is relative to
    the workspace ``storage``. ``prepared``: the clauses, if they are prepared.
    """

    general: GeneralPlan
    source: SourceRows
    keys: Sequence[JoinKey]
    storage: WarehouseStorage
    folder: str
    prepared: PreparedClauses | None = None

    def run(self, writer: ChangeWriter) -> PlanResult:
        """Compute the changes and store them through ``writer``; nothing is published."""
        general, merge, found = self.general, self.general.merge, self.source
        make_folder(self.storage.filesystem, self._path)
        payload = self.prepared.changes if self.prepared else found.rows
        lookup, numbers = make_lookup(found.keys, payload)
        located: list[LocatedReport] = []
        if general.files and len(numbers):
            if self.prepared:
                located = self._changed(writer, lookup, self.prepared)
            else:
                located = self._evaluated(writer, lookup, found.schema)
        # As with the general plan's anti join, pairs count only if a clause is for them.
        pairs = sum(each.pairs for each in located) if merge.has("matched") else 0
        result = PlanResult([each.report for each in located], pairs)
        if merge.has("not_matched"):
            left = np.ones(found.rows.num_rows, np.bool_)
            for each in located:
                left[numbers[each.sources(len(numbers))]] = False
            result.reports.extend(self._inserted(writer, left))
        return result

    @property
    def _path(self) -> str:
        return f"{self.storage.root}/{self.folder}"

    def _inserted(self, writer: ChangeWriter, left: npt.NDArray[np.bool_]) -> list[TaskReport]:
        """Insert the source rows that are ``left``."""
        found = self.source
        if not left.any():
            return []
        filesystem, path = self.storage.filesystem, f"{self._path}/unmatched.arrow"
        write_batch(filesystem, path, one_batch(found.rows.filter(pa.array(left))))
        rest = UnmatchedRows(self.general, filesystem, path, found.schema, self._row_id)
        return rest.insert(writer, int(left.sum()))

    @property
    def _row_id(self) -> StructType:
        """The type of the connector's row id."""
        kind = parsed_type(self.general.scan.arrow_row_id or "")
        assert isinstance(kind, StructType)  # noqa: S101
        return kind

    @property
    def _target_columns(self) -> list[str]:
        """The target columns to read, in the table's order."""
        merge = self.general.merge
        needed = {*merge.on.target_columns, *(key.target_column for key in self.keys)}
        if merge.has("matched") and not self.prepared:
            needed |= self.general.processor.every_match().target_columns
        return [name for name in merge.table.column_names if name in needed]

    def _scanned(self, lookup: OpenLookup) -> ArrowRows:
        """The target rows that have a key of the source, in each key column."""
        general = self.general
        values: dict[str, pa.Array] = {}
        for key, distinct in zip(self.keys, lookup.values, strict=True):
            values.setdefault(key.target_column, distinct)
        scanned = general.scan.arrow_rows(
            general.spark,
            general.merge.table,
            general.files,
            self._target_columns,
            DynamicFilter(values),
            general.tasks_per_core,
        )
        assert scanned is not None  # noqa: S101
        return scanned

    def _lookup_join(self, lookup: OpenLookup) -> tuple[LookupJoin, int]:
        """The join of the target's rows with those of ``lookup``, and its number of tasks."""
        scanned, columns = self._scanned(lookup), self._target_columns
        places = tuple(columns.index(key.target_column) for key in self.keys)
        stored = SourceLookup(self.storage.filesystem, self._path, len(self.keys))
        stored.write(lookup)
        return LookupJoin(scanned.function, places, stored), len(scanned.files)

    def _joined(self, lookup: OpenLookup, schema: StructType) -> DataFrame:
        """The pairs that ON joins, as the general plan's join would make them."""
        merge, columns = self.general.merge, self._target_columns
        join, tasks = self._lookup_join(lookup)
        row_id = StructType([*self._row_id, StructField(SOURCE_ROW, LongType())])
        types: list[DataType] = [*(merge.target_types[name] for name in columns), row_id]
        types += [field.dataType for field in schema]
        fields = [StructField(f"c{index}", kind) for index, kind in enumerate(types)]
        flat = map_tasks(self.general.spark, tasks, join, StructType(fields))
        return self._qualified(flat, columns, schema.names).where(merge.on.column)

    def _evaluated(
        self, writer: ChangeWriter, lookup: OpenLookup, schema: StructType
    ) -> list[LocatedReport]:
        """Change the files; Spark evaluates the clauses."""
        changes = self.general.moment.fixed(self._changes(self._joined(lookup, schema)))
        task = self._task(writer, changes.columns, lookup)
        written = map_in_arrow(by_position(changes), task, LOCATED_SCHEMA).collect()
        return [LocatedReport.of(row) for row in written]

    def _changed(
        self, writer: ChangeWriter, lookup: OpenLookup, prepared: PreparedClauses
    ) -> list[LocatedReport]:
        """Change the files; ``lookup`` has what is prepared."""
        join, tasks = self._lookup_join(lookup)
        task = self._task(writer, columns_of(prepared.assigned), lookup)
        changes = PreparedChanges(join, task)
        written = map_tasks(self.general.spark, tasks, changes, LOCATED_SCHEMA).collect()
        return [LocatedReport.of(row) for row in written]

    def _task(
        self, writer: ChangeWriter, columns: Sequence[str], lookup: OpenLookup
    ) -> LocatedWriter:
        merge, named_writer = self.general.merge, replace(writer, columns=tuple(columns))
        is_strict = merge.strict and merge.has("matched")
        return LocatedWriter(named_writer, is_strict, lookup.rows.num_rows)

    def _changes(self, joined: DataFrame) -> DataFrame:
        """A change row for every joined pair, with ``SOURCE_ROW`` in its row id."""
        if self.general.merge.has("matched"):
            return self.general.processor.every_match().change_rows(joined).drop(SPREAD_SEED)
        return joined.selectExpr(
            named(f"CAST({rows.NO_OPERATION} AS TINYINT)", rows.OPERATION),
            named(str(rows.NO_CASE), rows.CASE_NUMBER),
            rows.ROW_ID,
            named("FALSE", rows.FROM_UPDATE),
        )

    def _qualified(
        self, flat: DataFrame, target: Sequence[str], source: Sequence[str]
    ) -> DataFrame:
        """``flat`` with columns that are found under the statement's aliases.

        Spark's optimizer makes a projection of the lateral joins.
        """
        merge, first = self.general.merge, len(target) + 1
        sides = {merge.target_alias: (target, 0), merge.source_alias: (source, first)}
        lateral = ", ".join(
            f"LATERAL (SELECT {', '.join(_selected(names, start))}) AS {quote(alias)}"
            for alias, (names, start) in sides.items()
        )
        parts = [f"{quote(alias)}.*" for alias in sides]
        parts += [named(f"{_FLAT}.c{len(target)}", rows.ROW_ID), named("TRUE", SOURCE_PRESENT)]
        text = f"SELECT {', '.join(parts)} FROM {{flat}} AS {_FLAT}, {lateral}"
        return self.general.spark.sql(_unbraced(text), flat=flat)


def _selected(names: Sequence[str], start: int) -> list[str]:
    return [named(f"{_FLAT}.c{start + index}", name) for index, name in enumerate(names)]


def _unbraced(text: str) -> str:
    """Text for ``SparkSession.sql``, in which only ``{flat}`` stands for something."""
    escaped = text.replace("{", "{{").replace("}", "}}")
    return escaped.replace("{{flat}}", "{flat}", 1)
