"""What is done with the branches of a table. Driver only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

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
from spark_jobs.spi.writes import always_wanted


@dataclass(frozen=True, slots=True)
class Publishing:
    """The operation that publishes; a snapshot that it makes records ``properties``.

    ``require_wanted`` is called before it is published, and may raise JobError.
    """

    properties: Mapping[str, str]
    require_wanted: Callable[[], None] = always_wanted


class ConnectorBranches(Protocol):
    """Changes the branches of tables; ``dry_run``, ``note`` and errors as in maintenance.

    The branch of ``name`` is that which moves, or from which a new one begins.
    """

    def create_branch(
        self, name: TableName, spec: CreateBranchSpec, *, note: ChangeNote = NO_NOTE
    ) -> MaintenanceReport:
        """Begin a branch.

        Raises:
            CatalogError: BRANCH_EXISTS, SNAPSHOT_NOT_FOUND, TAG_NOT_FOUND.
        """
        ...

    def delete_branch(
        self, name: TableName, spec: DeleteBranchSpec, *, dry_run: bool, note: ChangeNote = NO_NOTE
    ) -> MaintenanceReport:
        """Delete a branch.

        Raises:
            CatalogError: BRANCH_NOT_FOUND.
        """
        ...

    def fast_forward(
        self,
        name: TableName,
        spec: FastForwardSpec,
        publishing: Publishing,
        *,
        dry_run: bool,
        note: ChangeNote = NO_NOTE,
    ) -> MaintenanceReport:
        """Give a branch what another one has, which comes from its head.

        Raises:
            CatalogError: BRANCH_NOT_FOUND.
            CommitError: BRANCHES_DIVERGED.
        """
        ...

    def set_current_snapshot(
        self,
        name: TableName,
        spec: SetCurrentSnapshotSpec,
        *,
        dag_id: str,
        dry_run: bool,
        note: ChangeNote = NO_NOTE,
    ) -> MaintenanceReport:
        """Move a branch to any snapshot.

        Raises:
            CatalogError: SNAPSHOT_NOT_FOUND, TAG_NOT_FOUND.
            CommitError: COMMITS_OF_OTHERS.
        """
        ...

    def cherry_pick(
        self,
        name: TableName,
        spec: CherryPickSpec,
        publishing: Publishing,
        *,
        dry_run: bool,
        note: ChangeNote = NO_NOTE,
    ) -> MaintenanceReport:
        """Publish the changes of a staged snapshot on a branch, once.

        Raises:
            CatalogError: SNAPSHOT_NOT_FOUND.
            CommitError: ALREADY_PUBLISHED, BRANCHES_DIVERGED.
        """
        ...
