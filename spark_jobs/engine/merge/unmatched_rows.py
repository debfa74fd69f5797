"""The source rows that no target row matched, on their way through the NOT MATCHED clauses.

Spark evaluates the clauses, unless one copies columns of all rows into a table whose new rows
belong nowhere in particular: then tasks store the rows as they are (``CopiedInserts``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow.fs as pafs
from pyspark.sql.types import StructField, StructType

from spark_jobs.arrow_types import arrow_type
from spark_jobs.engine.merge.cases import SOURCE_PRESENT
from spark_jobs.engine.merge.copied_inserts import CopiedInserts
from spark_jobs.engine.merge.general_plan import GeneralPlan
from spark_jobs.engine.merge.prepared_clauses import inserted_copies
from spark_jobs.engine.merge.source_lookup import KeptRows
from spark_jobs.engine.runtime.arrow_batches import arrow_batches
from spark_jobs.engine.runtime.sql_text import named, null_of
from spark_jobs.engine.write.change_writer import REPORT_SCHEMA, ChangeWriter, TaskReport
from spark_jobs.engine.write.derivation import by_position
from spark_jobs.engine.write.redistribution import SPREAD_SEED, WriteSize, redistribute
from spark_jobs.packing import in_order
from spark_jobs.spi import rows
from spark_jobs.spi.arrow_tasks import ScanTasks, map_in_arrow, map_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_ROWS: Final = 16_384


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
