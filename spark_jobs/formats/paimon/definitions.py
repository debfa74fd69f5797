"""What CREATE TABLE and ALTER TABLE may ask for that no table of Paimon can have.

As ``SchemaManager`` of Paimon's Java has it; the number of buckets, too, which its own engines only
change together with all files.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from spark_jobs.contract.alter_table import (
    IdentifierChange,
    PartitionFieldChange,
    SetWriteOrder,
    TableChange,
)
from spark_jobs.contract.partition_keys import IDENTITY, PartitionKey
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.errors import ErrorCode, NotSupportedError, RequestError

NAMES: Final = frozenset({"_row_id", "_sequence_number", "_value_kind", "_level", "rowkind"})
# In files of primary-key tables, it stands before the names of key columns.
KEY_PREFIX: Final = "_key_"
# Options that say how files are to be read, and so cannot change: of any table.
NEVER: Final = frozenset({"type", "primary-key", "partition", "path"})
# And once a table has a snapshot: ``IMMUTABLE_OPTIONS`` of Paimon's ``CoreOptions``, and others.
WITH_SNAPSHOTS: Final = frozenset(
    {
        *("bucket", "bucket-key", "bucket-function.type", "merge-engine", "rowkind.field"),
        *("data-file.path-directory", "sequence.field", "sequence.snapshot-ordering"),
        *("aggregation.remove-record-on-delete", "partial-update.remove-record-on-delete"),
        *("partial-update.remove-record-on-sequence-group", "primary-key.nullable"),
        *("dynamic-bucket.initial-buckets", "force-lookup", "row-tracking.enabled"),
        *("data-evolution.enabled", "index-file-in-data-file-dir", "pk-clustering-override"),
        # By them, readers find the folders of partitions.
        *("partition.default-name", "partition.legacy-name"),
        *("blob-field", "video-frame-field", "blob-descriptor-field", "blob-view-field"),
    }
)
# What a catalog's server says of a table among its options, besides its place.
OF_SERVER: Final = frozenset({"owner", "createdAt", "createdBy", "updatedAt", "updatedBy", "path"})
# It may change only if this other option is "true".
VECTORS: Final = "deletion-vectors.enabled"
VECTORS_MODIFIABLE: Final = "deletion-vectors.modifiable"


def is_reserved(name: str) -> bool:
    """Whether Paimon needs the name of a column for itself, in any case."""
    lowered = name.lower()
    return lowered in NAMES or lowered.startswith(KEY_PREFIX)


def with_keys_of_options(spec: CreateTableSpec) -> CreateTableSpec:
    """The statement with the keys that it names in options, as Paimon's Spark takes them.

    Raises:
        RequestError: REQUEST_INVALID: a key is named twice, or is not a column.
    """
    options = dict(spec.table_options)
    primary_key = _key(options, "primary-key", "primary_key", spec.primary_key)
    partition = _key(options, "partition", "partition_keys", spec.partition_keys)
    return replace(spec, table_options=options, primary_key=primary_key, partition_keys=partition)


def _key(
    options: dict[str, str], option: str, field: str, written: tuple[str, ...]
) -> tuple[str, ...]:
    """The columns of a key, which leaves the options."""
    named = tuple(each.strip() for each in options.pop(option, "").split(",") if each.strip())
    if named and written:
        problem = f"the option {option} names {', '.join(named)}, but there is a clause, too"
        raise RequestError(ErrorCode.REQUEST_INVALID, problem, "Leave one out.", (field,))
    return named or written


def refuse_transforms(keys: Iterable[PartitionKey]) -> None:
    """Refuse a table that is partitioned by anything but columns.

    Raises:
        NotSupportedError: naming the first such key.
    """
    computed = next((key for key in keys if key.transform != IDENTITY), None)
    if computed is not None:
        raise NotSupportedError(
            f"partition_keys: {computed}: Paimon's tables are partitioned by columns, not by "
            "transforms.",
            "Give it a column of its own.",
        )


def refuse_change(change: TableChange) -> None:
    """Refuse a change of what Paimon's tables do not have.

    Raises:
        NotSupportedError: naming the change.
    """
    if isinstance(change, PartitionFieldChange | SetWriteOrder | IdentifierChange):
        raise NotSupportedError(
            f"{change.kind}: tables of Paimon have no such thing.",
            "Partition keys are fixed when a table is created, and options such as "
            "sequence.field say in which order rows are kept.",
        )
