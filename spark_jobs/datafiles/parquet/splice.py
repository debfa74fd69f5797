"""Rewrites a parquet file chunk by chunk: only what changes is decoded and encoded again.

A chunk without changes is copied byte for byte. Where rows are deleted, a chunk that is entirely
dictionary-encoded loses their indices and keeps its dictionary; other chunks are decoded, to their
physical type where possible. Then a new footer is written. Page indexes and bloom filters are left
out, as they would be wrong, and so are declared sort orders of row groups with updates.

Memory: one row group as stored, or one of its columns if the new file has only some of them, one
column decoded, and the changes.
"""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Iterable, Sequence
from itertools import repeat

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.datafiles.conform import conform
from spark_jobs.datafiles.field_mapping import FieldMapping, require_no_null
from spark_jobs.datafiles.file_changes import (
    FileChanges,
    GroupChanges,
    Positions,
    kept_rows,
    replace_rows,
)
from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet import int96
from spark_jobs.datafiles.parquet.chunk_statistics import ChunkStatistics
from spark_jobs.datafiles.parquet.column_codec import ColumnCodec, EncodedChunk, Window
from spark_jobs.datafiles.parquet.dictionary_chunk import (
    can_lose_rows,
    keeps_dictionary,
    without_rows,
)
from spark_jobs.datafiles.parquet.footer import (
    MAGIC,
    MISUNDERSTOOD,
    FileField,
    Footer,
    GroupField,
    NotSpliceableError,
    TopColumn,
    number,
)
from spark_jobs.datafiles.parquet.group_copies import (
    copied,
    group_range,
    new_group,
    read_chunks,
    read_group,
    write_chunk,
)
from spark_jobs.datafiles.parquet.new_columns import NewColumn, file_fields, new_columns
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.table_types import as_the_table
from spark_jobs.datafiles.parquet.thrift import STRUCT, Struct, i64, list_of
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.storage.files import make_folder


def splice(
    filesystem: pafs.FileSystem,
    source: str,
    target: str,
    changes: FileChanges,
    compression: Compression,
    mappings: Sequence[FieldMapping] | None = None,
    columns: Iterable[pa.Field] = (),
) -> WrittenFile:
    """Apply ``changes`` to ``source`` and write the result to ``target``.

    The changes must be valid and leave a row. ``mappings`` are of a file that was written with an
    older schema, or of the columns that the new file is to have. Without them, ``columns`` are the
    table's, whose types the new file has.

    Raises:
        NotSpliceableError: the file is damaged or has a feature that is not supported; ``target``
            is unusable.
        DataError: a new value does not fit its column or must not be NULL.
    """
    with filesystem.open_input_file(source) as file:
        footer = footers.read_footer(file)
        try:
            known = [each.field for each in footer.columns if not int96.is_int96(each)]
            found = as_the_table(known, mappings, columns, changes.columns)
            new = new_columns(footer, found)
            splicer = _Splicer(source, file, footer, new, changes, compression)
        except MISUNDERSTOOD as error:
            raise NotSpliceableError(f"its footer contradicts itself: {error!r}") from error
        make_folder(filesystem, posixpath.dirname(target))
        stream = filesystem.open_output_stream(target)
        try:
            size = splicer.write(stream)
            stream.close()
        except BaseException as error:
            with contextlib.suppress(OSError, pa.ArrowException):
                stream.close()
            if isinstance(error, MISUNDERSTOOD):
                raise NotSpliceableError(f"its parts contradict each other: {error!r}") from error
            raise
        return WrittenFile(target, size, splicer.rows, splicer.statistics.result())


class _Splicer:
    """Copies one file into another, with changes."""

    def __init__(
        self,
        path: str,
        file: pa.NativeFile,
        footer: Footer,
        columns: Sequence[NewColumn],
        changes: FileChanges,
        compression: Compression,
    ) -> None:
        self.rows = 0
        self.statistics = ChunkStatistics(footer, [each.column for each in columns])
        self._path = path
        self._columns = columns
        self._file = file
        self._footer = footer
        self._changes = changes
        self._compression = compression
        self._codecs = self._checked_codecs()
        held = {column.name for column in footer.columns}
        taken = {each.source.name for each in columns if each.source is not None}
        self._takes_all = held == taken
        for group in footer.row_groups:
            if self._takes_all and number(group, GroupField.NUM_ROWS):
                group_range(group)
        self._values = {
            new.column.name: self._new_values(new, changes.columns[new.column.name].values)
            for new in columns
            if new.column.name in changes.columns
        }

    def write(self, stream: pa.NativeFile) -> int:
        """Write the new file; returns its size in bytes."""
        stream.write(MAGIC)
        groups: list[Struct] = []
        start = 0
        for group in self._footer.row_groups:
            row_count = number(group, GroupField.NUM_ROWS)
            local = self._changes.of_group(start, row_count)
            start += row_count
            if len(local.gone) < row_count:
                groups.append(self._write_group(stream, group, local, len(groups)))
        rows = {FileField.NUM_ROWS: i64(self.rows), FileField.ROW_GROUPS: list_of(STRUCT, groups)}
        stream.write(footers.framed({**file_fields(self._footer, self._columns), **rows}))
        return int(stream.tell())

    def _checked_codecs(self) -> dict[str, ColumnCodec]:
        """The codecs of the columns that may have to be encoded."""
        loses_rows = bool(self._changes.deleted.any())
        created_by = self._footer.fields.get(FileField.CREATED_BY)
        codecs = {}
        for new in self._columns:
            column = new.column
            encodes = column.name in self._changes.columns or not new.is_copy
            if not new.is_copy and new.source is not None:
                _require_known_timestamps(new.source)
            if loses_rows or encodes:
                codec = ColumnCodec.for_column(column, created_by, self._compression)
                if encodes or not codec.physical:
                    codec.require_writable()
                codecs[column.name] = codec
        if not set(self._changes.columns) <= codecs.keys():
            raise NotSpliceableError("it lacks a column that changes")
        return codecs

    def _new_values(self, column: NewColumn, values: pa.Array) -> pa.Array:
        """The values that the statement assigns: as stored, unless the column is converted."""
        if column.mapping is not None and not column.is_copy:
            return conform(values, column.mapping.field)
        codec = self._codecs[column.column.name]
        return codec.stored(conform(values, codec.column.field))

    def _write_group(
        self, stream: pa.NativeFile, group: Struct, local: GroupChanges, ordinal: int
    ) -> Struct:
        start = int(stream.tell())
        rows = number(group, GroupField.NUM_ROWS)
        keep = kept_rows(local.gone, rows) if len(local.gone) else None
        left = rows - len(local.gone)
        whole = read_group(self._file, group) if self._takes_all else None
        old = footers.chunks_of(group)
        new: list[Struct] = []
        for column in self._columns:
            metas = [footers.meta_of(old[leaf]) for leaf in column.old_leaves]
            window = read_chunks(self._file, metas) if whole is None else whole
            chunks, values = self._new_chunks(column, window, metas, rows, keep, local)
            chunks = self.statistics.add(column.column, chunks, left, values)
            replaced = [old[leaf] for leaf in column.old_leaves] if column.is_copy else repeat({})
            paths = repeat(None) if column.paths is None else column.paths
            for chunk, before, path in zip(chunks, replaced, paths, strict=False):
                new.append(write_chunk(stream, before, path, chunk))
        self.rows += left
        unsorted = bool(local.columns) or any(each.mapping for each in self._columns)
        return new_group(group, new, left, start, ordinal, unsorted=unsorted)

    def _new_chunks(
        self,
        new: NewColumn,
        window: Window,
        metas: Sequence[Struct],
        rows: int,
        keep: pa.BooleanArray | None,
        local: GroupChanges,
    ) -> tuple[list[EncodedChunk], pa.ChunkedArray | None]:
        """The column's chunks after the change, and their values; None if none were decoded."""
        column = new.column
        updated = column.name in local.columns
        if new.mapping is not None and not new.is_copy:
            positions = np.arange(local.start, local.start + rows)
            values = self._converted(new.source, new.mapping, window, metas, positions)
            return self._encoded(new.mapping.field, values, metas, keep, local)
        if keep is None and not updated:
            return [copied(window, meta) for meta in metas], None
        if keep is not None and not updated and can_lose_rows(column, metas[0], self._compression):
            chunk = without_rows(column, window, metas[0], keep, self._compression)
            if chunk is not None:
                return [chunk], None
        codec = self._codecs[column.name]
        values = self._changed(column.name, codec.decode(window, metas, rows), keep, local)
        return codec.encode(values, keeps_dictionary(column, metas)), values

    def _converted(
        self,
        source: TopColumn | None,
        mapping: FieldMapping,
        window: Window,
        metas: Sequence[Struct],
        positions: Positions,
    ) -> pa.ChunkedArray:
        """The values of a column that the source stores otherwise or does not have."""
        rows = len(positions)
        if source is None:
            missing = pa.chunked_array([mapping.missing(rows)])
            return mapping.filled(missing, positions)
        created_by = self._footer.fields.get(FileField.CREATED_BY)
        codec = ColumnCodec(source, created_by, self._compression, physical=False)
        chunks = codec.decode(window, metas, rows).chunks
        values = pa.chunked_array([mapping.values(each) for each in chunks], mapping.field.type)
        return mapping.filled(values, positions)

    def _encoded(
        self,
        field: pa.Field,
        values: pa.ChunkedArray,
        metas: Sequence[Struct],
        keep: pa.BooleanArray | None,
        local: GroupChanges,
    ) -> tuple[list[EncodedChunk], pa.ChunkedArray]:
        """The chunks of a converted column after the change, and their values."""
        codec = self._codecs[field.name]
        changed = self._changed(field.name, values, keep, local)
        require_no_null(field, changed, self._path)
        stored = pa.chunked_array([codec.stored(chunk) for chunk in changed.chunks])
        return codec.encode(stored, any(map(footers.is_all_dictionary, metas))), stored

    def _changed(
        self,
        name: str,
        values: pa.ChunkedArray,
        keep: pa.BooleanArray | None,
        local: GroupChanges,
    ) -> pa.ChunkedArray:
        """The values of a column with its changes."""
        if name in local.columns:
            changed_rows, places = local.columns[name]
            new_values = self._values[name][places]
            values = replace_rows(values, changed_rows, new_values)
        return values if keep is None else values.filter(keep)


def _require_known_timestamps(source: TopColumn) -> None:
    """Check that values which have to be decoded are no INT96 timestamps in nested ones."""
    stored_as = {number(each, footers.ElementField.TYPE, -1) for each in source.elements}
    if footers.INT96 in stored_as and not source.is_flat:
        raise NotSpliceableError(f"column {source.name} has INT96 timestamps in nested values")
