"""Branches of the tables of a filesystem catalog. Driver only.

A branch's folder is that which ``createBranch`` of Paimon's ``FileSystemBranchManager`` makes for a
tag: the tag, its snapshot and the schemas. The tag decides which of several writers begins the
branch, and where: everything else follows from it. It stays in the table, too: Paimon's engines,
which do not look at branches when they expire snapshots, keep its files. The schemas come last,
newest first, because a branch without a schema is none.

If a branch is deleted, the data files and manifests that only it needed are left to the removal of
orphan files. The schemas go first: from then on the branch is gone for everybody, also for its
writers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from spark_jobs.connectors.paimon.commit.publish import SnapshotStore
from spark_jobs.connectors.paimon.library import stored_snapshots, table_schema
from spark_jobs.connectors.paimon.library.metadata_checks import reading_metadata
from spark_jobs.connectors.paimon.maintenance.branch_history import BranchHistories, BranchHistory
from spark_jobs.connectors.paimon.maintenance.branch_tags import (
    BranchFolder,
    BranchKeeper,
    FileKeeper,
    branch_exists,
    kept_tags,
    no_branch,
    refuse_nesting,
)
from spark_jobs.connectors.paimon.maintenance.publish_branch import Publication
from spark_jobs.connectors.paimon.metadata import PaimonMetadata
from spark_jobs.connectors.paimon.table.refusals import refuse_tagging
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.connectors.shared.maintenance.refusals import no_snapshot, no_tag
from spark_jobs.contract.maintenance import (
    CherryPickSpec,
    CreateBranchSpec,
    DeleteBranchSpec,
    FastForwardSpec,
    MaintenanceReport,
    SetCurrentSnapshotSpec,
)
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, ErrorCode, InternalError
from spark_jobs.formats.paimon.branches import base_tag, refusal, refuse_statement
from spark_jobs.formats.paimon.metadata_files import entry_path
from spark_jobs.spi.alterations import NO_NOTE, ChangeNote
from spark_jobs.spi.branches import Publishing
from spark_jobs.storage.files import remove_folder
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
        return _BranchBeginning(name, self._table(name), self.storage, spec, note).run()

    def delete_branch(
        self, name: TableName, spec: DeleteBranchSpec, *, dry_run: bool, note: ChangeNote = NO_NOTE
    ) -> MaintenanceReport:
        """Delete a branch; files that only it needed are orphans then."""
        # Of the table, because the branch of the name may be the one that goes.
        whole = replace(name, table=name.without_branch)
        end = _BranchEnd(whole, self._table(whole), self.storage, spec, note)
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
        self, name: TableName, spec: SetCurrentSnapshotSpec, **_options: Any
    ) -> NoReturn:
        """Refuse: tables of Paimon only go back."""
        del name
        raise refusal(spec)

    def cherry_pick(
        self, name: TableName, spec: CherryPickSpec, publishing: Publishing, **_options: Any
    ) -> NoReturn:
        """Refuse: nothing is staged."""
        del name, publishing
        raise refusal(spec)

    def _keeper(self) -> BranchKeeper:
        return FileKeeper(self.storage)

    def _table(self, name: TableName) -> PinnedTable:
        table = pinned_table(self.metadata.load_table(name))
        refuse_tagging(name, table.schema)
        return table


@dataclass(frozen=True, slots=True)
class _BranchBeginning:
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
            text = stored_snapshots.snapshot_json(base)
            self.note.write({"text": text})
            if not self.storage.files.create(self._tag, text):
                self.note.remove()
                return self._already_there()
            self._require_kept(base)
        base = stored_snapshots.parse_tag(text)
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
            return stored_snapshots.snapshot_of_tag(main.tags[tag])
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


@dataclass(frozen=True, slots=True)
class _BranchEnd:
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
