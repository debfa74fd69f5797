"""The located plan: the task that reads a target file finds its matches and changes that file.

After the page sources of Presto and early Trino that update rows. Target rows are not shuffled. A
task looks up the keys of the rows that it reads (``located_tasks``); Spark checks ON, evaluates the
clauses with the same processor as in the general plan, and hands the changes to the sink, all in
one stage. If the clauses are *prepared* (``prepared_clauses``), the task does without Spark.

The source rows that matched none are known afterwards: they go through the NOT MATCHED clauses in a
second job. Spark evaluates these, unless one copies columns of all rows into a table whose new rows
belong nowhere in particular: then tasks store the rows as they are (``CopiedInserts``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.fs as pafs
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, LongType, StructField, StructType

from spark_jobs.arrow_types import arrow_type
from spark_jobs.contract.sql_text import RESERVED_PREFIX, quote
from spark_jobs.engine.analysis.expressions import JoinKey
from spark_jobs.engine.merge.cases import SOURCE_PRESENT
from spark_jobs.engine.merge.copied_inserts import CopiedInserts
from spark_jobs.engine.merge.general_plan import GeneralPlan, PlanResult
from spark_jobs.engine.merge.located_tasks import (
    LOCATED_SCHEMA,
    SOURCE_ROW,
    LocatedReport,
    LocatedWriter,
    LookupJoin,
    PreparedChanges,
    columns_of,
)
from spark_jobs.engine.merge.prepared_clauses import PreparedClauses, inserted_copies
from spark_jobs.engine.merge.source_lookup import (
    KeptRows,
    SourceLookup,
    make_lookup,
    one_batch,
    write_batch,
)
from spark_jobs.engine.merge.source_rows import SourceRows
from spark_jobs.engine.runtime.arrow_batches import arrow_batches
from spark_jobs.engine.runtime.older_spark import parsed_type
from spark_jobs.engine.runtime.sql_text import named, null_of
from spark_jobs.engine.write.change_writer import REPORT_SCHEMA, ChangeWriter, TaskReport
from spark_jobs.engine.write.derivation import by_position
from spark_jobs.engine.write.redistribution import SPREAD_SEED, WriteSize, redistribute
from spark_jobs.packing import in_order
from spark_jobs.spi import rows
from spark_jobs.spi.arrow_tasks import ScanTasks, map_in_arrow, map_tasks
from spark_jobs.spi.evidence import DynamicFilter
from spark_jobs.spi.storage import WarehouseStorage
from spark_jobs.storage.files import make_folder

_FLAT = f"{RESERVED_PREFIX}flat"
_MOST_ROWS: Final = 16_384


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
        located: list[LocatedReport] = []
        if general.files and (keys := self._store_lookup()):
            evaluated = self._changed if self.prepared else self._evaluated
            located = evaluated(writer, keys)
        # As with the general plan's anti join, pairs count only if a clause is for them.
        pairs = sum(each.pairs for each in located) if merge.has("matched") else 0
        result = PlanResult([each.report for each in located], pairs)
        if merge.has("not_matched"):
            left = np.ones(found.row_count, np.bool_)
            for each in located:
                left &= ~each.sources(len(left))
            result.reports.extend(self._inserted(writer, left))
        return result

    def _store_lookup(self) -> DynamicFilter | None:
        """Write the lookup's files; return the keys in it, None if there are none."""
        payload = self.prepared.changes if self.prepared else self.source.rows
        lookup = make_lookup(self.source.keys, payload)
        if not len(lookup.order):
            return None
        self._stored.write(lookup)
        values: dict[str, pa.Array] = {}
        for key, distinct in zip(self.keys, lookup.values, strict=True):
            values.setdefault(key.target_column, distinct)
        return DynamicFilter(values)

    @property
    def _stored(self) -> SourceLookup:
        return SourceLookup(self.storage.filesystem, self._path, len(self.keys))

    @property
    def _path(self) -> str:
        return f"{self.storage.root}/{self.folder}"

    def _inserted(self, writer: ChangeWriter, left: npt.NDArray[np.bool_]) -> list[TaskReport]:
        """Insert the source rows that are ``left``."""
        source = self.source
        if not left.any():
            return []
        filesystem, path = self.storage.filesystem, f"{self._path}/unmatched.arrow"
        write_batch(filesystem, path, one_batch(source.rows.filter(pa.array(left))))
        rest = UnmatchedRows(self.general, filesystem, path, source.schema, self._row_id)
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
        if merge.has("matched"):
            processor = self.general.processor.every_match()
            needed |= set(processor.recorded) if self.prepared else processor.target_columns
        return [name for name in merge.table.column_names if name in needed]

    def _lookup_join(self, keys: DynamicFilter) -> tuple[LookupJoin, int]:
        """The join of the target's rows with those of the lookup, and its number of tasks."""
        general, columns = self.general, self._target_columns
        scanned = general.scan.arrow_rows(
            general.spark,
            general.merge.table,
            general.files,
            columns,
            keys,
            general.tasks_per_core,
        )
        assert scanned is not None  # noqa: S101
        places = tuple(columns.index(key.target_column) for key in self.keys)
        return LookupJoin(scanned.function, places, self._stored), len(scanned.files)

    def _joined(self, keys: DynamicFilter) -> DataFrame:
        """The pairs that ON joins, as the general plan's join would make them."""
        merge, columns, schema = self.general.merge, self._target_columns, self.source.schema
        join, tasks = self._lookup_join(keys)
        row_id = StructType([*self._row_id, StructField(SOURCE_ROW, LongType())])
        types: list[DataType] = [*(merge.target_types[name] for name in columns), row_id]
        types += [field.dataType for field in schema]
        fields = [StructField(f"c{index}", kind) for index, kind in enumerate(types)]
        flat = map_tasks(self.general.spark, tasks, join, StructType(fields))
        return self._qualified(flat, columns, schema.names).where(merge.on.column)

    def _evaluated(self, writer: ChangeWriter, keys: DynamicFilter) -> list[LocatedReport]:
        """Change the files; Spark evaluates the clauses."""
        changes = self.general.moment.fixed(self._changes(self._joined(keys)))
        task = self._task(writer, changes.columns)
        with arrow_batches(changes, self.general.row_bytes):
            written = map_in_arrow(by_position(changes), task, LOCATED_SCHEMA).collect()
        return [LocatedReport.of(row) for row in written]

    def _changed(self, writer: ChangeWriter, keys: DynamicFilter) -> list[LocatedReport]:
        """Change the files; the lookup has what is prepared."""
        assert self.prepared is not None  # noqa: S101
        join, tasks = self._lookup_join(keys)
        recorded = self.general.processor.only("matched").recorded
        columns = columns_of(self.prepared.assigned, records=bool(recorded))
        task = self._task(writer, columns)
        changes = PreparedChanges(join, tuple(self._target_columns), recorded, task)
        written = map_tasks(self.general.spark, tasks, changes, LOCATED_SCHEMA).collect()
        return [LocatedReport.of(row) for row in written]

    def _task(self, writer: ChangeWriter, columns: Sequence[str]) -> LocatedWriter:
        merge, named_writer = self.general.merge, replace(writer, columns=tuple(columns))
        is_strict = merge.strict and merge.has("matched")
        return LocatedWriter(named_writer, is_strict, self.source.row_count)

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


@dataclass(frozen=True, slots=True)
class UnmatchedRows:
    """Rows of the source, in an Arrow IPC file at ``path`` with the columns of ``schema``.

    ``row_id`` is the type of the connector's row id.
    """

    general: GeneralPlan
    filesystem: pafs.FileSystem
    path: str
    schema: StructType
    row_id: StructType

    def insert(self, writer: ChangeWriter, count: int) -> list[TaskReport]:
        """Evaluate the NOT MATCHED clauses on all ``count`` rows, and store the new rows."""
        copied = inserted_copies(self.general.merge) if self._is_free else None
        if copied is not None:
            return self._stored(writer, count, copied)
        changes = self.general.moment.fixed(self._changes(count))
        named_writer = replace(writer, columns=tuple(changes.columns))
        with arrow_batches(changes, self.general.row_bytes):
            written = map_in_arrow(by_position(changes), named_writer, REPORT_SCHEMA).collect()
        return [TaskReport.from_json(row["report"]) for row in written]

    @property
    def _is_free(self) -> bool:
        """Whether any task may store any of the rows, in any order."""
        layout = self.general.insert_layout
        return not layout.cluster_by and layout.row_order is None

    def _size(self, count: int) -> WriteSize:
        return replace(self.general.write_size, file_sizes={}, new_rows=count)

    def _stored(
        self, writer: ChangeWriter, count: int, copied: Mapping[str, str]
    ) -> list[TaskReport]:
        """Store the source columns ``copied`` by table column, one task for each file."""
        merge = self.general.merge
        parts = in_order(_slices(count), self._size(count).files_for(count))
        (case,) = merge.only("not_matched").cases
        task = CopiedInserts(
            ScanTasks(KeptRows(self.filesystem, self.path), parts),
            tuple(self.schema.names.index(name) for name in copied.values()),
            tuple(copied),
            case.number,
            arrow_type(self.row_id),
            writer,
        )
        written = map_tasks(self.general.spark, len(parts), task, REPORT_SCHEMA).collect()
        return [TaskReport.from_json(row["report"]) for row in written]

    def _changes(self, count: int) -> DataFrame:
        """The change rows as they reach the sink tasks."""
        general, layout, size = self.general, self.general.insert_layout, self._size(count)
        makes_one_file = self._is_free and size.files_for(count) == 1
        tasks = 1 if makes_one_file else size.parallelism
        changes = general.processor.only("not_matched").change_rows(self._frame(count, tasks))
        if makes_one_file:
            return changes.drop(SPREAD_SEED)
        return redistribute(changes, general.update_layout, layout, size)

    def _frame(self, count: int, tasks: int) -> DataFrame:
        """The rows as the general plan's anti join would make them."""
        merge = self.general.merge
        cut = in_order(_slices(count), tasks)
        scan = ScanTasks(KeptRows(self.filesystem, self.path), cut)
        fields = [StructField(f"c{i}", each.dataType) for i, each in enumerate(self.schema)]
        flat = map_tasks(self.general.spark, len(cut), scan, StructType(fields))
        columns = [named(f"c{i}", name) for i, name in enumerate(self.schema.names)]
        frame = flat.selectExpr(*columns).alias(merge.source_alias)
        no_row_id = named(null_of(self.row_id), rows.ROW_ID)
        return frame.selectExpr("*", no_row_id, named("TRUE", SOURCE_PRESENT))


def _slices(count: int) -> list[tuple[int, int]]:
    """``count`` rows as slices, by offset and length."""
    return [(start, min(_MOST_ROWS, count - start)) for start in range(0, count, _MOST_ROWS)]
