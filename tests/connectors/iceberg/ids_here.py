"""The ids of rows as this project's manifests and files have them, without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq

from spark_jobs.connectors.iceberg.format.deletes import DeletedRows
from spark_jobs.connectors.iceberg.read.scanned_files import scanned_file
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, pinned_table
from spark_jobs.contract.request import TableName
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.plain_tables import NAME

# How many snapshots of a race are read.
_SNAPSHOTS = 12


def ids_here(connector: Connector, name: TableName = NAME) -> dict[int, int]:
    """The id of each row by its value of ``id``; no two rows have one."""
    found = ids_of_rows(pinned_table(connector.metadata.load_table(name)), name)
    assert len({row_id for _, row_id in found}) == len(found), found
    return dict(found)


def ids_of_rows(pinned: PinnedTable, name: TableName) -> list[tuple[int, int]]:
    """The values of ``id`` and the ids of all rows."""
    found: list[tuple[int, int]] = []
    for ordinal, file in enumerate(pinned.files):
        rows = pq.ParquetFile(file.path).read().to_pydict()
        deletes = scanned_file(pinned, name, ordinal).deletes
        gone = {*DeletedRows(pinned.storage.filesystem).positions(deletes).tolist()}
        first = file.entry.first_row_id
        assert first is not None
        stored = rows.get("_row_id", [None] * file.entry.row_count)
        for position in np.arange(file.entry.row_count).tolist():
            if position not in gone:
                own = stored[position]
                found.append((rows["id"][position], first + position if own is None else own))
    return found


def problems_of_ids(connector: Connector, name: TableName) -> list[str]:
    """What is wrong with the ids of rows in some snapshots of a table, the last among them."""
    pinned = pinned_table(connector.metadata.load_table(name))
    problems = []
    numbered = [each for each in pinned.metadata.snapshots if each.first_row_id is not None]
    for snapshot in numbered[:: -max(len(numbered) // _SNAPSHOTS, 1)]:
        ids = [each for _, each in ids_of_rows(replace(pinned, snapshot=snapshot), name)]
        if len({*ids}) < len(ids):
            problems.append(f"snapshot {snapshot.snapshot_id} has an id twice")
    try:
        require_numbered(pinned)
    except AssertionError as error:
        problems.append(f"ids were handed out twice: {error}")
    return problems


def require_numbered(table: PinnedTable) -> None:
    """Check what each snapshot says of the ids that it handed out."""
    following = 0
    for each in sorted(table.metadata.snapshots, key=lambda one: int(one.sequence_number)):
        if each.first_row_id is not None:
            assert each.first_row_id >= following
            following = each.first_row_id + each.added_rows
    assert table.next_row_id == following


def changed_ids(before: Mapping[int, int], after: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    """Rows that are in both, with other ids."""
    return {
        key: (before[key], after[key]) for key in before.keys() & after if before[key] != after[key]
    }
