"""Changes of a table's branches. Driver only."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spark_jobs.connectors.iceberg.commit.metadata_commits import MetadataCommits
from spark_jobs.connectors.iceberg.library.catalogs import IcebergCatalog
from spark_jobs.connectors.iceberg.maintenance import branches
from spark_jobs.connectors.iceberg.maintenance.cherry_pick import CherryPick
from spark_jobs.connectors.iceberg.maintenance.noted_changes import NotedChanges
from spark_jobs.connectors.iceberg.maintenance.rollback import set_current_snapshot
from spark_jobs.connectors.iceberg.metadata import IcebergMetadata
from spark_jobs.contract.maintenance import (
    CherryPickSpec,
    CreateBranchSpec,
    DeleteBranchSpec,
    FastForwardSpec,
    MaintenanceReport,
    SetCurrentSnapshotSpec,
)
from spark_jobs.contract.request import TableName
from spark_jobs.spi.alterations import NO_NOTE, ChangeNote
from spark_jobs.spi.branches import Publishing


@dataclass(frozen=True, slots=True)
class IcebergBranches:
    """Implements ``ConnectorBranches``: each change is one commit."""

    catalog: IcebergCatalog
    metadata: IcebergMetadata

    def create_branch(
        self, name: TableName, spec: CreateBranchSpec, *, note: ChangeNote = NO_NOTE
    ) -> MaintenanceReport:
        """Begin a branch, unless the name is taken."""
        return branches.create_branch(self._noted(name, note), spec)

    def delete_branch(
        self, name: TableName, spec: DeleteBranchSpec, *, dry_run: bool, note: ChangeNote = NO_NOTE
    ) -> MaintenanceReport:
        """Delete a branch; its snapshots stay until they expire."""
        # Of the table, because the branch of the name may be the one that goes.
        whole = replace(name, table=name.without_branch)
        return branches.delete_branch(self._noted(whole, note), spec, dry_run=dry_run)

    def fast_forward(
        self,
        name: TableName,
        spec: FastForwardSpec,
        publishing: Publishing,
        *,
        dry_run: bool,
        note: ChangeNote = NO_NOTE,
    ) -> MaintenanceReport:
        """Move the branch to a snapshot that comes from its head; none is made."""
        del publishing
        return branches.fast_forward(self._noted(name, note), spec, dry_run=dry_run)

    def set_current_snapshot(
        self,
        name: TableName,
        spec: SetCurrentSnapshotSpec,
        *,
        dag_id: str,
        dry_run: bool,
        note: ChangeNote = NO_NOTE,
    ) -> MaintenanceReport:
        """Move the branch to any snapshot of the table."""
        return set_current_snapshot(self._noted(name, note), spec, dag_id=dag_id, dry_run=dry_run)

    def cherry_pick(
        self,
        name: TableName,
        spec: CherryPickSpec,
        publishing: Publishing,
        *,
        dry_run: bool,
        note: ChangeNote = NO_NOTE,
    ) -> MaintenanceReport:
        """Publish the changes of a staged snapshot on the branch."""
        return CherryPick(self._noted(name, note), spec, publishing, dry_run).run()

    def _noted(self, name: TableName, note: ChangeNote) -> NotedChanges:
        return NotedChanges(MetadataCommits(self.catalog, self.metadata, name), note)
