"""The executor side of materialisation: a task's rows are written to a Parquet file and read back.

Imported by executors: nothing here needs a table library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.engine.runtime.tasks import task_key

REPORT_SCHEMA = "file string, row_count bigint, byte_size bigint"
ROW_GROUP_BYTES = 32 * 1024 * 1024


class SpilledFile(NamedTuple):
    """A file of rows; ``byte_size`` is their size in memory as Arrow."""

    name: str
    row_count: int
    byte_size: int


OpenWriter = Callable[[pa.NativeFile, pa.Schema], Any]


@dataclass(frozen=True, slots=True)
class SpillWriter:
    """A function for ``mapInArrow``: takes rows, yields one report on the file. Picklable."""

    filesystem: pafs.FileSystem
    folder: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write all rows of a task.

        Yields:
            ``file`` (string, below ``folder``), ``row_count`` (bigint), ``byte_size`` (bigint:
            bytes as Arrow in memory). Nothing for a task without rows.
        """
        name = f"{task_key()}.parquet"
        with Spill(self.filesystem, f"{self.folder}/{name}") as spill:
            for batch in batches:
                spill.add(batch)
        if spill.row_count:
            yield pa.RecordBatch.from_pydict(
                {
                    "file": [name],
                    "row_count": [spill.row_count],
                    "byte_size": [spill.byte_size],
                }
            )


class Spill:
    """A file, created with its first rows; ``byte_size`` is its rows' size as Arrow.

    Batches are combined into row groups of a bounded size. ``open_writer`` makes pyarrow's writer
    of the format for a stream and a schema; by default, Parquet for files that are read once.
    """

    def __init__(
        self,
        filesystem: pafs.FileSystem,
        path: str,
        open_writer: OpenWriter | None = None,
    ) -> None:
        self._filesystem = filesystem
        self._path = path
        self._open_writer = open_writer or _parquet_writer
        self._opened = ExitStack()
        self._writer: Any = None
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self.row_count = 0
        self.byte_size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._opened:
            if error[0] is None:
                self._write()

    def add(self, batch: pa.RecordBatch) -> None:
        """Store rows; all batches have the same schema."""
        if not batch.num_rows:
            return
        self._waiting.append(batch)
        # Not nbytes: it reads offsets, which Spark leaves out of empty nested arrays.
        self._waiting_bytes += batch.get_total_buffer_size()
        if self._waiting_bytes >= ROW_GROUP_BYTES:
            self._write()

    def _write(self) -> None:
        if not self._waiting:
            return
        table = pa.Table.from_batches([_nullable_parts(batch) for batch in self._waiting])
        if self._writer is None:
            sink = self._opened.enter_context(self._filesystem.open_output_stream(self._path))
            self._writer = self._opened.enter_context(self._open_writer(sink, table.schema))
        self._writer.write_table(table)
        self.row_count += table.num_rows
        self.byte_size += self._waiting_bytes
        self._waiting, self._waiting_bytes = [], 0


@dataclass(frozen=True, slots=True)
class _Described:
    """A batch under another schema with the same layout (Arrow's PyCapsule interface)."""

    batch: pa.RecordBatch
    schema: pa.Schema

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        del requested_schema
        return self.schema.__arrow_c_schema__(), self.batch.__arrow_c_array__()[1]


def _nullable_parts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """``batch`` whose nested fields are nullable.

    pyarrow writes no struct that is NULL if a field in it must not be.
    """
    schema = pa.schema([_nullable(field) for field in batch.schema])
    same = schema.equals(batch.schema)
    return batch if same else pa.record_batch(_Described(batch, schema))


def _nullable(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_nullable(each).with_nullable(nullable=True) for each in kind])
    elif pa.types.is_list(kind):
        kind = pa.list_(_nullable(kind.value_field).with_nullable(nullable=True))
    elif pa.types.is_map(kind):
        item = _nullable(kind.item_field).with_nullable(nullable=True)
        kind = pa.map_(_nullable(kind.key_field), item)
    return field.with_type(kind)


def _parquet_writer(sink: pa.NativeFile, schema: pa.Schema) -> pq.ParquetWriter:
    # Building dictionaries takes longer than they save in files that are read once.
    return pq.ParquetWriter(
        sink,
        schema,
        compression="zstd",
        use_dictionary=False,
        write_statistics=columns_with_bounds(schema),
    )


def columns_with_bounds(schema: pa.Schema) -> bool | list[str]:
    """What pyarrow's writer may write bounds of, as its argument ``write_statistics``.

    Bounds of floating-point numbers would leave NaN out, which Spark has above every number.
    """
    if not any(_has_floats(field.type) for field in schema):
        return True
    # pyarrow takes dots in a name for paths to nested fields.
    return [
        field.name
        for field in schema
        if not (pa.types.is_nested(field.type) or _has_floats(field.type) or "." in field.name)
    ]


def _has_floats(kind: pa.DataType) -> bool:
    if pa.types.is_nested(kind):
        return any(_has_floats(kind.field(index).type) for index in range(kind.num_fields))
    return bool(pa.types.is_floating(kind))


class SpilledPart(NamedTuple):
    """A file of rows, or some of its row groups."""

    path: str
    row_groups: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class SpillReader:
    """Implements ``PartReader``: batches of ``columns``, in this order. Picklable."""

    filesystem: pafs.FileSystem
    columns: tuple[str, ...]

    def read(self, parts: Sequence[SpilledPart]) -> Iterator[pa.RecordBatch]:
        """The rows of parts of files."""
        for part in parts:
            yield from self._read(part)

    def _read(self, part: SpilledPart) -> Iterator[pa.RecordBatch]:
        columns = list(self.columns)
        with self.filesystem.open_input_file(part.path) as stream, pq.ParquetFile(stream) as file:
            groups = range(file.num_row_groups) if part.row_groups is None else part.row_groups
            for batch in file.iter_batches(row_groups=list(groups), columns=columns):
                yield batch.select(columns)
