"""The limit of partitions that one statement may add."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.contract.options import MAX_NEW_PARTITIONS, JobOptions
from spark_jobs.contract.partition_names import partition_name
from spark_jobs.errors import DataError, ErrorCode
from spark_jobs.spi.tables import PlannedFile, TableHandle

_SHOWN = 3


def require_few_new(
    options: JobOptions, table: TableHandle, changed: Sequence[str], planned: Sequence[PlannedFile]
) -> None:
    """Check that few enough of the ``changed`` partitions are new beside the ``planned`` files.

    Partitions are given by their names. Each file whose partition is not known counts as one of the
    changed partitions.

    Raises:
        DataError: TOO_MANY_PARTITIONS.
    """
    limit = options.max_new_partitions or MAX_NEW_PARTITIONS
    if len(changed) <= limit:
        return
    columns = [each.name for each in table.partitioned_by]
    known, unknown = set(), 0
    for file in planned:
        if all(name in file.partition for name in columns):
            known.add(partition_name({name: file.partition[name] for name in columns}))
        else:
            unknown += 1
    new = [name for name in changed if name not in known]
    count = len(new) - unknown
    if count > limit:
        raise DataError(
            ErrorCode.TOO_MANY_PARTITIONS,
            f"The statement would add {count} partitions by {', '.join(columns)} to {table.name}, "
            f"more than the {limit} allowed, such as {', '.join(new[:_SHOWN])}.",
            "Check whether the table is partitioned by the right column. If they are meant, raise "
            "max_new_partitions of the operator, or [merge] max_new_partitions.",
        )
