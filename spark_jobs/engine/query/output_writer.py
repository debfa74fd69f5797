"""The executor side of a query's files: each task writes its rows to one file.

Imported by executors: nothing here needs a table library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.engine.runtime.lease import Lease
from spark_jobs.engine.runtime.spill import Spill, columns_with_bounds
from spark_jobs.engine.runtime.tasks import partition_number, task_key
from spark_jobs.engine.write.text_check import require_text
from spark_jobs.errors import DataError, ErrorCode, JobError
from spark_jobs.storage.files import remove_file

if TYPE_CHECKING:
    from spark_jobs.contract.query import OutputFormat

OUTPUT_REPORT: Final = "file string, row_count bigint"


@dataclass(frozen=True, slots=True)
class OutputWriter:
    """A function for ``mapInArrow``: takes rows, yields one report on the file. Picklable.

    ``columns`` are the names of the incoming columns.
    A task that finds the run's lease gone removes its file and fails.
    """

    filesystem: pafs.FileSystem
    folder: str
    format: OutputFormat
    lease: Lease
    columns: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write all rows of a task.

        Yields:
            ``file`` (string, its name in ``folder``) and ``row_count`` (bigint). Nothing for a
            task without rows.
        """
        # The rows of a sorted query are in the order of the names.
        name = f"part-{partition_number():05}-{task_key()}.{self.format}"
        path = f"{self.folder}/{name}"
        with Spill(self.filesystem, path, self._open) as spill:
            for batch in batches:
                named = batch.rename_columns(list(self.columns))
                require_text(named, self.columns, "output_path")
                if self.format == "csv":
                    _require_visible(named)
                spill.add(named)
        if not spill.row_count:
            return
        try:
            self.lease.require()
        except JobError:
            remove_file(self.filesystem, path)
            raise
        yield pa.RecordBatch.from_pydict({"file": [name], "row_count": [spill.row_count]})

    def write_empty(self, schema: pa.Schema) -> None:
        """Write a file without rows, so that the folder tells the columns."""
        path = f"{self.folder}/part-00000.{self.format}"
        fields = zip(schema, self.columns, strict=True)
        renamed = pa.schema([field.with_name(name) for field, name in fields])
        with (
            self.filesystem.open_output_stream(path) as sink,
            _opened(self.format, sink, renamed) as writer,
        ):
            writer.write_table(renamed.empty_table())

    def _open(self, sink: pa.NativeFile, schema: pa.Schema) -> pq.ParquetWriter | pacsv.CSVWriter:
        return _opened(self.format, sink, schema)


def _require_visible(rows: pa.RecordBatch) -> None:
    """Refuse a row that would be an empty line, which readers take for none."""
    if rows.num_columns == 1 and rows.column(0).null_count:
        raise DataError(
            ErrorCode.VALUE_NOT_STORABLE,
            f"output_format: csv has no place for NULL in {rows.schema.names[0]}, its only column: "
            "an empty line is not a row",
            "Select a second column, or write parquet.",
        )


def _opened(
    format_: OutputFormat, sink: pa.NativeFile, schema: pa.Schema
) -> pq.ParquetWriter | pacsv.CSVWriter:
    if format_ == "csv":
        return pacsv.CSVWriter(sink, schema)
    bounded = columns_with_bounds(schema)
    return pq.ParquetWriter(sink, schema, compression="zstd", write_statistics=bounded)
