"""Writes a file of some columns of all rows of older files, with changed values. Runs on executors.

If one parquet file holds the old values, ``splice`` copies the chunks of row groups without changes
as they are stored. Otherwise everything is decoded and encoded again.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.datafiles.column_files import ColumnFile, ColumnFiles
from spark_jobs.datafiles.field_mapping import FieldMapping, recorded_columns, require_no_null
from spark_jobs.datafiles.file_changes import FileChanges
from spark_jobs.datafiles.file_formats import is_parquet
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.parquet.footer import NotSpliceableError
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.rewrite import changed_rows
from spark_jobs.datafiles.parquet.splice import splice
from spark_jobs.datafiles.parquet.writer import ParquetFileWriter, WrittenFile
from spark_jobs.datafiles.recorded_columns import require_recorded


def write_columns(
    old: ColumnFiles, target: str, changes: FileChanges, compression: Compression
) -> WrittenFile:
    """Write the columns ``old.fields`` of all rows to ``target``, with ``changes`` applied.

    The changes delete no row; ``old`` has no probes.

    Raises:
        DataError: a new value does not fit its column, or a value must not be NULL.
        NotSupportedError: a file has INT96 timestamps that cannot be read rightly.
        InternalError: positions are not ascending.
        CatalogError: DATA_FILE_UNREADABLE, also if a position is not in the file.
    """
    changes.require_valid(old.row_count, old.files[0].path)
    if len(old.files) == 1 and is_parquet(old.files[0].path):
        file = old.files[0]
        with reading_file(file.path):
            _require_columns(old, file)
            try:
                mappings = [_mapping(file, field) for field in old.fields]
                return splice(old.filesystem, file.path, target, changes, compression, mappings)
            except NotSpliceableError:
                pass
    return _written_anew(old, target, changes, compression)


def _require_columns(old: ColumnFiles, file: ColumnFile) -> None:
    """Check that the file has all rows, and the columns as its schema has them.

    Raises:
        pa.ArrowInvalid: it does not.
    """
    with pq.ParquetFile(old.filesystem.open_input_file(file.path)) as plain:
        if plain.metadata.num_rows != old.row_count:
            raise pa.ArrowInvalid(
                f"it has {plain.metadata.num_rows} rows, but should have {old.row_count}"
            )
        mappings = [_mapping(file, field) for field in old.fields]
        require_recorded(plain.schema_arrow, recorded_columns(mappings))


def _mapping(file: ColumnFile, field: pa.Field) -> FieldMapping:
    """How a column of the new file is found in the old one, which need not have it."""
    if field.name not in file.names:
        return FieldMapping(field, None)
    return FieldMapping(field, field) if file.mappings is None else file.mappings[field.name]


def _written_anew(
    old: ColumnFiles, target: str, changes: FileChanges, compression: Compression
) -> WrittenFile:
    schema = pa.schema(old.fields)
    nullable = [field.with_nullable(nullable=True) for field in old.fields]
    sources = ColumnFiles(old.filesystem, old.files, nullable, {}, old.row_count)
    holders = {name: file.path for file in old.files for name in file.names}
    writer = ParquetFileWriter(old.filesystem, target, schema, compression)
    try:
        for positions, columns in sources.rows(np.zeros(0, np.int64)):
            local = changes.of_group(int(positions[0]), len(positions))
            writer.write_row_group(_checked(changed_rows(columns, local, changes), schema, holders))
        return writer.finish()
    except BaseException:
        writer.close_quietly()
        raise


def _checked(rows: pa.Table, schema: pa.Schema, holders: Mapping[str, str]) -> pa.Table:
    """The rows as the table's columns have them; ``holders`` are the paths of their files."""
    for field in schema:
        require_no_null(field, rows.column(field.name), holders.get(field.name, "of the range"))
    return pa.Table.from_arrays(rows.columns, schema=schema)
