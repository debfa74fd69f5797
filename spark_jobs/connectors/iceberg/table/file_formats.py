"""Data files in formats other than parquet, and which of them cannot be read rightly. Driver only.

pyarrow holds timestamps of ORC files in nanoseconds, and wraps years that do not fit around without
an error. Iceberg's writers store them in UTC, others, which know no field ids, in any time zone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from spark_jobs.connectors.iceberg.format.schema import FIELD_ID, IcebergField, all_fields
from spark_jobs.connectors.iceberg.format.stored_columns import stored_columns
from spark_jobs.connectors.iceberg.format.values import bound
from spark_jobs.connectors.iceberg.table.live_files import LiveFile
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.datafiles.file_formats import is_avro, is_for_pyarrow, is_orc
from spark_jobs.datafiles.parquet.damage import reading_file

ORC: Final = "ORC"
TIMES: Final = ("timestamp", "timestamptz")
_FIRST_YEAR: Final = 1678
_LAST_YEAR: Final = 2261


def format_problem(table: PinnedTable, file: LiveFile) -> str:
    """Why a data file cannot be read here; empty if it can.

    Raises:
        CatalogError: DATA_FILE_UNREADABLE.
        struct.error, ValueError: a bound in the metadata is not valid.
    """
    problem = other_format(file.entry.file_format, file.path)
    if problem or file.entry.file_format != ORC:
        return problem
    unsafe = list(_times(table.fields))
    if unsafe and table.name_mapping is None:
        # Entries that are read for a compaction have no bounds.
        known = table.files_by_path.get(file.path, file)
        unsafe = [each for each in unsafe if not _has_safe_bounds(each, known)]
    column = _first_stored(table, file, unsafe) if unsafe else None
    if column is None:
        return ""
    return (
        f"in the format ORC whose statistics do not show that all timestamps in column {column} "
        f"are from the years {_FIRST_YEAR} to {_LAST_YEAR}"
    )


def other_format(kind: str, path: str) -> str:
    """Why a file of the format ``kind`` is not read as such: nobody does, or by its name."""
    readers = {"PARQUET": not is_for_pyarrow(path), ORC: is_orc(path), "AVRO": is_avro(path)}
    if kind not in readers:
        return f"in the format {kind}"
    return "" if readers[kind] else f"in the format {kind}, with a name that says otherwise"


def _times(fields: Iterable[IcebergField]) -> Iterator[IcebergField]:
    return (each for each in all_fields(fields) if each.type.name in TIMES)


def _has_safe_bounds(field: IcebergField, file: LiveFile) -> bool:
    entry = file.entry
    if entry.by_id("null_value_counts").get(field.id) == entry.row_count:
        return True
    found = [entry.by_id(name).get(field.id) for name in ("lower_bounds", "upper_bounds")]
    times = [None if each is None else bound(field.type, each) for each in found]
    return all(each and _FIRST_YEAR <= each.year <= _LAST_YEAR for each in times)


def _first_stored(table: PinnedTable, file: LiveFile, fields: Iterable[IcebergField]) -> str | None:
    """The name of one of ``fields`` that the file may have; None if it has none."""
    filesystem = table.storage.filesystem
    with reading_file(file.path, filesystem), filesystem.open_input_file(file.path) as stream:
        ids = set(_ids(stored_columns(file.path, stream)))
    return next((each.name for each in fields if not ids or each.id in ids), None)


def _ids(found: Iterable[pa.Field]) -> Iterator[int]:
    for column in found:
        number = (column.metadata or {}).get(FIELD_ID)
        if number is not None:
            yield int(number)
        kind = column.type
        if pa.types.is_map(kind):
            yield from _ids([kind.key_field, kind.item_field])
        else:
            yield from _ids([kind.field(i) for i in range(kind.num_fields)])
