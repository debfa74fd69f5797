"""Counting the rows of files that a statement removes without reading them."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.spi.connector import ConnectorScan
from spark_jobs.spi.tables import PlannedFile, TableHandle


def row_count(scan: ConnectorScan, table: TableHandle, files: Sequence[PlannedFile]) -> int:
    """The exact number of rows in ``files``; only those without an exact count are read."""
    unknown = [file for file in files if not file.has_exact_count]
    known = sum(file.live_row_count for file in files if file.has_exact_count)
    return known + (scan.count_rows(table, unknown) if unknown else 0)
