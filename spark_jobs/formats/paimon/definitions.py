"""What CREATE TABLE and ALTER TABLE may ask for that no table of Paimon can have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from spark_jobs.contract.alter_table import (
    IdentifierChange,
    PartitionFieldChange,
    SetWriteOrder,
    TableChange,
)
from spark_jobs.contract.partition_keys import IDENTITY, PartitionKey
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.errors import ErrorCode, NotSupportedError, RequestError


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
