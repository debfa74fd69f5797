"""The executor half of a compaction: each part becomes one file, several in order, or none.

Runs on executors. Memory: that of ``SortedRuns``, and one row group that is being written, however
many partitions there are: rows are sorted by partition on the local disk.

Never imports a table library. Memory: the positions that the files of a part have.

Only the rows of files of older partition specs go to several partitions.

Never imports a table library.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.connectors.iceberg.format.deletes import (
    DataFileDeletes,
    DeletedRows,
    positions_by_file,
    stored_deletes,
)
from spark_jobs.connectors.iceberg.format.file_columns import Constants, NameMapping, file_mappings
from spark_jobs.connectors.iceberg.format.row_lineage import RowLineage
from spark_jobs.connectors.iceberg.format.schema import IcebergField
from spark_jobs.connectors.iceberg.format.stored_columns import stored_columns
from spark_jobs.connectors.iceberg.write.file_layout import (
    NewFileLayout,
    Partition,
    PartitionColumn,
    PartitionFunction,
    SortFunction,
    derived_name,
)
from spark_jobs.connectors.shared.write.merge_sink import file_document
from spark_jobs.connectors.shared.write.new_rows import NewRowsWriter, TaskFiles
from spark_jobs.datafiles.concatenate import InputFile, concatenate, read_rows
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.sort_files import sort_files
from spark_jobs.datafiles.sorted_runs import SortedRuns
from spark_jobs.spi.rows import RESERVED_PREFIX
from spark_jobs.spi.writes import DerivedColumns, Fragment, RowOrder, SortKey
from spark_jobs.storage.files import remove_file

_PLACE = f"{RESERVED_PREFIX}place_"


@dataclass(frozen=True, slots=True)
class _Functions:
    """Computes the columns of several functions. Picklable."""

    functions: tuple[Callable[[pa.RecordBatch], Sequence[pa.Array]], ...]

    def __call__(self, batch: pa.RecordBatch) -> Sequence[pa.Array]:
        return [values for each in self.functions for values in each(batch)]


def _move_rows(
    inputs: Iterable[InputFile],
    layout: NewFileLayout,
    order: RowOrder | None,
    new_path: Callable[[str], str],
) -> list[tuple[Partition, WrittenFile]]:
    """Write the rows of ``inputs`` to new files of their partitions, each in ``order``.

    Raises as ``concatenate``.
    """
    writer = NewRowsWriter(layout, new_path)
    files = layout.files
    try:
        with TemporaryDirectory(prefix="move-") as folder:
            by_place = _by_partition(layout.partition, order)
            runs = SortedRuns(by_place, Path(folder), files.row_group_bytes)
            for source in inputs:
                read_rows(files.filesystem, source, files, runs.add_rows)
            for table in runs.rows():
                for batch in table.combine_chunks().to_batches():
                    writer.write(_placed(layout.partition, batch))
        return writer.finish()
    except BaseException:
        writer.close_quietly()
        raise


def _by_partition(columns: tuple[PartitionColumn, ...], order: RowOrder | None) -> RowOrder:
    """Rows of a partition together, in ``order``."""
    names = [f"{_PLACE}{number}" for number in range(len(columns))]
    named = [(name, each.sort_type) for name, each in zip(names, columns, strict=True)]
    inputs = [each.source for each in columns]
    functions: list[Callable[[pa.RecordBatch], Sequence[pa.Array]]] = [SortFunction(columns)]
    if order is not None and order.derived is not None:
        inputs += order.derived.inputs
        named += order.derived.columns
        functions.append(order.derived.function)
    derived = DerivedColumns(
        tuple(dict.fromkeys(inputs)), tuple(named), _Functions(tuple(functions))
    )
    keys = order.keys if order is not None else ()
    return RowOrder((*map(SortKey, names), *keys), derived)


def _placed(columns: tuple[PartitionColumn, ...], batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with the values of their partition, as ``NewFileLayout.place_columns`` finds them."""
    found = PartitionFunction(columns)(batch)
    for number, values in enumerate(found[: len(columns)]):
        batch = batch.append_column(derived_name(number), values)
    return batch


class MarkedFile(NamedTuple):
    """A data file; ``location`` is how deletes name it, ``ordinal`` is as in ``PartFile``."""

    ordinal: int
    location: str
    row_count: int
    folder: str


@dataclass(frozen=True, slots=True)
class DeletesPart:
    """Paths of all position deletes of ``files``, which are about no other live data file.

    ``size`` is theirs in bytes. ``writes_vectors``: they become vectors.
    """

    files: tuple[MarkedFile, ...]
    deletes: tuple[str, ...]
    size: int
    writes_vectors: bool = False


def _rewrite_deletes(
    filesystem: pafs.FileSystem, part: DeletesPart, new_path: Callable[[str, str], str]
) -> Fragment:
    """Write the deletes of a part anew; ``new_path`` takes a folder and the ending of a name.

    Raises:
        CatalogError: DATA_FILE_UNREADABLE, METADATA_UNREADABLE: a file is missing, damaged or not
            about the data files' rows.
    """
    counts = {each.location: each.row_count for each in part.files}
    marked_positions = positions_by_file(filesystem, part.deletes, counts)
    marked = [each for each in part.files if each.location in marked_positions]
    added = list[dict[str, Any]]()
    for file in marked:
        path = new_path(file.folder, "puffin" if part.writes_vectors else "parquet")
        place, positions = file.location, marked_positions[file.location]
        stored = stored_deletes(filesystem, path, place, positions, as_vector=part.writes_vectors)
        added.append({"file": file.ordinal, **stored})
    return Fragment(
        {"compacted": {"files": [each.ordinal for each in part.files], "added": added}},
        bytes_added=sum(each["size"] for each in added),
        bytes_removed=part.size,
        deletion_vectors_added=len(added),
    )


class PartFile(NamedTuple):
    """A data file of a part; ``ordinal`` is the index in ``PinnedTable.files``.

    ``size`` is in bytes; ``constants`` are the values of its partition. ``lineage`` tells the ids
    of its rows, if they have any.
    """

    ordinal: int
    path: str
    size: int
    row_count: int
    deletes: DataFileDeletes
    constants: Constants
    lineage: RowLineage | None = None


@dataclass(frozen=True, slots=True)
class IcebergPart:
    """Files of one partition, and where their rows go.

    Rows are sorted into ``sorted_files`` files; 0: into one, in the order of ``files``.
    ``is_moved``: the files are of older specs, and their rows go to partitions of the current one.
    """

    folder: str
    files: tuple[PartFile, ...]
    sorted_files: int = 0
    is_moved: bool = False


@dataclass(frozen=True, slots=True)
class FileOrder:
    """How rows of new files are sorted; ``id`` is that of the table's sort order, or 0."""

    rows: RowOrder
    id: int


@dataclass(frozen=True, slots=True)
class IcebergPartCompactor:
    """Implements ``PartCompactor``.

    ``token`` begins the names of all files that it creates, and of no other files. ``fields`` are
    the table's columns, ``names`` its name mapping. ``order`` is that of parts that are sorted.
    """

    token: str
    layout: NewFileLayout
    fields: tuple[IcebergField, ...]
    names: NameMapping | None
    order: FileOrder | None = None

    def compact(self, native: IcebergPart | DeletesPart, task_key: str) -> list[Fragment]:
        """The fragment of a part; see ``PartCompactor``."""
        names = TaskFiles(self.layout.files.filesystem, task_key)
        try:
            if isinstance(native, DeletesPart):
                return [self._rewritten(native, names)]
            return [self._moved(native, names) if native.is_moved else self._joined(native, names)]
        except BaseException:
            with contextlib.suppress(OSError):
                names.remove()
            raise

    def discard(self, fragments: Sequence[Fragment]) -> None:
        """Remove the new files of fragments."""
        remove_new_files(self.layout.files.filesystem, fragments)

    def _joined(self, part: IcebergPart, names: TaskFiles) -> Fragment:
        """Rows stay in their partition."""
        files, inputs = self.layout.files, self._inputs(part)
        new_path = partial(names.data_path, f"{self.token}-", part.folder)
        order = self.order if part.sorted_files else None
        if order is None:
            written = concatenate(files.filesystem, inputs, new_path(), files)
            return _fragment(part, [(None, written)] if written else [], None)
        count = part.sorted_files
        several = sort_files(files.filesystem, inputs, order.rows, count, new_path, files)
        return _fragment(part, [(None, each) for each in several], order.id)

    def _moved(self, part: IcebergPart, names: TaskFiles) -> Fragment:
        new_path = partial(names.data_path, f"{self.token}-")
        order, inputs = self.order, self._inputs(part)
        written = _move_rows(inputs, self.layout, order.rows if order else None, new_path)
        return _fragment(part, written, order.id if order else 0)

    def _rewritten(self, part: DeletesPart, names: TaskFiles) -> Fragment:
        def new_path(folder: str, ending: str) -> str:
            return names.new_path(f"{self.token}-", folder, f"-deletes.{ending}")

        return _rewrite_deletes(self.layout.files.filesystem, part, new_path)

    def _inputs(self, part: IcebergPart) -> Iterator[InputFile]:
        deleted = DeletedRows(self.layout.files.filesystem)
        for file in part.files:
            gone = deleted.positions(file.deletes)
            yield InputFile(file.path, file.row_count, gone, self._mappings(file))

    def _mappings(self, file: PartFile) -> tuple[FieldMapping, ...]:
        filesystem = self.layout.files.filesystem
        with reading_file(file.path), filesystem.open_input_file(file.path) as stream:
            stored = stored_columns(file.path, stream)
            columns = file_mappings(self.fields, stored, self.names, file.constants)
            lineage = file.lineage
            return columns if lineage is None else (*columns, *lineage.mappings(stored, self.names))


def remove_new_files(filesystem: pafs.FileSystem, fragments: Sequence[Fragment]) -> None:
    """Remove the new files that fragments name."""
    for fragment in fragments:
        for file in fragment.document["compacted"]["added"]:
            remove_file(filesystem, file["path"])


def _fragment(
    part: IcebergPart, placed: Sequence[tuple[Partition | None, WrittenFile]], order: int | None
) -> Fragment:
    """Of new files with their partitions; None: that of the old ones.

    ``order`` is the sort order of the new files; None: that of the only old one.
    """
    files, written = [file.ordinal for file in part.files], [each for _, each in placed]
    added = [file_document(each, place) for place, each in placed]
    return Fragment(
        {"compacted": {"files": files, "added": added, "order": order}},
        files_added=len(added),
        files_removed=len(files),
        bytes_added=sum(each.size for each in written),
        bytes_removed=sum(file.size for file in part.files),
        rows_carried=sum(each.rows for each in written),
    )
