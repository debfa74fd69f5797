"""Table maintenance: snapshot expiry, tags and rollback. Driver only."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from spark_jobs.connectors.iceberg.commit.base_notes import BaseNotes
from spark_jobs.connectors.iceberg.library.catalogs import IcebergCatalog
from spark_jobs.connectors.iceberg.maintenance.expire_snapshots import SnapshotExpiry
from spark_jobs.connectors.iceberg.maintenance.metadata_commits import MetadataCommits
from spark_jobs.connectors.iceberg.maintenance.rollback import roll_back
from spark_jobs.connectors.iceberg.maintenance.tags import create_tag, delete_tag
from spark_jobs.connectors.iceberg.metadata import IcebergMetadata
from spark_jobs.contract.maintenance import (
    CreateTagSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    MaintenanceReport,
    RemoveOrphanFilesSpec,
    RollbackSpec,
)
from spark_jobs.contract.request import TableName
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.writes import always_wanted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class IcebergMaintenance:
    """Implements ``ConnectorMaintenance``; ages are computed from the time of ``clock``."""

    def __init__(
        self,
        catalog: IcebergCatalog,
        metadata: IcebergMetadata,
        notes: BaseNotes,
        clock: Callable[[], datetime],
    ) -> None:
        self._catalog = catalog
        self._metadata = metadata
        self._notes = notes
        self._clock = clock

    def expire_snapshots(
        self,
        name: TableName,
        spec: ExpireSnapshotsSpec,
        *,
        dry_run: bool,
        require_wanted: Callable[[], None] = always_wanted,
    ) -> MaintenanceReport:
        """Drop snapshots, tags and branches, and the files that nothing else needs."""
        expiry = SnapshotExpiry(
            self._commits(name), self._notes, spec, self._clock(), require_wanted
        )
        return expiry.planned() if dry_run else expiry.carried_out()

    def remove_orphan_files(
        self,
        name: TableName,
        spec: RemoveOrphanFilesSpec,
        *,
        dry_run: bool,
        spark: SparkSession | None = None,
        require_wanted: Callable[[], None] = always_wanted,
    ) -> MaintenanceReport:
        """Refused.

        Raises:
            NotSupportedError: always.
        """
        raise _not_here(name, "Orphan files of Iceberg tables", "go", "remove_orphan_files")

    def create_tag(self, name: TableName, spec: CreateTagSpec) -> MaintenanceReport:
        """Create a tag that names a snapshot, unless the name is taken."""
        return create_tag(self._commits(name), spec)

    def delete_tag(
        self, name: TableName, spec: DeleteTagSpec, *, dry_run: bool
    ) -> MaintenanceReport:
        """Delete tags; their snapshots stay until they expire."""
        return delete_tag(self._commits(name), spec, self._clock(), dry_run=dry_run)

    def roll_back(
        self, name: TableName, spec: RollbackSpec, *, dag_id: str, dry_run: bool
    ) -> MaintenanceReport:
        """Move the branch back to a snapshot of its history."""
        return roll_back(self._commits(name), spec, dag_id=dag_id, dry_run=dry_run)

    def _commits(self, name: TableName) -> MetadataCommits:
        return MetadataCommits(self._catalog, self._metadata, name)


def _not_here(name: TableName, what: str, verb: str, procedure: str) -> NotSupportedError:
    return NotSupportedError(
        f"{name}: {what} do not {verb} here.",
        f"Use Iceberg's own procedure {procedure}.",
    )
