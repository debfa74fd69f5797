"""The source rows that no target row matched, on their way through the NOT MATCHED clauses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow.fs as pafs
from pyspark.sql.types import StructField, StructType

from spark_jobs.engine.merge.cases import SOURCE_PRESENT
from spark_jobs.engine.merge.general_plan import GeneralPlan
from spark_jobs.engine.merge.source_lookup import KeptRows
from spark_jobs.engine.runtime.arrow_batches import arrow_batches
from spark_jobs.engine.runtime.sql_text import named, null_of
from spark_jobs.engine.write.change_writer import REPORT_SCHEMA, ChangeWriter, TaskReport
from spark_jobs.engine.write.derivation import by_position
from spark_jobs.engine.write.redistribution import SPREAD_SEED, redistribute
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
        changes = self.general.moment.fixed(self._changes(count))
        named_writer = replace(writer, columns=tuple(changes.columns))
        with arrow_batches(changes, self.general.row_bytes):
            written = map_in_arrow(by_position(changes), named_writer, REPORT_SCHEMA).collect()
        return [TaskReport.from_json(row["report"]) for row in written]

    def _changes(self, count: int) -> DataFrame:
        """The change rows as they reach the sink tasks."""
        general, layout = self.general, self.general.insert_layout
        size = replace(general.write_size, file_sizes={}, new_rows=count)
        is_free = not layout.cluster_by and layout.row_order is None
        makes_one_file = is_free and size.files_for(count) == 1
        tasks = 1 if makes_one_file else size.parallelism
        changes = general.processor.only("not_matched").change_rows(self._frame(count, tasks))
        if makes_one_file:
            return changes.drop(SPREAD_SEED)
        return redistribute(changes, general.update_layout, layout, size)

    def _frame(self, count: int, tasks: int) -> DataFrame:
        """The rows as the general plan's anti join would make them."""
        merge, starts = self.general.merge, range(0, count, _MOST_ROWS)
        parts = [(start, min(_MOST_ROWS, count - start)) for start in starts]
        cut = in_order(parts, tasks)
        scan = ScanTasks(KeptRows(self.filesystem, self.path), cut)
        fields = [StructField(f"c{i}", each.dataType) for i, each in enumerate(self.schema)]
        flat = map_tasks(self.general.spark, len(cut), scan, StructType(fields))
        columns = [named(f"c{i}", name) for i, name in enumerate(self.schema.names)]
        frame = flat.selectExpr(*columns).alias(merge.source_alias)
        no_row_id = named(null_of(self.row_id), rows.ROW_ID)
        return frame.selectExpr("*", no_row_id, named("TRUE", SOURCE_PRESENT))
