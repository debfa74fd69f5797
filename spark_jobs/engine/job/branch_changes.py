"""What a statement does with the branches of a table; part of a maintenance job."""

from __future__ import annotations

from typing import cast

from spark_jobs.contract.maintenance import (
    BranchStatement,
    CreateBranchSpec,
    DeleteBranchSpec,
    FastForwardSpec,
    MaintenanceReport,
    SetCurrentSnapshotSpec,
)
from spark_jobs.contract.properties import operation_properties
from spark_jobs.contract.request import JobRequest
from spark_jobs.engine.runtime.fence import Fence
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.branches import Publishing
from spark_jobs.spi.change_notes import ChangeNote
from spark_jobs.spi.connector import Connector


def changed_branches(
    request: JobRequest, connector: Connector, fence: Fence, note: ChangeNote
) -> MaintenanceReport:
    """Carry out a ``BranchStatement``.

    Raises:
        NotSupportedError: the connector has none.
        JobError: as the methods of ``ConnectorBranches``.
    """
    branches, target, dry_run = connector.branches, request.table, request.dry_run
    if branches is None:
        raise NotSupportedError(
            f"{request.statement.kind}: branches of tables of this catalog of "
            f"{request.catalog.connector} are not created, deleted or moved here.",
            "Use the engine that made the table, or what the catalog's server offers.",
        )
    publishing = Publishing(operation_properties(request, None), fence.require_none)
    match cast("BranchStatement", request.statement):
        case CreateBranchSpec() as spec:
            return branches.create_branch(target, spec, note=note)
        case DeleteBranchSpec() as spec:
            return branches.delete_branch(target, spec, dry_run=dry_run, note=note)
        case FastForwardSpec() as spec:
            return branches.fast_forward(target, spec, publishing, dry_run=dry_run, note=note)
        case SetCurrentSnapshotSpec() as spec:
            dag_id = request.origin.dag_id
            return branches.set_current_snapshot(
                target, spec, dag_id=dag_id, dry_run=dry_run, note=note
            )
        case spec:
            return branches.cherry_pick(target, spec, publishing, dry_run=dry_run, note=note)
