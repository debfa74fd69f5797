"""Branches of tables of a REST catalog, whose server makes and deletes them. Driver only.

The server makes a branch of a tag, in one step. A publication is a commit as any other, because the
server's own fast-forward replaces the table's snapshots.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from spark_jobs.connectors.paimon.library import rest_references, stored_snapshots
from spark_jobs.connectors.paimon.maintenance.branch_tags import (
    BranchKeeper,
    ServerKeeper,
    branch_exists,
    no_branch,
    refuse_nesting,
)
from spark_jobs.connectors.paimon.maintenance.table_branches import PaimonBranches
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.connectors.shared.commit.commit_loop import store_once
from spark_jobs.connectors.shared.maintenance.refusals import no_snapshot, no_tag
from spark_jobs.contract.maintenance import (
    CreateBranchSpec,
    DeleteBranchSpec,
    MaintenanceReport,
)
from spark_jobs.contract.request import TableName
from spark_jobs.contract.table_name import BRANCH_MARK, MAIN_BRANCH
from spark_jobs.formats.paimon.branches import base_tag, is_tag_of, refuse_statement
from spark_jobs.spi.alterations import NO_NOTE, ChangeNote


@dataclass(frozen=True, slots=True)
class ServerBranches(PaimonBranches):
    """Implements ``ConnectorBranches`` by requests to the server of ``catalog``."""

    catalog: Any

    def create_branch(
        self, name: TableName, spec: CreateBranchSpec, *, note: ChangeNote = NO_NOTE
    ) -> MaintenanceReport:
        """Begin a branch at a tag, which is made first and stays with the branch."""
        refuse_statement(spec)
        refuse_nesting(name)
        table, noted = self._table(name), note.read()
        if self._has(table, spec.branch):
            if noted is not None:
                return MaintenanceReport(snapshot_id=int(noted["snapshot_id"]))
            return _already_there(name, spec)
        snapshot_id = self._base(name, table, spec)
        note.write({"snapshot_id": snapshot_id})
        tag = base_tag(spec.branch)
        self._forget(table, tag, snapshot_id)
        self._tag(name, table, tag, snapshot_id)
        create = partial(rest_references.create_branch, self.catalog, table.table, spec.branch, tag)
        has = partial(self._has_it, table, spec.branch)
        is_made = store_once(f"branch {spec.branch}", create, has)
        # A proxy may have sent the request twice.
        if is_made or noted is not None or self._begins_at(name, table, spec.branch, snapshot_id):
            return MaintenanceReport(snapshot_id=snapshot_id)
        note.remove()
        return _already_there(name, spec)

    def delete_branch(
        self, name: TableName, spec: DeleteBranchSpec, *, dry_run: bool, note: ChangeNote = NO_NOTE
    ) -> MaintenanceReport:
        """Delete a branch and its tags; the files that only it needed are left to the server."""
        name = replace(name, table=name.without_branch)
        table, noted = self._table(name), note.read()
        there = self._has(table, spec.branch)
        known = rest_references.tag_names(self.catalog, table.table)
        tags = [each for each in known if is_tag_of(spec.branch, each)]
        head = self._head(name, spec.branch) if there else None
        if noted is not None and not dry_run and (not there or head != noted["head"]):
            # Of another branch of the name, the tags are its own.
            return MaintenanceReport(tags=1) if there else self._without(table, tags)
        if not there and not tags:
            if spec.if_exists:
                return MaintenanceReport()
            names = rest_references.branch_names(self.catalog, table.table)
            raise no_branch(name, spec.branch, [MAIN_BRANCH, *names])
        if dry_run:
            return MaintenanceReport(tags=1)
        if noted is None:
            note.write({"head": head})
        if there:
            delete = partial(rest_references.delete_branch, self.catalog, table.table, spec.branch)
            lacks = partial(self._lacks_it, table, spec.branch)
            store_once(f"the end of branch {spec.branch}", delete, lacks)
        return self._without(table, tags)

    def _keeper(self) -> BranchKeeper:
        return ServerKeeper(self.storage, self.catalog)

    def _base(self, name: TableName, table: PinnedTable, spec: CreateBranchSpec) -> int:
        """The id of the snapshot where the branch begins, which must not have expired."""
        snapshot = table.snapshot
        if spec.tag is not None:
            tagged = rest_references.tagged_snapshot(self.catalog, table.table, spec.tag)
            if tagged is None:
                raise no_tag(name, spec.tag, rest_references.tag_names(self.catalog, table.table))
            snapshot = stored_snapshots.find_snapshot(table.table, tagged.id)
        elif spec.snapshot_id is not None:
            snapshot = stored_snapshots.find_snapshot(table.table, spec.snapshot_id)
        if snapshot is None:
            raise no_snapshot(name, spec.snapshot_id)
        return int(snapshot.id)

    def _tag(self, name: TableName, table: PinnedTable, tag: str, snapshot_id: int) -> None:
        create = partial(
            rest_references.create_tag, self.catalog, table.table, tag, snapshot_id, None
        )

        def has() -> bool | None:
            found = rest_references.tagged_snapshot(self.catalog, table.table, tag)
            return None if found is None else bool(found.id == snapshot_id)

        if not store_once(f"tag {tag}", create, has) and has() is not True:
            raise no_snapshot(name, snapshot_id)

    def _forget(self, table: PinnedTable, tag: str, snapshot_id: int) -> None:
        """Delete a tag of this name that a branch has left which is gone."""
        found = rest_references.tagged_snapshot(self.catalog, table.table, tag)
        if found is not None and found.id != snapshot_id:
            self._untag(table, tag)

    def _untag(self, table: PinnedTable, tag: str) -> None:
        def lacks() -> bool | None:
            there = rest_references.tagged_snapshot(self.catalog, table.table, tag)
            return True if there is None else None

        delete = partial(rest_references.delete_tag, self.catalog, table.table, tag)
        store_once(f"the end of tag {tag}", delete, lacks)

    def _has(self, table: PinnedTable, branch: str) -> bool:
        return branch in rest_references.branch_names(self.catalog, table.table)

    def _has_it(self, table: PinnedTable, branch: str) -> bool | None:
        return True if self._has(table, branch) else None

    def _lacks_it(self, table: PinnedTable, branch: str) -> bool | None:
        return None if self._has(table, branch) else True

    def _head(self, name: TableName, branch: str) -> str | None:
        """What tells the latest snapshot of a branch from those of others."""
        named = replace(name, table=f"{name.table}{BRANCH_MARK}{branch}")
        found = pinned_table(self.metadata.load_table(named)).snapshot
        return None if found is None else str(found.delta_manifest_list)

    def _begins_at(
        self, name: TableName, table: PinnedTable, branch: str, snapshot_id: int
    ) -> bool:
        """Whether a branch is there, and still where it begins."""
        base = stored_snapshots.find_snapshot(table.table, snapshot_id)
        if base is None or not self._has(table, branch):
            return False
        return self._head(name, branch) == str(base.delta_manifest_list)

    def _without(self, table: PinnedTable, tags: list[str]) -> MaintenanceReport:
        for tag in tags:
            self._untag(table, tag)
        return MaintenanceReport(tags=1)


def _already_there(name: TableName, spec: CreateBranchSpec) -> MaintenanceReport:
    if spec.if_not_exists:
        return MaintenanceReport()
    raise branch_exists(name, spec.branch)
