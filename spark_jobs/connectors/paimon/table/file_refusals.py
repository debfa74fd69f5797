"""Refuses snapshots with files that this connector cannot read or maintain. Driver only.

Also what it does not do with data evolution, and changes that files do not tell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

import pyarrow as pa

from spark_jobs.connectors.paimon.format.hash_index import HASH
from spark_jobs.connectors.paimon.format.manifest_entries import POSTPONED, bucket_key_of
from spark_jobs.connectors.paimon.format.schema_history import ChangedTypeError
from spark_jobs.connectors.paimon.library import data_files, table_schema
from spark_jobs.connectors.paimon.library.index_manifest import DELETION_VECTORS
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.contract.request import TableName
from spark_jobs.datafiles.file_formats import is_avro, is_orc, is_parquet
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError

# pyarrow and Java read older timestamps of ORC files differently if the writer was in a time zone
# whose clock was set before; later ones do not fit into pyarrow's 64-bit nanoseconds.
_FIRST_YEAR: Final = 1970
_LAST_YEAR: Final = 2261

_OTHER_ENGINE: Final = "Run this statement with Paimon's own engines."
_COMPACT: Final = "Compact the table fully with Paimon's own engines first."
_EVOLVES: Final = "stores columns apart (option data-evolution.enabled)"


def refuse_indexes(table: PinnedTable, name: TableName) -> None:
    """Refuse a snapshot with an index other than deletion vectors, or with unusable ones.

    Raises:
        NotSupportedError: there is another kind of index; deletion vectors are not enabled, or one
            does not record its cardinality.
    """
    if table.files.vectors and not table.marks_rows:
        raise NotSupportedError(
            f"{name} has deletion vectors, but its option deletion-vectors.enabled is not true: "
            "engines do not agree on whether the rows are deleted.",
            "Switch the option on, or compact the table fully with Paimon's own engines first.",
        )
    for file in table.files.index_files:
        if file.kind != DELETION_VECTORS and not (file.kind == HASH and table.bucketing.is_dynamic):
            raise NotSupportedError(
                f"{name} has an index of the kind {file.kind}, which this would not keep.",
                _OTHER_ENGINE,
            )
        for data_file, vector in file.vectors.items():
            if vector.cardinality is None:
                raise NotSupportedError(
                    f"The deletion vector of {data_file} of {name} does not tell how many rows it "
                    "deletes (Paimon before 1.0).",
                    _COMPACT,
                )


def refuse_rescaled(table: PinnedTable, name: TableName) -> None:
    """Refuse a table that has data files from before a change of its option ``bucket``.

    Paimon's own writers refuse it too, or put rows where readers do not look for them.

    Raises:
        NotSupportedError: a file has another number of buckets; names the file.
    """
    if not table.bucketing.matters:
        return
    for path, entry in table.files.located_entries:
        buckets = table.bucketing.total(tuple(entry.partition.values))
        if entry.total_buckets != buckets and entry.bucket != POSTPONED:
            raise NotSupportedError(
                f"{name} now has {buckets} buckets (option bucket), but data file {path} is one of "
                f"{entry.total_buckets} buckets.",
                "Rescale the whole table with INSERT OVERWRITE in Paimon's own engines first.",
            )


def refuse_incomplete_index(table: PinnedTable, name: TableName) -> None:
    """Refuse dynamic buckets with data files of which the HASH index says nothing.

    Raises:
        CatalogError: METADATA_UNREADABLE; names the file.
    """
    if not table.bucketing.is_dynamic:
        return
    for path, entry in table.files.located_entries:
        if bucket_key_of(entry) not in table.files.hash_indexes:
            raise CatalogError(
                ErrorCode.METADATA_UNREADABLE,
                f"{name} has no HASH index for bucket {entry.bucket}, which data file {path} is "
                "in: where its keys belong is unknown.",
                "Write the partition anew with INSERT OVERWRITE in Paimon's own engines.",
            )


def refuse_file(table: PinnedTable, name: TableName, entry: Any) -> None:
    """Refuse a data file that would not be read correctly.

    Raises:
        NotSupportedError: the file cannot be read; gives the reason and the file.
    """
    file, identity = entry.file, table.identity_of(entry)
    _refuse_changed_types(table, name, file)
    orc_problem = _orc_problem(table, entry) if is_orc(file.file_name) else ""
    own_problem = _file_problem(table, file) or orc_problem
    if own_problem:
        problem = own_problem
    elif not any(known(file.file_name) for known in (is_parquet, is_orc, is_avro)):
        problem = "is neither a parquet nor an ORC nor an Avro file"
    elif file.file_name.startswith(("_", ".")):
        problem = "has a name that Spark takes for a hidden file"
    elif _lacks_columns(table, file):
        problem = "holds only some columns of its rows (data evolution)"
    elif identity is not None and not identity.is_known:
        problem = "does not tell the ids of its rows (option row-tracking.enabled)"
    else:
        return
    raise NotSupportedError(
        f"Data file {file.file_name} of {name} at {table.path} {problem}; this is not supported.",
        _COMPACT,
    )


def _lacks_columns(table: PinnedTable, file: Any) -> bool:
    """Whether a file holds only some of its schema's columns, and no other file has the rest."""
    if table.evolves_columns:
        return False
    if not table.tracks_rows:
        return file.write_cols is not None or file.first_row_id is not None
    if file.write_cols is None:
        return False
    return not set(table_schema.column_names_of(table.table, file.schema_id)) <= {*file.write_cols}


def _orc_problem(table: PinnedTable, entry: Any) -> str:
    """Why pyarrow would not read the values of an ORC file as they are; empty if it does."""
    for mapping in table.columns.mapping_of(entry) or ():
        if mapping.source is None:
            continue
        column = mapping.source
        kinds = list(_timestamps(column.type))
        if any(kind.tz for kind in kinds):
            return (
                f"is an ORC file with TIMESTAMP WITH LOCAL TIME ZONE in column {column.name}, "
                "which depends on the time zones of writer and reader"
            )
        if any(kind.unit == "ns" for kind in kinds):
            return f"is an ORC file with timestamps finer than microseconds in column {column.name}"
        if kinds and not _has_safe_timestamps(entry, column):
            return (
                f"is an ORC file whose statistics do not show that all timestamps in column "
                f"{column.name} are from the years {_FIRST_YEAR} to {_LAST_YEAR}: pyarrow reads "
                "others wrongly"
            )
    return ""


def _timestamps(kind: pa.DataType) -> Iterator[pa.TimestampType]:
    """The timestamp types in a type."""
    if pa.types.is_timestamp(kind):
        yield kind
    for i in range(kind.num_fields):
        yield from _timestamps(kind.field(i).type)


def _has_safe_timestamps(entry: Any, column: pa.Field) -> bool:
    """Whether pyarrow reads all timestamps of a column rightly, by the file's statistics."""
    low, high, nulls = data_files.column_range(entry, column.name)
    if nulls is not None and nulls == entry.file.row_count:
        return True
    if low is None or high is None:
        return False
    return bool(low.year >= _FIRST_YEAR and high.year <= _LAST_YEAR)


def _refuse_changed_types(table: PinnedTable, name: TableName, file: Any) -> None:
    try:
        table.columns.columns_in(file.schema_id)
    except ChangedTypeError as error:
        raise NotSupportedError(
            f"Column {error.column} of {name} is of type {error.new}, but of type {error.old} in "
            f"data file {file.file_name} at {table.path}, which is older; this change of type is "
            "not supported.",
            _COMPACT,
        ) from None


def _file_problem(table: PinnedTable, file: Any) -> str:
    """Why the ranges of a table with data evolution cannot have a data file; empty if they can."""
    if file.file_name.endswith((".blob", ".video")):
        return "holds values of the type BLOB"
    if ".vector." in file.file_name:
        return "holds values of the type VECTOR"
    if table.evolves_columns and file.first_row_id is None:
        return (
            "is not a range of row ids, but stores the id of each row, as before "
            "data-evolution.enabled was set"
        )
    return ""


def refuse_vectors_of_columns(table: PinnedTable, name: TableName) -> None:
    """Refuse deletion vectors of other files than anchors, which readers overlook.

    Raises:
        CatalogError: METADATA_UNREADABLE; names the file.
    """
    for ordinal in range(len(table.files.units)):
        for entry in table.files.unit_entries(ordinal)[1:]:
            if entry.file.file_name in table.files.vectors:
                raise CatalogError(
                    ErrorCode.METADATA_UNREADABLE,
                    f"{name} has a deletion vector of {entry.file.file_name}, a data file that "
                    "only holds newer columns of its rows: engines would overlook it.",
                    "Look for who wrote it, or roll the table back.",
                )


def refuse_row_changes(
    table: PinnedTable, name: TableName, assigned: Collection[str], *, deletes: bool
) -> None:
    """Refuse clauses that would have to rewrite the files of a table with data evolution.

    ``assigned`` are the columns that clauses update.

    Raises:
        NotSupportedError: a clause deletes rows, and no deletion vector may mark them; or one
            updates a partition column.
    """
    if not table.evolves_columns:
        return
    moving = [column for column in table.schema.partition_keys if column in assigned]
    if moving:
        raise NotSupportedError(
            f"{name} {_EVOLVES}: an update of its partition column {moving[0]} would move rows "
            "away from their ids, which is not supported.",
            "Leave out the column, or insert the rows anew.",
        )
    if deletes and not table.marks_rows:
        raise NotSupportedError(
            f"{name} {_EVOLVES}: rows can only be deleted by deletion vectors, which are not "
            "enabled (option deletion-vectors.enabled).",
            "Switch deletion-vectors.enabled on if all readers are of Paimon 2, or overwrite the "
            "partitions.",
        )


def refuse_untold(name: TableName, table: PinnedTable, *, net: bool) -> None:
    """Refuse tables whose changed files do not tell which rows changed, or (``net``) in the end.

    Raises:
        NotSupportedError: gives the reason.
    """
    if table.evolves_columns:
        raise NotSupportedError(
            f"changes of {name}: with data evolution (option data-evolution.enabled), an UPDATE "
            "adds files of some columns, which do not tell the rows before.",
            "Compare two states of the table: table_source(..., snapshot=...).",
        )
    if table.keyed is not None and table.keyed.producer == "none":
        raise NotSupportedError(
            f"changes of {name}: the table has a primary key and no changelog, so that an added "
            "record does not tell whether its row was there before.",
            "Set the option changelog-producer (lookup, full-compaction or input), or compare two "
            "states of the table: table_source(..., snapshot=...).",
        )
    keyed = table.keyed
    if net and keyed is not None and keyed.producer == "input":
        engine = keyed.engine
        if engine.kind != "deduplicate" or engine.sequence_fields:
            option = "sequence.field" if engine.sequence_fields else f"merge-engine={engine.kind}"
            raise NotSupportedError(
                f"changes of {name} with net=True: its changelog has records as they were written "
                f"(changelog-producer=input), and with {option} the last one of a key need not be "
                "the row.",
                "Set the option changelog-producer to lookup, or read each change (net=False).",
            )


def refuse_start(name: TableName, table: PinnedTable) -> None:
    """Refuse to begin at a snapshot whose changes a later changelog tells again.

    Raises:
        NotSupportedError: a compaction of the table owes changelog.
    """
    keyed = table.keyed
    if keyed is None:
        return
    if any(keyed.owes_changelog(entry.file.level) for _, entry in table.files.located_entries):
        raise NotSupportedError(
            f"changes of {name}: its compaction has still to write the changelog of rows that are "
            "in the table already, so that they would be told twice.",
            "Compact the table fully, and begin right behind that.",
        )


def untold_snapshot(name: TableName, snapshot_id: int) -> CatalogError:
    """The error for a snapshot that changed rows, of which the changelog says nothing."""
    return CatalogError(
        ErrorCode.SNAPSHOT_NOT_FOUND,
        f"{name}: snapshot {snapshot_id} changed rows and has no changelog, as an INSERT OVERWRITE,"
        " so that the changes are not known without a gap",
        "Read all rows once more: with on_gap='full', as inserts; rows that are gone are not among "
        "them. Change tables that others follow by MERGE or DELETE.",
        ("changes",),
    )
