"""The files of sections, as executors read them. Driver only."""

from __future__ import annotations

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.keyed.keyed_schema import KeyedSchema
from spark_jobs.connectors.paimon.keyed.section_reader import RunFile, SectionReader
from spark_jobs.connectors.paimon.library import table_schema
from spark_jobs.connectors.paimon.library.data_files import key_range
from spark_jobs.connectors.paimon.table.primary_key import KeyedTable
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable

_THIN_OPTION = "data-file.thin-mode"


def run_files(table: PinnedTable, ordinal: int) -> tuple[RunFile, ...]:
    """The files of a unit, in the order of their index in it; none that is not visible yet."""
    unit = table.files.units[ordinal]
    return () if unit.is_pending else tuple(run_file(table, index) for index in unit.files)


def run_file(table: PinnedTable, index: int) -> RunFile:
    """The file with an index in ``StoredFiles.located_entries``."""
    path, entry = table.files.located_entries[index]
    return RunFile(
        path=path,
        level=entry.file.level,
        first=key_range(entry).first,
        row_count=entry.file.row_count,
        delete_count=entry.file.delete_row_count,
        vector=table.files.vectors.get(entry.file.file_name),
        schema_id=table.columns.mapped_schema(entry),
    )


def keyed_schema(table: PinnedTable, keyed: KeyedTable) -> KeyedSchema:
    """How executors read and write rows of a table with a primary key."""
    return KeyedSchema(
        columns=table_schema.arrow_schema(table.table),
        key=keyed.key,
        engine=keyed.engine,
        thin=table.options.get(_THIN_OPTION, "false").lower() == "true",
        looks_up=keyed.looks_up,
    )


def section_reader(
    table: PinnedTable, keyed: KeyedTable, filesystem: pafs.FileSystem
) -> SectionReader:
    """The reader of the table's sections."""
    return SectionReader(filesystem, keyed_schema(table, keyed), table.files.mappings)
