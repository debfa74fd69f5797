"""The executor half of a merge: changes rows file by file, and writes new rows to new files.

A changed file is rewritten, or a deletion vector marks its deleted and updated rows, and the new
versions of the updated rows are appended to the file's bucket. Never imports a table library.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from spark_jobs.connectors.paimon.format.manifest_entries import BucketKey
from spark_jobs.connectors.paimon.format.row_tracking import COLUMNS, RowIdentity, file_mappings
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
