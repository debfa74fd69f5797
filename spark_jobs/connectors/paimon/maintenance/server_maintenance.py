"""Tags and rollbacks of tables of a REST catalog, whose server makes them. Driver only.

The server has no request for expiry and orphan files: it takes care of them itself.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, NoReturn

from spark_jobs.connectors.paimon.library import rest_references, stored_snapshots
from spark_jobs.connectors.paimon.maintenance.branch_history import BranchHistory
from spark_jobs.connectors.paimon.maintenance.removal_plan import RemovalPlanner
from spark_jobs.connectors.paimon.maintenance.tags_and_rollback import (
    Rollback,
    is_dropped,
    retention_of,
)
from spark_jobs.connectors.paimon.metadata import PaimonMetadata
from spark_jobs.connectors.paimon.table.refusals import refuse_tagging
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.connectors.shared.commit.commit_loop import store_once
from spark_jobs.connectors.shared.maintenance.refusals import no_snapshot, no_tag, tag_exists
from spark_jobs.contract import codec
from spark_jobs.contract.maintenance import (
    CreateTagSpec,
    DeleteTagSpec,
    MaintenanceReport,
    RollbackSpec,
)
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CommitError, ErrorCode, NotSupportedError
from spark_jobs.spi.alterations import NO_NOTE, ChangeNote
from spark_jobs.storage.warehouse import Warehouse

# How often a rollback begins again when others commit all the time.
_ROLLBACKS: Final = 10


class ServerMaintenance:
    """Implements ``ConnectorMaintenance`` by requests to the server of ``catalog``."""

    def __init__(self, metadata: PaimonMetadata, storage: Warehouse, catalog: Any) -> None:
        self._metadata = metadata
        self._storage = storage
        self._catalog = catalog

    def expire_snapshots(self, name: TableName, *_args: Any, **_options: Any) -> NoReturn:
        """Refuse: there is no request for it."""
        _refuse("expire_snapshots", name)

    def remove_orphan_files(self, name: TableName, *_args: Any, **_options: Any) -> NoReturn:
        """Refuse: there is no request for it."""
        _refuse("remove_orphan_files", name)

    def create_tag(
        self, name: TableName, spec: CreateTagSpec, *, note: ChangeNote = NO_NOTE
    ) -> MaintenanceReport:
        """Create a tag that names a snapshot; the server counts its retention from its own now."""
        table, tag = self._table(name), spec.tag
        there, noted = self._tagged(table, tag), note.read()
        if there is not None:
            if noted is not None and noted["snapshot_id"] == there.id:
                return MaintenanceReport(snapshot_id=there.id)
            return _already_there(name, spec)
        snapshot = table.snapshot
        if spec.snapshot_id is not None:
            snapshot = stored_snapshots.find_snapshot(table.table, spec.snapshot_id)
        if snapshot is None:
            raise no_snapshot(name, spec.snapshot_id)
        retention = retention_of(spec, table.options)
        note.write({"snapshot_id": snapshot.id})
        create = partial(
            rest_references.create_tag, self._catalog, table.table, tag, snapshot.id, retention
        )
        if store_once(f"tag {tag}", create, partial(self._has_tag, table, tag, snapshot.id)):
            return MaintenanceReport(snapshot_id=snapshot.id)
        there = self._tagged(table, tag)
        # A proxy may have sent the request twice.
        if there is not None and there.id == snapshot.id:
            return MaintenanceReport(snapshot_id=snapshot.id)
        note.remove()
        if there is None:
            raise no_snapshot(name, snapshot.id)
        return _already_there(name, spec)

    def delete_tag(
        self, name: TableName, spec: DeleteTagSpec, *, dry_run: bool, note: ChangeNote = NO_NOTE
    ) -> MaintenanceReport:
        """Delete a tag; the files that only it kept are left to the server."""
        table, tag = self._table(name), spec.tag
        if tag is None:
            _refuse("delete_tag: expired", name)
        there, noted = self._tagged(table, tag), note.read()
        if there is None:
            if noted is not None:
                return codec.decode(MaintenanceReport, noted["report"])
            if spec.if_exists:
                return MaintenanceReport()
            raise no_tag(name, tag, rest_references.tag_names(self._catalog, table.table))
        latest = table.snapshot.id if table.snapshot else None
        report = MaintenanceReport(tags=1, latest_snapshot_id=latest)
        if not dry_run:
            note.write({"report": codec.encode(report)})
            delete = partial(rest_references.delete_tag, self._catalog, table.table, tag)
            store_once(f"the end of tag {tag}", delete, partial(self._lacks_tag, table, tag))
        return report

    def roll_back(
        self,
        name: TableName,
        spec: RollbackSpec,
        *,
        dag_id: str,
        dry_run: bool,
        note: ChangeNote = NO_NOTE,
    ) -> MaintenanceReport:
        """Drop the snapshots after a given one; with ``force``, also those that come meanwhile."""
        for _ in range(_ROLLBACKS if spec.force else 1):
            table = self._table(name)
            history, noted = self._history(table), note.read()
            if not dry_run and noted is not None and is_dropped(history, noted):
                return codec.decode(MaintenanceReport, noted["report"])
            rollback = _planned(name, history, spec, dag_id)
            if dry_run or not (rollback.snapshots or rollback.tags):
                return rollback.report()
            note.write(rollback.noted())
            if self._is_rolled_back(name, table, rollback, spec):
                return rollback.report()
        raise CommitError(
            ErrorCode.COMMIT_CONFLICT,
            f"Somebody else committed while {name} was rolled back.",
            "Run it again: it will roll that commit back too, if it may.",
        )

    def _is_rolled_back(
        self, name: TableName, table: PinnedTable, rollback: Rollback, spec: RollbackSpec
    ) -> bool:
        """Roll back; False if others committed meanwhile."""
        noted, latest = rollback.noted(), max(rollback.history.snapshots)
        to = spec.tag or rollback.target.id
        ask = partial(rest_references.roll_back, self._catalog, table.table, to, latest)

        def look_up() -> bool | None:
            history = self._history(self._table(name))
            if is_dropped(history, noted):
                return True
            return None if max(history.snapshots) == latest else False

        return store_once(f"snapshot {rollback.target.id} as the latest one", ask, look_up)

    def _history(self, table: PinnedTable) -> BranchHistory:
        """The snapshots in the table's folder, and the tags that the server names."""
        history = RemovalPlanner(table, self._storage, datetime.now(UTC)).history()
        names = rest_references.tag_names(self._catalog, table.table)
        tags = {tag: self._tagged(table, tag) for tag in names}
        known = {tag: snapshot for tag, snapshot in tags.items() if snapshot is not None}
        return replace(history, tags=known)

    def _tagged(self, table: PinnedTable, tag: str) -> Any | None:
        return rest_references.tagged_snapshot(self._catalog, table.table, tag)

    def _has_tag(self, table: PinnedTable, tag: str, snapshot_id: int) -> bool | None:
        there = self._tagged(table, tag)
        return None if there is None else there.id == snapshot_id

    def _lacks_tag(self, table: PinnedTable, tag: str) -> bool | None:
        return True if self._tagged(table, tag) is None else None

    def _table(self, name: TableName) -> PinnedTable:
        table = pinned_table(self._metadata.load_table(name))
        refuse_tagging(name, table.schema)
        return table


def _planned(name: TableName, history: BranchHistory, spec: RollbackSpec, dag_id: str) -> Rollback:
    if spec.tag is not None:
        target = history.tags.get(spec.tag)
        if target is None:
            raise no_tag(name, spec.tag, history.tags)
    else:
        target = history.snapshots.get(spec.snapshot_id or 0)
        if target is None:
            raise no_snapshot(name, spec.snapshot_id)
    rollback = Rollback.onto(history, target)
    if not spec.force:
        rollback.refuse_loss(name, dag_id, history.holding(datetime.now(UTC)))
    return rollback


def _already_there(name: TableName, spec: CreateTagSpec) -> MaintenanceReport:
    if spec.if_not_exists:
        return MaintenanceReport()
    raise tag_exists(name, "tag", spec.tag)


def _refuse(what: str, name: TableName) -> NoReturn:
    raise NotSupportedError(
        f"{what}: {name} is in a REST catalog, whose interface has no request for it.",
        "Leave it to the catalog's server.",
    )
