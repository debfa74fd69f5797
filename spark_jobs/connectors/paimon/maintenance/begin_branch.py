"""Beginning a branch at a snapshot. Driver only.

The folder is that which ``createBranch`` of Paimon's ``FileSystemBranchManager`` makes for a tag:
the tag, its snapshot and the schemas. The tag decides which of several writers begins the branch,
and where: everything else follows from it. It stays in the table, too: Paimon's engines, which do
not look at branches when they expire snapshots, keep its files. The schemas come last, newest
first, because a branch without a schema is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spark_jobs.connectors.paimon.library import snapshot_files, stored_snapshots, table_schema
from spark_jobs.connectors.paimon.maintenance.branch_folder import (
    BranchFolder,
    branch_exists,
    refuse_nesting,
)
from spark_jobs.connectors.paimon.maintenance.branch_history import BranchHistories
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.shared.maintenance.refusals import no_snapshot, no_tag
from spark_jobs.contract.maintenance import CreateBranchSpec, MaintenanceReport
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.formats.paimon.branches import base_tag
from spark_jobs.formats.paimon.metadata_files import entry_path
from spark_jobs.spi.alterations import ChangeNote
from spark_jobs.storage.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class BranchBeginning:
    """The branch that ``spec`` asks for."""

    name: TableName
    table: PinnedTable
    storage: Warehouse
    spec: CreateBranchSpec
    note: ChangeNote

    def run(self) -> MaintenanceReport:
        """Begin the branch, or finish what an earlier try has begun.

        Raises:
            CatalogError: BRANCH_EXISTS, SNAPSHOT_NOT_FOUND, TAG_NOT_FOUND.
            NotSupportedError: the target is a branch.
        """
        refuse_nesting(self.name)
        text, noted = self._folder.text(self._tag), self.note.read()
        if text is None or noted is None or noted["text"] != text:
            if text is not None or self._folder.has_files():
                return self._already_there()
            base = self._base()
            text = snapshot_files.snapshot_json(base)
            self.note.write({"text": text})
            if not self.storage.files.create(self._tag, text):
                self.note.remove()
                return self._already_there()
            self._require_kept(base)
        base = snapshot_files.parse_tag(text)
        # Once it is whole, its snapshots may have expired.
        if not self._is_whole():
            self._fill(int(base.id), int(base.schema_id), text)
        return MaintenanceReport(snapshot_id=int(base.id))

    @property
    def _folder(self) -> BranchFolder:
        return BranchFolder.of(self.storage.filesystem, self.table.path, self.spec.branch)

    @property
    def _tag(self) -> str:
        return entry_path(self.table.path, "tag", base_tag(self.spec.branch))

    def _base(self) -> Any:
        """The snapshot where the branch begins."""
        tag, snapshot_id = self.spec.tag, self.spec.snapshot_id
        if tag is not None:
            main, *_ = BranchHistories(self.storage.filesystem, self.table.path).read()
            if tag not in main.tags:
                raise no_tag(self.name, tag, main.tags)
            return snapshot_files.snapshot_of_tag(main.tags[tag])
        snapshot = self.table.snapshot
        if snapshot_id is not None:
            snapshot = stored_snapshots.find_snapshot(self.table.table, snapshot_id)
        if snapshot is None:
            raise no_snapshot(self.name, snapshot_id)
        return snapshot

    def _require_kept(self, base: Any) -> None:
        """Check that what names the snapshot is there still: from here on, the new tag keeps it."""
        if self.spec.tag is None:
            is_there = stored_snapshots.find_snapshot(self.table.table, base.id) is not None
        else:
            path = entry_path(self.table.path, "tag", self.spec.tag)
            is_there = self._folder.text(path) is not None
        if not is_there:
            self.storage.remover.remove([self._tag])
            self.note.remove()
            raise no_snapshot(self.name, int(base.id))

    def _fill(self, base_id: int, schema_id: int, text: str) -> None:
        """Make what is missing of the branch's files."""
        root, create = self._folder.path, self.storage.files.create
        create(entry_path(root, "tag", base_tag(self.spec.branch)), text)
        create(entry_path(root, "snapshot", base_id), text)
        schemas = BranchFolder(self.storage.filesystem, self.table.path).schemas()
        latest = self.table.snapshot
        is_latest = latest is not None and latest.id == base_id
        # Of the latest snapshot, the columns are those of the table as it is now.
        newest = table_schema.schema_id(self.table.table) if is_latest else schema_id
        for number in sorted(schemas, reverse=True):
            if number <= newest:
                create(entry_path(root, "schema", number), schemas[number])

    def _is_whole(self) -> bool:
        """Whether the branch has its last file, the table's oldest schema."""
        table = BranchFolder(self.storage.filesystem, self.table.path)
        return min(table.schemas(), default=0) in self._folder.schemas()

    def _already_there(self) -> MaintenanceReport:
        branch, is_whole = self.spec.branch, self._is_whole()
        if self.spec.if_not_exists and is_whole:
            return MaintenanceReport()
        if is_whole:
            raise branch_exists(self.name, branch)
        raise CatalogError(
            ErrorCode.BRANCH_EXISTS,
            f"{self.name} has a part of a branch {branch} already, such as the tag "
            f"{base_tag(branch)}: somebody is making it, or did not end making or dropping it.",
            "Choose another name, or delete the branch first, which removes the parts.",
        )
