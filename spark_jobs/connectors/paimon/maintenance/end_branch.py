"""Deleting a branch, with the tags that keep its files. Driver only.

The data files and manifests that only the branch needed are left to the removal of orphan files.
The schemas go first: from then on the branch is gone for everybody, also for its writers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_jobs.connectors.paimon.library.metadata_checks import reading_metadata
from spark_jobs.connectors.paimon.maintenance.branch_folder import (
    BranchFolder,
    kept_tags,
    no_branch,
)
from spark_jobs.connectors.paimon.maintenance.branch_history import BranchHistories, BranchHistory
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.contract.maintenance import DeleteBranchSpec, MaintenanceReport
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode, InternalError
from spark_jobs.formats.paimon.metadata_files import entry_path
from spark_jobs.spi.alterations import ChangeNote
from spark_jobs.storage.files import remove_folder
from spark_jobs.storage.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class BranchEnd:
    """The end of the branch that ``spec`` names."""

    name: TableName
    table: PinnedTable
    storage: Warehouse
    spec: DeleteBranchSpec
    note: ChangeNote

    def run(self, *, dry_run: bool) -> MaintenanceReport:
        """Delete the branch, or finish what an earlier try has begun.

        Raises:
            CatalogError: BRANCH_NOT_FOUND.
            InternalError: STORAGE_UNAVAILABLE; the rest goes when it is run again.
        """
        histories = BranchHistories(self.storage.filesystem, self.table.path).read()
        folder = BranchFolder.of(self.storage.filesystem, self.table.path, self.spec.branch)
        own = next((each for each in histories if each.folder == folder.path), None)
        report = MaintenanceReport(tags=1)
        noted = None if dry_run else self.note.read()
        has_files, tags = folder.has_files(), kept_tags(histories, self.spec.branch)
        if noted is not None and _is_over(noted, folder, own, tags):
            return report
        if not has_files and not tags:
            if self.spec.if_exists:
                return MaintenanceReport()
            raise no_branch(self.name, self.spec.branch, [each.name for each in histories])
        if not dry_run:
            if noted is None:
                self.note.write({"snapshots": _snapshots(own)})
            self._remove(folder, tags)
        return report

    def _remove(self, folder: BranchFolder, tags: list[str]) -> None:
        remover = self.storage.remover
        schemas = [entry_path(folder.path, "schema", number) for number in folder.schemas()]
        remover.remove_in_order(schemas)
        try:
            with reading_metadata(folder.path):
                remove_folder(self.storage.filesystem, folder.path)
        except OSError as error:
            raise InternalError(
                ErrorCode.STORAGE_UNAVAILABLE,
                f"{folder.path} could not be removed: {error}",
                "Check the storage and the right to delete there, then run it again.",
            ) from error
        remover.remove_in_order(sorted(tags))


def _snapshots(own: BranchHistory | None) -> list[str]:
    """What tells the branch from one that somebody makes under its name later."""
    return [] if own is None else [each.delta_manifest_list for each in own.snapshots.values()]


def _is_over(
    noted: Mapping[str, Any], folder: BranchFolder, own: BranchHistory | None, tags: list[str]
) -> bool:
    """Whether an earlier try has deleted the branch, whatever others have made since."""
    schemas = folder.schemas()
    if not schemas:
        return not folder.has_files() and not tags
    # With schemas, no snapshot was removed yet; so without one, it is another branch.
    return not set(noted["snapshots"]) <= set(_snapshots(own))
