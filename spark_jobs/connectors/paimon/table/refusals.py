"""What this connector does not do, refused by name before any row is read.

``refuse_unreadable`` is for every use of a table, ``refuse_unwritable`` for changing its rows,
``refuse_tagging`` for its tags, ``refuse_file`` for a single data file. docs/paimon.md explains
each entry.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, Final

from spark_jobs.connectors.paimon.format.external_paths import OPTION, external_paths
from spark_jobs.connectors.paimon.format.types import atomic_parts, has_nanoseconds
from spark_jobs.connectors.paimon.library.index_manifest import DELETION_VECTORS
from spark_jobs.connectors.paimon.library.table_schema import PaimonSchema
from spark_jobs.connectors.paimon.table.refused_options import Use, refused
from spark_jobs.connectors.paimon.table.table_handle import PaimonTable
from spark_jobs.contract.paimon_files import BRANCH_MARK
from spark_jobs.contract.request import TableName
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.rows import RESERVED_PREFIX

REWRITE_SHARE_OPTION: Final = "merge.deletion-vectors.rewrite-share"

_BRANCH: Final = re.compile(rf"[^$]+{re.escape(BRANCH_MARK)}[^$]+")
_OTHER_ENGINE: Final = "Run this statement with Paimon's own engines."

_UNSAFE_PARTITION_TYPES: Final = {
    "TIMESTAMP_LTZ": "its directory depends on the writer's time zone",
    "BINARY": "its values have no portable spelling",
    "VARBINARY": "its values have no portable spelling",
    "BYTES": "its values have no portable spelling",
}


def refuse_name(name: TableName) -> None:
    """Refuse system tables, which Paimon addresses by a ``$`` in the name, as it does branches."""
    if "$" in name.table and not _BRANCH.fullmatch(name.table):
        raise NotSupportedError(
            f"{name} is a system table.", "Name the table itself, or a branch: table$branch_name."
        )


def refuse_new_branch(name: TableName) -> None:
    """Refuse to make a branch as if it were a table of its own."""
    if "$" in name.table:
        raise NotSupportedError(
            f"{name} is a branch, which can not be created as a table.",
            "Create the branch of the table with Paimon's own engines first.",
        )


def refuse_unreadable(name: TableName, schema: PaimonSchema) -> None:
    """Refuse tables whose rows this connector can not read right.

    Raises:
        NotSupportedError: with the reason.
    """
    if schema.primary_keys:
        keys = ", ".join(schema.primary_keys)
        raise NotSupportedError(
            f"{name} has a primary key ({keys}); only append tables are supported.",
            _OTHER_ENGINE,
        )
    _refuse_options(name, schema, "read")
    _refuse_names(name, schema)
    _refuse_partition_types(name, schema)


def refuse_indexes(table: PaimonTable, name: TableName) -> None:
    """Refuse a snapshot with an index other than deletion vectors that are in use.

    Raises:
        NotSupportedError: with the kind of index.
    """
    if table.vectors and not table.marks_rows:
        raise NotSupportedError(
            f"{name} has deletion vectors, but its option deletion-vectors.enabled is not true: "
            "engines do not agree on whether the rows are deleted.",
            "Switch the option on, or compact the table fully with Paimon's own engines first.",
        )
    for file in table.index_files:
        if file.kind != DELETION_VECTORS:
            raise NotSupportedError(
                f"{name} has an index of the kind {file.kind}, which this would not keep.",
                _OTHER_ENGINE,
            )
        for data_file, vector in file.vectors.items():
            if vector.cardinality is None:
                raise NotSupportedError(
                    f"The deletion vector of {data_file} of {name} does not tell how many rows it "
                    "deletes (Paimon before 1.0).",
                    "Compact the table fully with Paimon's own engines first.",
                )


def refuse_unwritable(name: TableName, schema: PaimonSchema) -> None:
    """Refuse tables whose rows can be read but not changed here.

    Raises:
        NotSupportedError: with the reason.
    """
    _refuse_options(name, schema, "write")
    _refuse_buckets(name, schema)
    _refuse_wrong_share(name, schema)
    _refuse_external_paths(name, schema)
    _refuse_wrong_prefix(name, schema)
    for column in schema.columns:
        if has_nanoseconds(column.type):
            raise NotSupportedError(
                f"Column {column.name} of {name} has timestamps of precision 7 to 9, which can not "
                "be written so that every engine reads them.",
                "Change the column to TIMESTAMP(6).",
            )


def refuse_tagging(name: TableName, schema: PaimonSchema) -> None:
    """Refuse to make or drop tags of tables where more than their files would have to change.

    Raises:
        NotSupportedError: with the reason.
    """
    _refuse_options(name, schema, "tag")


def refuse_rescaled(
    name: TableName, buckets: int, located_entries: Sequence[tuple[str, Any]]
) -> None:
    """Refuse a table with data files from before its option ``bucket`` was changed.

    Paimon's own writers refuse it as well, or put rows where readers do not look for them.

    Raises:
        NotSupportedError: with the file.
    """
    for path, entry in located_entries:
        if entry.total_buckets != buckets:
            raise NotSupportedError(
                f"{name} now has {buckets} buckets (option bucket), but data file {path} is one of "
                f"{entry.total_buckets} buckets.",
                "Rescale the whole table with INSERT OVERWRITE in Paimon's own engines first.",
            )


def refuse_file(
    table: PaimonTable,
    name: TableName,
    entry: Any,
    current_schema: int,
    differing_schemas: Collection[int],
) -> None:
    """Refuse a data file that Spark's parquet reader would not read right.

    ``differing_schemas`` have other columns than ``current_schema``.

    Raises:
        NotSupportedError: with the reason and the file.
    """
    file = entry.file
    if file.schema_id in differing_schemas:
        problem = f"was written with schema {file.schema_id}, the table now has {current_schema}"
    elif not file.file_name.endswith(".parquet"):
        problem = "is not a parquet file"
    elif file.file_name.startswith(("_", ".")):
        problem = "has a name that Spark takes for a hidden file"
    elif file.write_cols is not None or file.first_row_id is not None:
        problem = "holds only some columns of its rows (data evolution)"
    else:
        return
    raise NotSupportedError(
        f"Data file {file.file_name} of {name} at {table.path} {problem}; this is not supported.",
        "Compact the table fully with Paimon's own engines first.",
    )


def _refuse_options(name: TableName, schema: PaimonSchema, use: Use) -> None:
    for option, refusal in refused(schema.options, use):
        value = schema.options[option]
        raise NotSupportedError(
            f"{name} {refusal.reason} (option {option} = {value}), which is not supported.",
            refusal.remedy,
        )


def _refuse_wrong_share(name: TableName, schema: PaimonSchema) -> None:
    text = schema.options.get(REWRITE_SHARE_OPTION, "1")
    try:
        is_share = 0 <= float(text) <= 1
    except ValueError:
        is_share = False
    if not is_share:
        raise NotSupportedError(
            f"Option {REWRITE_SHARE_OPTION} = {text} of {name} is not a number from 0 to 1.",
            "Correct the table's option.",
        )


def _refuse_external_paths(name: TableName, schema: PaimonSchema) -> None:
    beside = schema.options.get("index-file-in-data-file-dir", "false").lower() == "true"
    if external_paths(schema.options) is not None and beside:
        raise NotSupportedError(
            f"{name} keeps index files beside data files (option index-file-in-data-file-dir) that "
            f"lie outside its directory (option {OPTION}), which is not supported.",
            _OTHER_ENGINE,
        )


def _refuse_wrong_prefix(name: TableName, schema: PaimonSchema) -> None:
    prefix = schema.options.get("data-file.prefix", "")
    if prefix.startswith(("_", ".")) or any(character in prefix for character in "/\\:\0"):
        raise NotSupportedError(
            f"Option data-file.prefix = {prefix} of {name} makes names of files that Spark hides "
            "or does not find.",
            "Correct the table's option: no _ or . in front, and no /, \\ or : in it.",
        )


def _refuse_names(name: TableName, schema: PaimonSchema) -> None:
    lowered = Counter(column.name.lower() for column in schema.columns)
    for column in schema.columns:
        if lowered[column.name.lower()] > 1:
            raise NotSupportedError(
                f"{name} has columns that differ only in case: {column.name}.",
                "Rename one of them.",
            )
        if column.name.lower().startswith(RESERVED_PREFIX):
            raise NotSupportedError(
                f"{name} has a column {column.name}; names with {RESERVED_PREFIX} are reserved.",
                "Rename the column.",
            )


def _refuse_buckets(name: TableName, schema: PaimonSchema) -> None:
    """Only what rows can be hashed into as Paimon's Java writers do it."""
    bucket = schema.options.get("bucket", "-1")
    if bucket == "-1":
        return
    if not bucket.isdecimal() or int(bucket) == 0:
        raise NotSupportedError(
            f"{name} has option bucket = {bucket}; an append table has -1 or a number of buckets.",
            _OTHER_ENGINE,
        )
    if not schema.bucket_key:
        raise NotSupportedError(
            f"{name} has {bucket} buckets but no bucket key: versions of Paimon differ in where "
            "its rows belong.",
            "Set the option bucket-key.",
        )
    types = {column.name: column.type for column in schema.columns}
    for key in schema.bucket_key:
        _refuse_bucket_key(name, schema, key, types.get(key))


def _refuse_bucket_key(name: TableName, schema: PaimonSchema, key: str, kind: Any) -> None:
    if kind is None:
        problem = "is no column"
    elif key in schema.partition_keys:
        problem = "is a partition key too"
    elif not isinstance(kind, str):
        problem = f"has the nested type {kind['type']}"
    else:
        return
    raise NotSupportedError(f"Bucket key {key} of {name} {problem}.", _OTHER_ENGINE)


def _refuse_partition_types(name: TableName, schema: PaimonSchema) -> None:
    for column in schema.columns:
        if column.name not in schema.partition_keys:
            continue
        type_name = atomic_parts(column.type)[0] if isinstance(column.type, str) else "nested"
        reason = _UNSAFE_PARTITION_TYPES.get(type_name)
        if reason:
            raise NotSupportedError(
                f"{name} is partitioned by {column.name} of type {type_name}: {reason}.",
                "Partition by a date, a number or a string.",
            )
