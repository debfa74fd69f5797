"""Branches of a table: create, fast-forward, publish and delete them. Driver only.

Modelled on Iceberg's ``ManageSnapshots``, which replaces nothing either. To delete a branch removes
no file: its snapshots stay until they expire.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from spark_jobs.connectors.iceberg.commit.metadata_commits import MetadataCommits
from spark_jobs.connectors.iceberg.library.catalogs import IcebergCatalog
from spark_jobs.connectors.iceberg.maintenance.cherry_pick import CherryPick
from spark_jobs.connectors.iceberg.maintenance.noted_changes import (
    Move,
    NotedChanges,
    carried_out,
    history_of,
    told,
)
from spark_jobs.connectors.iceberg.maintenance.references import (
    BRANCH,
    MAX_REF_AGE,
    MAX_SNAPSHOT_AGE,
    MIN_SNAPSHOTS,
    Reference,
    References,
    given,
    known_snapshot,
    retention_millis,
)
from spark_jobs.connectors.iceberg.maintenance.tags_and_rollback import (
    named_snapshot,
    set_current_snapshot,
)
from spark_jobs.connectors.iceberg.metadata import IcebergMetadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, ancestors
from spark_jobs.contract.maintenance import (
    CherryPickSpec,
    CreateBranchSpec,
    DeleteBranchSpec,
    FastForwardSpec,
    MaintenanceReport,
    SetCurrentSnapshotSpec,
)
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, CommitError, ErrorCode
from spark_jobs.spi.alterations import NO_NOTE, ChangeNote
from spark_jobs.spi.branches import Publishing

# How many names, and how many commits, an error has.
_NAMES: Final = 20
_COMMITS: Final = 10


@dataclass(frozen=True, slots=True)
class IcebergBranches:
    """Implements ``ConnectorBranches``: each change is one commit."""

    catalog: IcebergCatalog
    metadata: IcebergMetadata

    def create_branch(
        self, name: TableName, spec: CreateBranchSpec, *, note: ChangeNote = NO_NOTE
    ) -> MaintenanceReport:
        """Begin a branch at a snapshot.

        Raises:
            CatalogError: BRANCH_EXISTS, also for a tag of that name; SNAPSHOT_NOT_FOUND;
                TAG_NOT_FOUND.
            CommitError: COMMIT_CONFLICT, COMMIT_OUTCOME_UNKNOWN.
        """
        changes = self._noted(name, note)
        table = changes.table()
        if (earlier := changes.done(table)) is not None:
            return earlier
        ref = table.metadata.refs.get(spec.branch)
        if ref is not None:
            kind = str(ref.snapshot_ref_type)
            if spec.if_not_exists and kind == BRANCH:
                return MaintenanceReport()
            raise CatalogError(
                ErrorCode.BRANCH_EXISTS,
                f"{changes.name} has a {kind} {spec.branch} already.",
                f"Choose another name, delete the {kind} first, or set if_not_exists.",
            )
        snapshot_id = named_snapshot(changes.name, table, spec.snapshot_id, spec.tag)
        retention = {
            MAX_REF_AGE: retention_millis("retention", spec.retention),
            MAX_SNAPSHOT_AGE: retention_millis("max_snapshot_age", spec.max_snapshot_age),
            MIN_SNAPSHOTS: spec.min_snapshots_to_keep,
        }
        branch = Reference(spec.branch, BRANCH, snapshot_id, given(retention))
        return changes.require(
            table, References([branch]), MaintenanceReport(snapshot_id=snapshot_id)
        )

    def delete_branch(
        self, name: TableName, spec: DeleteBranchSpec, *, dry_run: bool, note: ChangeNote = NO_NOTE
    ) -> MaintenanceReport:
        """Delete a branch.

        Raises:
            CatalogError: BRANCH_NOT_FOUND, also for a tag of that name.
            CommitError: COMMIT_CONFLICT, COMMIT_OUTCOME_UNKNOWN.
        """
        # Of the table, because the branch of the name may be the one that goes.
        changes = self._noted(replace(name, table=name.without_branch), note)
        table = changes.table()
        if not dry_run and (earlier := changes.done(table)) is not None:
            return earlier
        branches = _named(table, BRANCH)
        if spec.branch not in branches:
            if spec.if_exists:
                return MaintenanceReport()
            raise _no_branch(changes.name, spec.branch, branches)
        report = MaintenanceReport(tags=1)
        if dry_run:
            return report
        gone = Reference(spec.branch, BRANCH, None)
        return changes.require(table, References([gone]), report)

    def fast_forward(
        self,
        name: TableName,
        spec: FastForwardSpec,
        publishing: Publishing,
        *,
        dry_run: bool,
        note: ChangeNote = NO_NOTE,
    ) -> MaintenanceReport:
        """Move the branch forward to where another branch or a tag is.

        Raises:
            CatalogError: BRANCH_NOT_FOUND.
            CommitError: BRANCHES_DIVERGED, COMMIT_CONFLICT, COMMIT_OUTCOME_UNKNOWN.
        """
        del publishing
        changes = self._noted(name, note)
        return carried_out(changes, partial(_forward, changes.name, spec), dry_run=dry_run)

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


def _forward(name: TableName, spec: FastForwardSpec, table: PinnedTable) -> Move:
    other = table.metadata.refs.get(spec.to)
    if other is None:
        raise _no_branch(name, spec.to, sorted(table.metadata.refs))
    target = known_snapshot(table, name, int(other.snapshot_id))
    reached = {each.snapshot_id for each in history_of(table, target)}
    own = [each for each in ancestors(table) if each.snapshot_id not in reached]
    if own:
        more = f" and {len(own) - _COMMITS} more" if len(own) > _COMMITS else ""
        raise CommitError(
            ErrorCode.BRANCHES_DIVERGED,
            f"{name}: the branch {table.branch} cannot be fast-forwarded to {spec.to}, which does "
            f"not come from {', '.join(map(told, own[:_COMMITS]))}{more}.",
            "Publish single snapshots by CherryPickOperator, or merge the rows.",
        )
    return Move(target)


def _named(table: PinnedTable, kind: str) -> list[str]:
    found = table.metadata.refs.items()
    return sorted(name for name, each in found if str(each.snapshot_ref_type) == kind)


def _no_branch(name: TableName, branch: str, known: list[str]) -> CatalogError:
    remedy = (
        f"Use one of: {', '.join(known[:_NAMES])}." if known else "It has none: make one first."
    )
    return CatalogError(ErrorCode.BRANCH_NOT_FOUND, f"{name} has no branch {branch}.", remedy)
