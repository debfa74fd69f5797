"""Branches of the tables of a filesystem catalog. Driver only."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spark_jobs.connectors.paimon.commit.publish import SnapshotStore
from spark_jobs.connectors.paimon.maintenance.begin_branch import BranchBeginning
from spark_jobs.connectors.paimon.maintenance.branch_tags import BranchKeeper, FileKeeper
from spark_jobs.connectors.paimon.maintenance.end_branch import BranchEnd
from spark_jobs.connectors.paimon.maintenance.publish_branch import Publication
from spark_jobs.connectors.paimon.metadata import PaimonMetadata
from spark_jobs.connectors.paimon.table.refusals import refuse_tagging
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.contract.maintenance import (
    CherryPickSpec,
    CreateBranchSpec,
    DeleteBranchSpec,
    FastForwardSpec,
    MaintenanceReport,
    SetCurrentSnapshotSpec,
)
from spark_jobs.contract.request import TableName
from spark_jobs.formats.paimon.branches import refusal, refuse_statement
from spark_jobs.spi.alterations import NO_NOTE, ChangeNote
from spark_jobs.spi.branches import Publishing
from spark_jobs.storage.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class PaimonBranches:
    """Implements ``ConnectorBranches``."""

    metadata: PaimonMetadata
    storage: Warehouse
    store: SnapshotStore

    def create_branch(
        self, name: TableName, spec: CreateBranchSpec, *, note: ChangeNote = NO_NOTE
    ) -> MaintenanceReport:
        """Begin a branch, unless the name is taken."""
        refuse_statement(spec)
        return BranchBeginning(name, self._table(name), self.storage, spec, note).run()

    def delete_branch(
        self, name: TableName, spec: DeleteBranchSpec, *, dry_run: bool, note: ChangeNote = NO_NOTE
    ) -> MaintenanceReport:
        """Delete a branch; files that only it needed are orphans then."""
        # Of the table, because the branch of the name may be the one that goes.
        whole = replace(name, table=name.without_branch)
        end = BranchEnd(whole, self._table(whole), self.storage, spec, note)
        return end.run(dry_run=dry_run)

    def fast_forward(
        self,
        name: TableName,
        spec: FastForwardSpec,
        publishing: Publishing,
        *,
        dry_run: bool,
        note: ChangeNote = NO_NOTE,
    ) -> MaintenanceReport:
        """Give the branch what another one has, which comes from its head, as one snapshot."""
        keeper, store = self._keeper(), self.store
        publication = Publication(
            name, self.metadata, self.storage, store, keeper, spec, publishing, note
        )
        return publication.run(dry_run=dry_run)

    def set_current_snapshot(
        self,
        name: TableName,
        spec: SetCurrentSnapshotSpec,
        *,
        dag_id: str,
        dry_run: bool,
        note: ChangeNote = NO_NOTE,
    ) -> MaintenanceReport:
        """Refuse: tables of Paimon only go back."""
        del name, dag_id, dry_run, note
        raise refusal(spec)

    def cherry_pick(
        self,
        name: TableName,
        spec: CherryPickSpec,
        publishing: Publishing,
        *,
        dry_run: bool,
        note: ChangeNote = NO_NOTE,
    ) -> MaintenanceReport:
        """Refuse: nothing is staged."""
        del name, publishing, dry_run, note
        raise refusal(spec)

    def _keeper(self) -> BranchKeeper:
        return FileKeeper(self.storage)

    def _table(self, name: TableName) -> PinnedTable:
        table = pinned_table(self.metadata.load_table(name))
        refuse_tagging(name, table.schema)
        return table
