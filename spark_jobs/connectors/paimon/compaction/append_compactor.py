"""What tasks get to compact parts of a table; those of append tables become new files.

Never imports a table library.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.format.manifest_entries import BucketKey
from spark_jobs.connectors.paimon.format.row_tracking import RowIdentity, file_mappings
from spark_jobs.connectors.paimon.format.vectors import VectorLocation, read_bytes, vector_of
from spark_jobs.connectors.paimon.write.file_layout import (
    NewFileLayout,
    PaimonTaskFiles,
    bucket_file_document,
)
from spark_jobs.datafiles.concatenate import InputFile, concatenate
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.sort_files import sort_files
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.spi.writes import Fragment, RowOrder
from spark_jobs.storage.files import remove_file


class Compactor(Protocol):
    """Compacts the parts of one kind of table. Picklable."""

    def compact(self, native: Any, task_key: str) -> Sequence[Fragment]:
        """As ``PartCompactor.compact``."""
        ...


@dataclass(frozen=True, slots=True)
class PaimonPartCompactor:
    """Implements ``PartCompactor``; the names of all new files begin with one of ``prefixes``."""

    real: Compactor
    filesystem: pafs.FileSystem
    prefixes: tuple[str, ...]

    def compact(self, native: Any, task_key: str) -> Sequence[Fragment]:
        """Compact a part."""
        return self.real.compact(native, task_key)

    def discard(self, fragments: Sequence[Fragment]) -> None:
        """Remove the new files of fragments."""
        remove_new_files(self.filesystem, fragments)


def remove_new_files(filesystem: pafs.FileSystem, fragments: Sequence[Fragment]) -> None:
    """Remove the data files and changelog files of fragments."""
    for fragment in fragments:
        compacted = fragment.document["compacted"]
        for file in (*compacted["added"], *compacted["changelog"]):
            remove_file(filesystem, _path(file))


def _path(file: Mapping[str, Any]) -> str:
    return str(file["run"]["path"] if "run" in file else file["path"])


class AppendFile(NamedTuple):
    """A data file of a part.

    ``ordinal`` is the index in ``StoredFiles.located_entries``, ``size`` is in bytes.
    ``schema_id`` is None if its columns are the table's. ``identity`` tells its rows' ids, if the
    table tracks them.
    """

    ordinal: int
    path: str
    row_count: int
    size: int
    vector: VectorLocation | None = None
    schema_id: int | None = None
    identity: RowIdentity | None = None


@dataclass(frozen=True, slots=True)
class AppendPart:
    """Files of one bucket.

    ``directory`` is the bucket's in the table's directory. ``numbers`` are the first and last
    sequence number of the new file. Rows are sorted into ``sorted_files`` files; 0: into one, in
    the order of ``files``.
    """

    place: BucketKey
    directory: str
    files: tuple[AppendFile, ...]
    numbers: tuple[int, int]
    sorted_files: int = 0


@dataclass(frozen=True, slots=True)
class AppendCompactor:
    """Compacts the parts of one plan. Implements ``part_compactor.Compactor``.

    ``name_prefix`` begins the names of all files that it creates, and of no other files.
    ``columns`` are the table's; files of the ``layout`` have ids, too, if the table tracks rows.
    ``mappings`` are by id of an older schema. ``order`` is that of parts that are sorted.
    """

    name_prefix: str
    columns: pa.Schema
    layout: NewFileLayout
    mappings: Mapping[int, tuple[FieldMapping, ...]]
    order: RowOrder | None = None

    def compact(self, native: AppendPart, task_key: str) -> list[Fragment]:
        """The fragment of a part; see ``PartCompactor``."""
        names, files = PaimonTaskFiles(self.layout, task_key), self.layout.files
        new_path = partial(names.data_path, self.name_prefix, native.directory)
        inputs, count = self._inputs(native), native.sorted_files
        try:
            if self.order is not None and count:
                found = sort_files(files.filesystem, inputs, self.order, count, new_path, files)
                return [_fragment(native, found)]
            written = concatenate(files.filesystem, inputs, new_path(), files)
            return [_fragment(native, [written] if written else [])]
        except BaseException:
            with contextlib.suppress(OSError):
                names.remove()
            raise

    def _inputs(self, part: AppendPart) -> Iterator[InputFile]:
        filesystem = self.layout.files.filesystem
        locations = [file.vector for file in part.files if file.vector is not None]
        try:
            vectors = read_bytes(filesystem, locations)
        except FileNotFoundError as error:
            raise CatalogError(
                ErrorCode.METADATA_UNREADABLE,
                f"An index file with deletion vectors is missing: {error}",
                "Restore the index file, or roll the table back to a snapshot before it.",
            ) from error
        for file in part.files:
            deleted = np.empty(0, np.int64)
            if file.vector is not None:
                deleted = vector_of(file.vector, vectors[file.vector])
            mappings = file_mappings(self.mappings, self.columns, file.schema_id, file.identity)
            yield InputFile(file.path, file.row_count, deleted, mappings)


def _fragment(part: AppendPart, written: Sequence[WrittenFile]) -> Fragment:
    numbers = {"numbers": list(part.numbers)}
    added = [bucket_file_document(each, part.place) | numbers for each in written]
    files = [file.ordinal for file in part.files]
    return Fragment(
        {"compacted": {"files": files, "added": added, "changelog": []}},
        files_added=len(added),
        files_removed=len(files),
        bytes_added=sum(each.size for each in written),
        bytes_removed=sum(file.size for file in part.files),
        rows_carried=sum(each.rows for each in written),
    )
