"""A table of pyiceberg with a history, for tests of its care without a JVM."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.connectors.iceberg.maintenance.table_maintenance import IcebergMaintenance
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec, MaintenanceReport
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.maintenance import ConnectorMaintenance
from tests.connectors.iceberg.plain_tables import PlainCatalog

SCHEMA = pa.schema([("id", pa.int64())])
NAME = TableName("db", "t")


def made(folder: Path, appends: int = 3, **properties: str) -> PlainCatalog:
    """A table to which the ids 0, 1 … were appended, each by a snapshot of its own."""
    catalog = PlainCatalog(folder)
    catalog.create(SCHEMA, {"format-version": "2", **properties}, None)
    for each in range(appends):
        append(catalog, each)
    return catalog


def append(catalog: PlainCatalog, id_: int, branch: str = "main") -> None:
    # Snapshots of the same millisecond have no order of age.
    time.sleep(0.002)
    table(catalog).append(pa.table({"id": [id_]}, schema=SCHEMA), branch=branch)


def replace_all(catalog: PlainCatalog) -> None:
    """Replace all rows by the id 10, so that older snapshots alone have files."""
    table(catalog).overwrite(pa.table({"id": [10]}, schema=SCHEMA))


def table(catalog: PlainCatalog) -> Any:
    """pyiceberg's table, as it is now."""
    return catalog.library().load_table(("db", "t"))


def ids(catalog: PlainCatalog, snapshot_id: int | None = None) -> list[int]:
    return sorted(table(catalog).scan(snapshot_id=snapshot_id).to_arrow()["id"].to_pylist())


def snapshots(catalog: PlainCatalog) -> list[int]:
    return [each.snapshot_id for each in table(catalog).snapshots()]


def references(catalog: PlainCatalog) -> dict[str, tuple[str, int, int | None]]:
    return {
        name: (str(each.snapshot_ref_type), each.snapshot_id, each.max_ref_age_ms)
        for name, each in table(catalog).metadata.refs.items()
    }


def care(connector: Connector, hours: float | None = None) -> ConnectorMaintenance:
    """The table's care, after so many hours."""
    assert connector.maintenance is not None
    if hours is None:
        return connector.maintenance
    later = datetime.now(UTC) + timedelta(hours=hours)
    metadata, writes = connector.metadata, connector.writes
    return IcebergMaintenance(writes.catalog, metadata, writes.notes, lambda *_: later)  # type: ignore[attr-defined,arg-type]


def expire(
    connector: Connector, hours: float | None = None, dry_run: bool = False, **limits: Any
) -> MaintenanceReport:
    """Expire snapshots after so many hours."""
    spec = ExpireSnapshotsSpec(**limits)
    return care(connector, hours).expire_snapshots(NAME, spec, dry_run=dry_run)


def refusal(work: Callable[[], object]) -> tuple[ErrorCode, str]:
    with pytest.raises(JobError) as caught:
        work()
    return caught.value.code, str(caught.value)


def root(catalog: PlainCatalog) -> Path:
    """The table's folder."""
    return Path(table(catalog).location().removeprefix("file://"))


def stored(catalog: PlainCatalog) -> set[str]:
    """The paths of the table's files, but for metadata files, in its folder."""
    files = (each for each in root(catalog).rglob("*") if each.is_file())
    return {str(each) for each in files if not each.name.endswith(".metadata.json")}


def needed(catalog: PlainCatalog) -> set[str]:
    """The paths of what its snapshots need, as pyiceberg reads their manifests."""
    now, found = table(catalog), set()
    for snapshot in now.snapshots():
        found.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(now.io):
            found.add(manifest.manifest_path)
            entries = manifest.fetch_manifest_entry(now.io, discard_deleted=True)
            found.update(each.data_file.file_path for each in entries)
    statistics = (*now.metadata.statistics, *now.metadata.partition_statistics)
    found.update(each.statistics_path for each in statistics)
    return {each.removeprefix("file://") for each in found}
