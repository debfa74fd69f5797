"""What CREATE TABLE and ALTER TABLE may ask for that no table of Paimon can have."""

from __future__ import annotations

from collections.abc import Iterable

from spark_jobs.contract.alter_table import (
    IdentifierChange,
    PartitionFieldChange,
    SetWriteOrder,
    TableChange,
)
from spark_jobs.contract.partition_keys import IDENTITY, PartitionKey
from spark_jobs.errors import NotSupportedError


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
