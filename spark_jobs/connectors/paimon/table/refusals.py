"""Refuses tables with features that this connector does not support, before any row is read.

``refuse_unreadable`` is for every use of a table, ``refuse_unwritable`` for changing its rows, and
``refuse_tagging`` for its tags. ``file_refusals`` checks files. docs/paimon.md and
docs/primary-key.md explain each case.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, Final

from spark_jobs.connectors.paimon.format.locations import OPTION, external_paths
from spark_jobs.connectors.paimon.format.types import atomic_parts, has_nanoseconds
from spark_jobs.connectors.paimon.keyed.aggregates import FUNCTIONS
from spark_jobs.connectors.paimon.library.table_schema import PaimonColumn, PaimonSchema
from spark_jobs.connectors.paimon.table.primary_key import merge_engine, trimmed_key
from spark_jobs.contract.request import TableName
from spark_jobs.contract.table_name import BRANCH_MARK
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.paimon.paths import DIRECTORY
from spark_jobs.formats.paimon.refused_options import key_problems, refusal_of_key, refuse_options
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
_ENGINES: Final = ("deduplicate", "first-row", "partial-update", "aggregation")
_FLOATING: Final = ("FLOAT", "DOUBLE")
_FOLDED: Final = ("sum", "max", "min")
_NUMBERS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE")


def refuse_name(name: TableName) -> None:
    """Refuse system tables; Paimon's names of both system tables and branches contain a ``$``."""
    if "$" in name.table and not _BRANCH.fullmatch(name.table):
        raise NotSupportedError(
            f"{name} is a system table.", "Name the table itself, or a branch: table$branch_name."
        )


def refuse_new_branch(name: TableName) -> None:
    """Refuse to create a branch as if it were a table."""
    if "$" in name.table:
        raise NotSupportedError(
            f"{name} is a branch, which cannot be created as a table.",
            "Create the branch of the table with Paimon's own engines first.",
        )


def refuse_unreadable(name: TableName, schema: PaimonSchema) -> None:
    """Refuse tables whose rows this connector cannot read correctly.

    Raises:
        NotSupportedError: the table is refused; gives the reason.
    """
    _refuse_primary_key(name, schema)
    refuse_options(name, schema.primary_keys, schema.options, "read")
    _refuse_wrong_tracking(name, schema)
    _refuse_names(name, schema)
    _refuse_partition_types(name, schema)


def refuse_unwritable(name: TableName, schema: PaimonSchema) -> None:
    """Refuse tables whose rows this connector cannot change.

    Raises:
        NotSupportedError: the table is refused; gives the reason.
    """
    refuse_options(name, schema.primary_keys, schema.options, "write")
    _refuse_buckets(name, schema)
    _refuse_wrong_share(name, schema)
    _refuse_external_paths(name, schema)
    _refuse_wrong_prefix(name, schema, "data-file.prefix")
    _refuse_wrong_prefix(name, schema, "changelog-file.prefix")
    _refuse_wrong_directory(name, schema)
    for column in schema.columns:
        if has_nanoseconds(column.type):
            raise NotSupportedError(
                f"Column {column.name} of {name} has timestamps of precision 7 to 9, which cannot "
                "be written so that every engine reads them.",
                "Change the column to TIMESTAMP(6).",
            )


def refuse_tagging(name: TableName, schema: PaimonSchema) -> None:
    """Refuse to create or drop tags of tables where this would have to change more than files.

    Raises:
        NotSupportedError: the table is refused; gives the reason.
    """
    refuse_options(name, schema.primary_keys, schema.options, "tag")


def _refuse_wrong_tracking(name: TableName, schema: PaimonSchema) -> None:
    """Refuse what Paimon refuses beside row tracking, and data evolution without it."""
    if schema.evolves_columns and not schema.tracks_rows:
        raise NotSupportedError(
            f"{name} has data evolution (option data-evolution.enabled) but does not track rows "
            "(option row-tracking.enabled), which Paimon does not allow.",
            "Set both options, or none.",
        )
    if not schema.tracks_rows:
        return
    bucket = schema.options.get("bucket", "-1")
    if schema.primary_keys:
        problem = "has a primary key"
    elif bucket != "-1":
        problem = f"has fixed buckets (option bucket = {bucket})"
    else:
        return
    raise NotSupportedError(
        f"{name} tracks rows (option row-tracking.enabled) and {problem}: Paimon allows only one "
        "of them.",
        "Unset one of the two.",
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


def _refuse_wrong_prefix(name: TableName, schema: PaimonSchema, option: str) -> None:
    prefix = schema.options.get(option, "")
    if prefix.startswith(("_", ".")) or any(character in prefix for character in "/\\:\0"):
        raise NotSupportedError(
            f"Option {option} = {prefix} of {name} makes names of files that Spark hides "
            "or does not find.",
            "Correct the table's option: no _ or . in front, and no /, \\ or : in it.",
        )


def _refuse_wrong_directory(name: TableName, schema: PaimonSchema) -> None:
    directory = schema.options.get(DIRECTORY, "")
    leads_out = directory.startswith("/") or not {".", "..", ""}.isdisjoint(
        directory.rstrip("/").split("/")
    )
    if directory and (leads_out or any(character in directory for character in "\\:\0")):
        raise NotSupportedError(
            f"Option {DIRECTORY} = {directory} of {name} leads out of the table's folder.",
            "Correct the table's option: names of folders, separated by single slashes, without "
            ". or .. or : or \\.",
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
    """Refuse buckets for which rows cannot be hashed as by Paimon's Java writers."""
    bucket = schema.options.get("bucket", "-1")
    if bucket == "-1" or (bucket == "-2" and schema.primary_keys):
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
        problem = "is not a column"
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


def _refuse_primary_key(name: TableName, schema: PaimonSchema) -> None:
    """Refuse a primary key, or options of its table, that this connector does not support.

    Raises:
        NotSupportedError: the table is refused; gives the reason.
    """
    if not schema.primary_keys:
        return
    for problem in _problems(schema):
        raise refusal_of_key(name, schema.primary_keys, problem)


def _problems(schema: PaimonSchema) -> Iterator[str]:
    """What is not supported; each continues a sentence about the table."""
    yield from _of_buckets(schema)
    yield from _of_key(schema)
    yield from key_problems(schema.options)
    yield from _of_engine(schema)


def _of_buckets(schema: PaimonSchema) -> Iterator[str]:
    bucket = schema.options.get("bucket", "-1")
    if bucket not in ("-1", "-2") and (not bucket.isdecimal() or int(bucket) == 0):
        yield f"a number of buckets that there is not (option bucket = {bucket})"
    missing = [key for key in schema.partition_keys if key not in schema.primary_keys]
    if missing:
        yield f"the partition key {missing[0]}, which is not part of it (cross-partition key)"


def _of_key(schema: PaimonSchema) -> Iterator[str]:
    for column in _columns(schema, trimmed_key(schema)):
        kind = atomic_parts(column.type)[0] if isinstance(column.type, str) else "nested"
        if kind in _FLOATING or kind == "nested":
            yield f"the key column {column.name} of a {kind} type"
    outside = [key for key in schema.bucket_key if key not in trimmed_key(schema)]
    if outside:
        yield f"the bucket key {outside[0]}, which is not part of it"


def _of_engine(schema: PaimonSchema) -> Iterator[str]:
    kind = schema.options.get("merge-engine", "deduplicate").lower()
    if kind not in _ENGINES:
        yield f"the option merge-engine = {kind}"
    elif kind == "first-row":
        if schema.marks_rows:
            yield "the merge engine first-row with deletion vectors"
        if merge_engine(schema).sequence_fields:
            yield "the merge engine first-row with sequence.field"
        producer = schema.options.get("changelog-producer", "none").strip().lower()
        if producer in ("input", "full-compaction"):
            yield f"the merge engine first-row with changelog-producer = {producer}"
    elif kind == "partial-update":
        for option in schema.options:
            if fnmatchcase(option, "fields.*aggregate-function"):
                yield f"the option {option} beside merge-engine = {kind}"
    elif kind == "aggregation":
        yield from _of_functions(schema)


def _of_functions(schema: PaimonSchema) -> Iterator[str]:
    functions = merge_engine(schema).functions
    for column in _columns(schema, tuple(functions)):
        function = functions[column.name]
        type_name = atomic_parts(column.type)[0] if isinstance(column.type, str) else "nested"
        if function not in FUNCTIONS:
            yield f"the aggregate function {function} of column {column.name}"
        elif function == "sum" and type_name not in _NUMBERS:
            yield f"the aggregate function sum of column {column.name}, which is not a number"
        elif function in _FOLDED and type_name in ("nested", *_FLOATING):
            yield f"the aggregate function {function} of column {column.name} of type {type_name}"


def _columns(schema: PaimonSchema, names: tuple[str, ...]) -> Iterator[PaimonColumn]:
    return (column for column in schema.columns if column.name in names)
