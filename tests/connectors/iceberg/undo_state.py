"""The rows of an Iceberg table with their ids, and where they are, as this project reads them."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq

from spark_jobs.connectors.iceberg.format.deletes import DeletedRows
from spark_jobs.connectors.iceberg.read.scanned_files import scanned_file
from spark_jobs.connectors.iceberg.table.pinned_table import pinned_table
from spark_jobs.contract.request import TableName
from spark_jobs.spi.connector import Connector

Places = dict[int, tuple[int, int]]
Rows = list[tuple[Any, ...]]


def places(connector: Connector, name: TableName) -> Places:
    """File and position of each row, by its ``id``."""
    return {row[0]: row[3] for row in _rows(connector, name)}


def rows_with_ids(connector: Connector, name: TableName) -> Rows:
    """``id``, ``s``, and in version 3 the row's id and the number of its last change."""
    return sorted(row[:3] for row in _rows(connector, name))


def _rows(connector: Connector, name: TableName) -> Rows:
    pinned = pinned_table(connector.metadata.load_table(name))
    found: Rows = []
    for ordinal, file in enumerate(pinned.files):
        rows = pq.ParquetFile(file.path).read().to_pydict()
        deletes = scanned_file(pinned, name, ordinal).deletes
        gone = {*DeletedRows(pinned.storage.filesystem).positions(deletes).tolist()}
        entry = file.entry
        for position in range(entry.row_count):
            if position in gone:
                continue
            lineage: tuple[Any, ...] = ()
            if entry.first_row_id is not None:
                own = rows.get("_row_id", [None] * entry.row_count)[position]
                number = rows.get("_last_updated_sequence_number", [None] * entry.row_count)
                lineage = (
                    entry.first_row_id + position if own is None else own,
                    number[position] or entry.sequence_number,
                    number[position] or entry.file_sequence_number,
                )
            row = (rows["id"][position], rows["s"][position], lineage, (ordinal, position))
            found.append(row)
    return found
