"""Tables of version 3 without a JVM; pyiceberg makes none, so that it makes one of version 2."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyiceberg.table.update import UpgradeFormatVersionUpdate

from spark_jobs.connectors.iceberg.commit.changes import Changes
from spark_jobs.connectors.iceberg.commit.snapshot_commit import SnapshotCommits
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.spi.writes import MergeWrite, Operation, always_wanted
from tests.support.iceberg_changes import inserted


def upgrade(table: Any) -> None:
    """Upgrade pyiceberg's table, in the metadata file that it has."""
    path = Path(urlsplit(table.metadata_location).path)
    metadata = json.loads(path.read_text())
    path.write_text(json.dumps({**metadata, "format-version": 3, "next-row-id": 0}))


def upgrade_on_server(library: Any, name: tuple[str, str]) -> None:
    """Let the server of pyiceberg's catalog upgrade a table."""
    version: dict[str, Any] = {"format-version": 3}
    library.commit_table(library.load_table(name), (), (UpgradeFormatVersionUpdate(**version),))


def give_ids(spec: CatalogSpec, name: TableName) -> None:
    """Give ids to the rows of an upgraded table by a commit that changes nothing else."""
    connector: Any = open_connector(spec, {})
    table = connector.metadata.load_table(name)
    if table.snapshot_id is not None:
        commits = SnapshotCommits(connector.writes.catalog, connector.metadata, table)
        commits.publish(commits.latest(), Changes([], [], {}, []), {}, always_wanted)


def append(
    spec: CatalogSpec,
    name: TableName,
    rows: Sequence[Mapping[str, Any]],
    credentials: Mapping[str, str] | None = None,
) -> None:
    """Add rows, which come by partition, in one commit."""
    connector = open_connector(spec, credentials or {})
    table = connector.metadata.load_table(name)
    operation = Operation(uuid.uuid4().hex, "digest", {})
    write = MergeWrite(operation, (), (), (), 2**26)
    handle = connector.writes.begin_merge(table, write)
    sink = handle.sinks.open(uuid.uuid4().hex)
    sink.store_merged_rows(inserted(connector, table, rows))
    connector.writes.finish_merge(table, handle, sink.finish(), {})
    connector.writes.release_guard(table, operation.operation_id)
