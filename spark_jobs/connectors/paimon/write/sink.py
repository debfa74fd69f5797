"""The executor half of a merge: changes rows file by file, and writes new rows to new files.

A changed file is rewritten, or a deletion vector marks its deleted and updated rows, and the new
versions of the updated rows are appended to the file's bucket. Never imports a table library.

Each task appends the new versions of the rows that it updates, or new rows as it computes them, so
that a statement on many cores would leave as many files as tasks: small ones are read once more.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.format.manifest_entries import BucketKey
from spark_jobs.connectors.paimon.format.row_tracking import (
    COLUMNS,
    RowIdentity,
    file_mappings,
    stores_ids,
)
from spark_jobs.connectors.paimon.format.vectors import (
    VectorIndexWriter,
    VectorLocation,
    read_vector,
)
from spark_jobs.connectors.paimon.write.file_layout import (
    NewFileLayout,
    PaimonTaskFiles,
    bucket_file_document,
    in_bucket,
    index_fragment,
)
from spark_jobs.connectors.shared.write.merge_sink import FileIds, FileSinks, MergeSink
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_changes import FileChanges, Positions
from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.spi.writes import Fragment


class SourceFile(NamedTuple):
    """A file that the statement may change; ``size`` is in bytes.

    ``place`` numbers the buckets of all partitions, which may share folders; ``bucket`` is the
    number within the partition. ``directory`` is the table directory for other files; None: beside
    this one. ``schema_id`` is None if its columns are the table's.
    ``identity`` tells its rows' ids, if the table tracks them. A tuple, because every task
    unpickles all files of the statement.
    """

    path: str
    row_count: int
    size: int
    place: int
    bucket: int
    vector: VectorLocation | None = None
    directory: str | None = None
    schema_id: int | None = None
    identity: RowIdentity | None = None

    @property
    def folder(self) -> str:
        """The table directory for files that replace or accompany this one."""
        return self.directory or posixpath.dirname(self.path)


@dataclass(frozen=True, slots=True)
class PaimonSinkFactory(FileSinks[SourceFile, BucketKey]):
    """Makes the sinks of one write.

    ``mappings`` are by id of an older schema. ``index_prefix`` begins the names of all index files
    that sinks of this write create, and of no other files; they belong in ``index_directory``
    (None: beside the data files). ``tracks_rows``: rows have ids, which updated rows keep.
    """

    layout: NewFileLayout
    index_prefix: str
    index_directory: str | None
    mappings: Mapping[int, tuple[FieldMapping, ...]]
    tracks_rows: bool = False

    def open(self, task_key: str) -> PaimonMergeSink:
        """A sink with unique file names; ``task_key`` differs between attempts of a task."""
        return PaimonMergeSink(self, task_key)


class PaimonMergeSink(MergeSink[SourceFile, BucketKey]):
    """Stores the change rows of one task; deletion vectors mark rows."""

    _write: PaimonSinkFactory

    def __init__(self, write: PaimonSinkFactory, task_key: str) -> None:
        files = PaimonTaskFiles(write.layout, task_key)
        super().__init__(write, files, COLUMNS if write.tracks_rows else None)
        self._vectors = VectorIndexWriter(
            self._filesystem,
            write.index_directory,
            partial(self._files.new_path, write.index_prefix),
        )

    def _ids_of(self, ordinal: int) -> FileIds:
        file = self._write.files[ordinal]
        assert file.identity is not None  # noqa: S101
        return FileIds(file.path, file.identity.id_mapping)

    def _mappings(self, source: SourceFile) -> tuple[FieldMapping, ...] | None:
        columns = self._write.layout.files.schema
        return file_mappings(self._write.mappings, columns, source.schema_id, source.identity)

    def _deleted(self, source: SourceFile) -> Positions | None:
        return None if source.vector is None else read_vector(self._filesystem, source.vector)

    def _append(self, source: SourceFile, rows: pa.Table) -> None:
        self._old_rows.write(in_bucket(rows, source.bucket))

    def _mark(
        self, ordinal: int, source: SourceFile, changes: FileChanges, gone: FileChanges
    ) -> None:
        del changes
        self._vectors.add(ordinal, source.place, source.folder, gone.positions)

    def _marks(self) -> Iterable[Fragment]:
        return map(index_fragment, self._vectors.finish())

    def _document(self, written: WrittenFile, place: BucketKey) -> Mapping[str, Any]:
        return bucket_file_document(written, place)


class SmallFile(NamedTuple):
    """A new file of a bucket, whose number within the partition is ``bucket``.

    ``stores_ids``: it has the ids of its rows, which are old.
    """

    path: str
    bucket: int
    stores_ids: bool


def place_of(added: Mapping[str, Any]) -> str:
    """What the rows of a new file have in common: bucket, and whether they are old ones."""
    return json.dumps([added["partition"], added["bucket"], stores_ids(added["statistics"])])


def new_file(fragment: Fragment) -> SmallFile:
    """The file that a fragment adds."""
    added = fragment.document["added"]
    return SmallFile(added["path"], added["bucket"], stores_ids(added["statistics"]))


@dataclass(frozen=True, slots=True)
class SmallFilesReader:
    """Implements ``PartReader``: the rows of new files. Picklable.

    ``columns`` are those of the table's files.
    """

    filesystem: pafs.FileSystem
    columns: pa.Schema

    def read(self, parts: Sequence[SmallFile]) -> Iterator[pa.RecordBatch]:
        """Read files, one row group after another.

        Yields:
            The columns of the table, those with row ids if the files have them, and the bucket.
        """
        for part in parts:
            columns = COLUMNS.added_to(self.columns) if part.stores_ids else self.columns
            scan = FileScan(self.filesystem, list(columns), {})
            with reading_file(part.path):
                for _, table in scan.rows(part.path, np.zeros(0, np.int64)):
                    yield from in_bucket(table, part.bucket).combine_chunks().to_batches()
