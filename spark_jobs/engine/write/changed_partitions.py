"""The partitions that a statement changes, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spark_jobs.contract.partition_names import partition_name
from spark_jobs.spi.tables import TableHandle
from spark_jobs.spi.writes import Fragment

if TYPE_CHECKING:
    from spark_jobs.spi.connector import Connector


def changed_partitions(
    connector: Connector, table: TableHandle, fragments: Sequence[Fragment]
) -> tuple[str, ...]:
    """Sorted names such as ``day=2026-01-31/hour=7``; none for a table without partitions."""
    if not table.partitioned_by:
        return ()
    changed = connector.writes.changed_partitions(table, fragments)
    return tuple(sorted(set(map(partition_name, changed))))
