"""Files that another writer has put into an Iceberg table."""

from __future__ import annotations

from typing import Any, Final

from spark_jobs.connectors.iceberg.commit.manifest_records import NewDataFile
from spark_jobs.connectors.iceberg.commit.new_manifests import SnapshotFiles
from spark_jobs.connectors.iceberg.commit.snapshot_commit import catalog_changes
from spark_jobs.connectors.iceberg.table.live_files import listed_manifests
from spark_jobs.connectors.iceberg.table.pinned_table import pinned_table
from spark_jobs.contract.request import TableName
from spark_jobs.spi.connector import Connector

_FIRST: Final = TableName("db", "t")


def add_file(connector: Connector, kind: int, name: TableName = _FIRST, **record: Any) -> None:
    """Commit the metadata of a file, as another writer may have made it.

    ``kind`` is that of its manifest, ``record`` has the fields of a data file.
    """
    from pyiceberg.table.snapshots import Operation, Snapshot, Summary

    table = pinned_table(connector.metadata.load_table(name))
    snapshot_id = table.metadata.new_snapshot_id()
    files = SnapshotFiles(table, snapshot_id)
    file = NewDataFile(
        0,
        {},
        {
            "file_path": f"{table.metadata.location}/data/other",
            "record_count": 1,
            "file_size_in_bytes": 100,
            **record,
        },
    )
    old = listed_manifests(table.storage, table.snapshot.manifest_list)
    entries = [*files.manifests([file], kind), *(each.record for each in old)]
    fields: dict[str, Any] = {
        "snapshot-id": snapshot_id,
        "parent-snapshot-id": table.snapshot.snapshot_id,
        "manifest-list": files.manifest_list(entries),
        "sequence-number": table.metadata.next_sequence_number(),
        "summary": Summary(operation=Operation.OVERWRITE),
        "schema-id": 0,
    }
    library = connector.writes.catalog.opened  # type: ignore[attr-defined]
    library.commit_table(table.table, *catalog_changes(table, Snapshot(**fields)))
