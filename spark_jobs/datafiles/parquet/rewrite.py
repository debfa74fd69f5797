"""Rewrites a data file with some rows changed or deleted, one row group at a time.

Rows keep their order and row groups their boundaries; nothing passes through pandas or Spark rows.
``splice`` copies the chunks that do not change. ``rewrite_whole`` decodes and encodes everything
with pyarrow; it is for files with features that ``splice`` does not support.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.datafiles import orc
from spark_jobs.datafiles.avro import row_groups as avro
from spark_jobs.datafiles.conform import conform
from spark_jobs.datafiles.field_mapping import (
    FieldMapping,
    recorded_columns,
    require_no_null,
    table_columns,
)
from spark_jobs.datafiles.file_changes import FileChanges, GroupChanges, kept_rows, replace_rows
from spark_jobs.datafiles.file_formats import is_for_pyarrow, is_orc
from spark_jobs.datafiles.parquet import int96
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.parquet.footer import NotSpliceableError
from spark_jobs.datafiles.parquet.options import (
    Compression,
    ParquetOptions,
    low_cardinality_columns,
)
from spark_jobs.datafiles.parquet.splice import splice
from spark_jobs.datafiles.parquet.table_types import as_the_table
from spark_jobs.datafiles.parquet.whole_group import read_group
from spark_jobs.datafiles.parquet.writer import ParquetFileWriter, WrittenFile
from spark_jobs.datafiles.recorded_columns import require_recorded


def rewrite(
    filesystem: pafs.FileSystem,
    source: str,
    target: str,
    changes: FileChanges,
    compression: Compression,
    mappings: Sequence[FieldMapping] | None = None,
    columns: Sequence[pa.Field] = (),
) -> WrittenFile | None:
    """Apply ``changes`` to ``source`` and write the result to ``target``; None if no row is left.

    ``mappings`` are of a file that does not have the table's columns, or is ORC or Avro; the new
    file has them, and is parquet. Any other file must have the table's ``columns``, perhaps as
    other types; new values are of the table's.

    Raises:
        DataError: a new value does not fit its column or must not be NULL.
        NotSupportedError: the file has INT96 timestamps that cannot be copied; names the column.
        InternalError: positions are not ascending.
        CatalogError: DATA_FILE_UNREADABLE, also if a position is not in the file, or if the file
            does not hold what its schema says. LIBRARY_MISSING: the file is Avro, and fastavro is
            not installed.
    """
    with reading_file(source, filesystem):
        if mappings is not None and is_for_pyarrow(source):
            return _rewrite_as_parquet(filesystem, source, target, changes, compression, mappings)
        recorded = columns if mappings is None else recorded_columns(mappings)
        with pq.ParquetFile(filesystem.open_input_file(source)) as plain:
            metadata = plain.metadata
            require_recorded(plain.schema_arrow, recorded)
        changes.require_valid(metadata.num_rows, source)
        if int(changes.deleted.sum()) == metadata.num_rows:
            return None
        arguments = filesystem, source, target, changes, compression, mappings, columns
        try:
            return splice(*arguments)
        except NotSpliceableError:
            return rewrite_whole(*arguments)


def rewrite_whole(
    filesystem: pafs.FileSystem,
    source: str,
    target: str,
    changes: FileChanges,
    compression: Compression,
    mappings: Sequence[FieldMapping] | None = None,
    columns: Iterable[pa.Field] = (),
) -> WrittenFile:
    """Like ``rewrite``, with pyarrow alone; the changes must be valid and leave a row.

    Raises:
        NotSupportedError: the file has INT96 timestamps.
    """
    with pq.ParquetFile(filesystem.open_input_file(source)) as plain:
        metadata, schema = plain.metadata, plain.schema_arrow
        int96.refuse(source, plain.schema)
        options: ParquetOptions | None = ParquetOptions.like(metadata)
        texts = [n for n in low_cardinality_columns(metadata, schema) if n not in changes.columns]
        mappings = as_the_table(schema, mappings, columns, changes.columns)
    if mappings is not None:
        options, texts = None, []
    with pq.ParquetFile(
        filesystem.open_input_file(source), metadata=metadata, read_dictionary=texts
    ) as file:
        schema = file.schema_arrow if mappings is None else pa.schema(m.field for m in mappings)
        writer = ParquetFileWriter(filesystem, target, schema, compression, options)
        numbers = range(file.num_row_groups)
        groups = (read_group(file, number) for number in numbers)
        return _write(writer, groups, source, changes, mappings)


def _rewrite_as_parquet(
    filesystem: pafs.FileSystem,
    source: str,
    target: str,
    changes: FileChanges,
    compression: Compression,
    mappings: Sequence[FieldMapping],
) -> WrittenFile | None:
    """Like ``rewrite``, for an ORC or Avro file; the new file is parquet."""
    with filesystem.open_input_file(source) as stream:
        row_count = orc.row_count(stream) if is_orc(source) else avro.row_count(stream)
    changes.require_valid(row_count, source)
    if int(changes.deleted.sum()) == row_count:
        return None
    schema = pa.schema(each.field for each in mappings)
    with filesystem.open_input_file(source) as stream:
        writer = ParquetFileWriter(filesystem, target, schema, compression)
        recorded = recorded_columns(mappings)
        groups = (
            orc.stripes(stream, recorded) if is_orc(source) else avro.row_groups(stream, recorded)
        )
        tables = (group.table() for group in groups)
        return _write(writer, tables, source, changes, mappings)


def _write(
    writer: ParquetFileWriter,
    groups: Iterable[pa.Table],
    source: str,
    changes: FileChanges,
    mappings: Sequence[FieldMapping] | None,
) -> WrittenFile:
    """Write the row groups of ``source`` with the changes."""
    try:
        start = 0
        for group in groups:
            local = changes.of_group(start, group.num_rows)
            positions = np.arange(start, start + group.num_rows)
            start += group.num_rows
            columns = group if mappings is None else table_columns(group, mappings, positions)
            rows = changed_rows(columns, local, changes)
            for field, column in zip(rows.schema, rows.columns, strict=True):
                require_no_null(field, column, source)
            writer.write_row_group(rows)
        return writer.finish()
    except BaseException:
        writer.close_quietly()
        raise


def changed_rows(group: pa.Table, local: GroupChanges, changes: FileChanges) -> pa.Table:
    """``group`` with its changes applied."""
    for name, (rows, places) in local.columns.items():
        index = group.schema.get_field_index(name)
        field = group.schema.field(index)
        values = conform(changes.columns[name].values[places], field)
        group = group.set_column(index, field, replace_rows(group.column(index), rows, values))
    if len(local.gone):
        group = group.filter(kept_rows(local.gone, group.num_rows))
    return group
