"""Refuses tables and files that this connector does not support, before any row is read.

``refuse_unreadable`` is for every use of a table, ``refuse_unwritable`` for changing its rows, and
``refuse_file`` for reading a file. Driver only.

pyarrow holds timestamps of ORC files in nanoseconds, and wraps years that do not fit around without
an error. Iceberg's writers store them in UTC, others, which know no field ids, in any time zone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Final

import pyarrow as pa

from spark_jobs.connectors.iceberg.format.schema import (
    FIELD_ID,
    IcebergField,
    UnknownTypeError,
    all_fields,
    arrow_field,
    opaque_type,
)
from spark_jobs.connectors.iceberg.format.stored_columns import stored_columns
from spark_jobs.connectors.iceberg.format.values import bound
from spark_jobs.connectors.iceberg.table.live_files import LiveFile
from spark_jobs.connectors.iceberg.table.manifests import ManifestEntry
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.contract.request import TableName
from spark_jobs.contract.table_name import BRANCH_MARK, MAIN_BRANCH
from spark_jobs.datafiles.file_formats import is_avro, is_for_pyarrow, is_orc
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.iceberg.refused_properties import OTHER_ENGINE, refuse_target
from spark_jobs.formats.iceberg.reserved import LAST_UPDATED, ROW_ID
from spark_jobs.formats.iceberg.transforms import VOID, is_known
from spark_jobs.spi.rows import RESERVED_PREFIX
from spark_jobs.spi.tables import TableHandle

_VERSIONS: Final = (1, 2, 3)
# Keys of equality deletes that one task can hold.
_MOST_KEYS: Final = 20_000_000
# The specification allows no equality deletes by them.
_INEXACT: Final = ("float", "double")
_COMPACT: Final = "Compact the table with the engine that made it (rewrite_data_files)."
ORC: Final = "ORC"
TIMES: Final = ("timestamp", "timestamptz")
_FIRST_YEAR: Final = 1678
_LAST_YEAR: Final = 2261


def refuse_name(name: TableName) -> None:
    """Refuse metadata tables."""
    table, mark, branch = name.table.partition(BRANCH_MARK)
    if "$" in table or (mark and not branch):
        raise NotSupportedError(
            f"{name} is a metadata table.", "Name the table itself, or a branch: table$branch_name."
        )


def refuse_new_branch(name: TableName) -> None:
    """Refuse to create a branch as if it were a table."""
    if name.branch != MAIN_BRANCH:
        raise NotSupportedError(
            f"{name} is a branch, which cannot be created as a table.",
            "Create the branch of the table by CreateBranchOperator.",
        )


def refuse_unreadable(name: TableName, metadata: object, fields: tuple[IcebergField, ...]) -> None:
    """Refuse tables whose rows cannot be read correctly here.

    Raises:
        NotSupportedError: the table is refused; gives the reason.
    """
    version = getattr(metadata, "format_version", None)
    if version not in _VERSIONS:
        raise NotSupportedError(
            f"{name} has version {version} of the format, which is not supported.",
            f"Use a table of one of the versions {', '.join(map(str, _VERSIONS))}.",
        )
    for field in fields:
        if field.name.lower().startswith(RESERVED_PREFIX):
            raise NotSupportedError(
                f"{name}: names of columns that begin with {RESERVED_PREFIX} are reserved.",
                f"Rename column {field.name}.",
            )
    counts = Counter(each.name.lower() for each in fields)
    doubled = next((each for each, count in counts.items() if count > 1), None)
    if doubled is not None:
        raise NotSupportedError(
            f"{name} has several columns {doubled}, which differ only in case.",
            "Rename all but one.",
        )


def refuse_unwritable(name: TableName, table: PinnedTable) -> None:
    """Refuse tables whose rows cannot be changed correctly here.

    Raises:
        NotSupportedError: the table is refused; gives the reason.
    """
    refuse_target(name, table.metadata.format_version, table.metadata.properties)
    _refuse_row_id_columns(name, table)
    _refuse_nested_defaults(name, table)
    _refuse_opaque(name, table)
    refuse_spec(name, table, table.metadata.default_spec_id)
    for part in table.specs[table.metadata.default_spec_id]:
        is_usable = part.source is not None and is_known(part.source.type.name, part.transform)
        if part.transform != VOID and not is_usable:
            raise NotSupportedError(
                f"{name}: its partition field {part.name} ({part.transform}) is not supported.",
                OTHER_ENGINE,
            )


def refuse_moved_rows(table: TableHandle, assigned: Collection[str]) -> None:
    """Refuse UPDATEs of ``assigned`` sources of partitions, if Spark cannot have some columns."""
    for column in table.opaque_columns if assigned else ():
        raise NotSupportedError(
            f"{table.name}: an UPDATE of {min(assigned)}, a source of partitions, moves rows, whose"
            f" values of {column.name}, of the type {column.type}, cannot be carried.",
            OTHER_ENGINE,
        )


def refuse_spec(name: TableName, table: PinnedTable, spec_id: int) -> None:
    """Refuse new files of a partition spec that is made of columns which are nested or gone.

    Raises:
        NotSupportedError: the spec is refused; names its field.
    """
    columns = table.metadata.schema().field_ids
    for part, field in zip(
        table.specs[spec_id], table.metadata.specs()[spec_id].fields, strict=True
    ):
        is_gone = field.source_id not in columns
        if is_gone or (part.source is None and part.transform != VOID):
            raise NotSupportedError(
                f"{name}: the partition field {part.name} of some files is of a column that is "
                f"{'gone' if is_gone else 'nested'}, which is not supported.",
                "Rewrite these files with Iceberg's own engines.",
            )


def refuse_file(name: TableName, table: PinnedTable, file: LiveFile) -> None:
    """Refuse a data file of an unknown format, or with deletes of other kinds than parquet."""
    problem = _format_problem(table, file)
    if problem:
        raise NotSupportedError(
            f"{name} has a data file {problem}, which is not supported: {file.entry.path}.",
            "Rewrite it as parquet with the engine that made it (write.format.default).",
        )
    for deletes in file.all_deletes:
        problem = "" if deletes.is_vector else _other_format(deletes.file_format, deletes.path)
        if problem:
            raise NotSupportedError(
                f"{name} has deletes {problem}, which is not supported: {deletes.path}.", _COMPACT
            )
    for deletes in file.equality_deletes:
        for number in deletes.equality_ids:
            _refuse_key(name, table.known_fields.get(number), deletes)
    keys = sum(each.row_count for each in file.equality_deletes)
    if keys > _MOST_KEYS:
        raise NotSupportedError(
            f"{name} has {keys:,} rows of equality deletes for {file.entry.path}; at most "
            f"{_MOST_KEYS:,} are read.",
            _COMPACT,
        )


def _refuse_key(name: TableName, column: IcebergField | None, deletes: ManifestEntry) -> None:
    """Refuse a column of equality deletes whose values cannot be compared exactly here."""
    problem = ""
    if column is None:
        problem = "a column that is nested or unknown"
    elif column.type.name in _INEXACT or not column.type.is_primitive:
        problem = f"{column.name}, which has the type {column.type.name}"
    elif deletes.file_format == ORC and column.type.name in TIMES:
        problem = f"{column.name}, which has the type {column.type.name}, in the format {ORC}"
    if problem:
        raise NotSupportedError(
            f"{name} has equality deletes by {problem}, in {deletes.path}, which is not supported.",
            _COMPACT,
        )


def _refuse_row_id_columns(name: TableName, table: PinnedTable) -> None:
    """Refuse columns with the names of those that store the ids of rows; upgrades allow them."""
    for field in table.fields if table.has_vectors else ():
        if field.name in (ROW_ID, LAST_UPDATED):
            raise NotSupportedError(
                f"{name} has a column {field.name}, as which files of version 3 store what tells "
                "rows apart.",
                "Rename the column with the engine that made the table.",
            )


def _refuse_nested_defaults(name: TableName, table: PinnedTable) -> None:
    """Refuse defaults of new rows that statements do not know: those of nested values."""
    for column in table.columns:
        nested = () if column.type.is_primitive else (column, *all_fields(column.type.fields))
        if any(each.write_default is not None for each in nested):
            raise NotSupportedError(
                f"{name}: column {column.name} has a default of new nested values, which is not "
                "supported.",
                OTHER_ENGINE,
            )


def _refuse_opaque(name: TableName, table: PinnedTable) -> None:
    """Refuse columns that statements cannot use where their values are needed."""
    numbers = {each.source_id for spec in table.metadata.partition_specs for each in spec.fields}
    for column in table.opaque:
        problem = "partitions are or were made of it" if column.id in numbers else ""
        try:
            if column.is_stored:
                arrow_field(column)
        except UnknownTypeError as error:
            problem = f"new files cannot hold values of the type {error} as they are"
        if column.write_default is not None:
            problem = "new rows have a default there"
        if problem:
            raise NotSupportedError(
                f"{name}: column {column.name} has the type {opaque_type(column.type)}, and "
                f"{problem}, which is not supported.",
                OTHER_ENGINE,
            )


def _format_problem(table: PinnedTable, file: LiveFile) -> str:
    """Why a data file cannot be read here; empty if it can.

    Raises:
        CatalogError: DATA_FILE_UNREADABLE.
        struct.error, ValueError: a bound in the metadata is not valid.
    """
    problem = _other_format(file.entry.file_format, file.path)
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


def _other_format(kind: str, path: str) -> str:
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
