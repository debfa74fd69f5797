"""Publishing a branch: another branch, such as main, gets what it has. Driver only.

``fastForward`` of Paimon's ``FileSystemBranchManager`` removes and copies snapshots one file at a
time, so readers see states in between, and a commit of others may be lost. Here the other branch
gets one new snapshot with exactly the files and indexes of the head. It is made as every commit is:
by the exclusive creation of one file, so of several writers one wins, and readers see all or
nothing. Columns that only the branch has are stored before, as by statements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from spark_jobs.connectors.paimon.commit.history import COMMIT_IDENTIFIER, is_made_by
from spark_jobs.connectors.paimon.commit.new_snapshot import Commit
from spark_jobs.connectors.paimon.commit.publish import SnapshotStore, publish_snapshot
from spark_jobs.connectors.paimon.library import stored_snapshots
from spark_jobs.connectors.paimon.maintenance.branch_history import BranchHistories, BranchHistory
from spark_jobs.connectors.paimon.maintenance.branch_states import (
    Difference,
    diverged,
    is_same_state,
    newer_schemas,
    require_forward,
)
from spark_jobs.connectors.paimon.maintenance.branch_tags import (
    BranchFolder,
    BranchKeeper,
    no_branch,
)
from spark_jobs.connectors.paimon.metadata import PaimonMetadata
from spark_jobs.connectors.paimon.table.refusals import refuse_tagging, refuse_unwritable
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.connectors.shared.commit.commit_loop import before_publication
from spark_jobs.connectors.shared.commit.refusals import expired
from spark_jobs.contract import codec
from spark_jobs.contract.maintenance import FastForwardSpec, MaintenanceReport
from spark_jobs.contract.properties import BASE_SNAPSHOT_ID, OPERATION_ID
from spark_jobs.contract.request import TableName
from spark_jobs.contract.table_name import BRANCH_MARK, MAIN_BRANCH
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.formats.paimon.branches import PUBLISHED_BRANCH, PUBLISHED_HEAD, published_tag
from spark_jobs.spi.alterations import ChangeNote
from spark_jobs.spi.branches import Publishing
from spark_jobs.storage.warehouse import Warehouse

# How often a publication begins again when its snapshot's id is taken.
_TRIES: Final = 10


@dataclass(frozen=True, slots=True)
class _Plan:
    """``own`` gets what ``other`` has; ``base``: the snapshot of ``other`` that it has already."""

    own: PinnedTable
    other: PinnedTable
    histories: tuple[BranchHistory, BranchHistory]
    base: Any | None
    schemas: Mapping[int, str]

    @property
    def is_done(self) -> bool:
        """Whether there is nothing to publish."""
        own, head = self.own.snapshot, self.head
        if own is None or head is None:
            return head is None
        return is_same_state(own, head) and not self.schemas

    @property
    def head(self) -> Any:
        """The latest snapshot of ``other``."""
        return self.other.snapshot

    @property
    def next_id(self) -> int:
        """The id of the snapshot that publishes."""
        return self.own.snapshot.id + 1 if self.own.snapshot is not None else 1


@dataclass(frozen=True, slots=True)
class Publication:
    """The publication of the branch ``spec.to`` on the branch of ``name``."""

    name: TableName
    metadata: PaimonMetadata
    storage: Warehouse
    store: SnapshotStore
    keeper: BranchKeeper
    spec: FastForwardSpec
    publishing: Publishing
    note: ChangeNote

    def run(self, *, dry_run: bool) -> MaintenanceReport:
        """Publish, unless an earlier try has.

        Raises:
            CatalogError: BRANCH_NOT_FOUND, METADATA_UNREADABLE.
            CommitError: BRANCHES_DIVERGED, COMMIT_CONFLICT, COMMIT_OUTCOME_UNKNOWN,
                COMMIT_HISTORY_EXPIRED.
            NotSupportedError: what the branch has cannot be told as one change.
        """
        for _ in range(_TRIES):
            own = pinned_table(self.metadata.load_table(self.name))
            if not dry_run and (earlier := self._earlier(own)) is not None:
                return earlier
            plan = self._plan(own)
            report = self._report(plan)
            if dry_run or plan.is_done or self._is_published(plan, report):
                return report
        raise CommitError(
            ErrorCode.COMMIT_CONFLICT,
            f"Others committed to {self.name} in each of {_TRIES} tries to publish a branch.",
            "Run it again when fewer writers are at work on the table.",
        )

    def _plan(self, own: PinnedTable) -> _Plan:
        refuse_tagging(self.name, own.schema)
        refuse_unwritable(self.name, own.schema)
        histories = BranchHistories(self.storage.filesystem, own.path).read()
        by_name = {each.name: each for each in histories}
        if self.spec.to not in by_name:
            raise no_branch(self.name, self.spec.to, by_name)
        other = pinned_table(self.metadata.load_table(self._other_name()))
        mine, theirs = by_name[self.name.branch], by_name[self.spec.to]
        base = require_forward(self.name, mine, theirs, own.snapshot)
        schemas = newer_schemas(
            self.name, mine.name, theirs.name, self.keeper.schemas(own), self.keeper.schemas(other)
        )
        return _Plan(own, other, (mine, theirs), base, schemas)

    def _other_name(self) -> TableName:
        table = self.name.without_branch
        named = table if self.spec.to == MAIN_BRANCH else f"{table}{BRANCH_MARK}{self.spec.to}"
        return replace(self.name, table=named)

    def _report(self, plan: _Plan) -> MaintenanceReport:
        ids = list(plan.histories[0].snapshots)
        latest = plan.own.snapshot.id if plan.own.snapshot is not None else None
        if plan.is_done:
            return MaintenanceReport(
                earliest_snapshot_id=min(ids, default=None), latest_snapshot_id=latest
            )
        return MaintenanceReport(
            earliest_snapshot_id=min(ids, default=plan.next_id),
            latest_snapshot_id=plan.next_id,
            snapshot_id=plan.next_id,
        )

    def _earlier(self, own: PinnedTable) -> MaintenanceReport | None:
        """What an earlier try reported, if the branch has its snapshot."""
        noted = self.note.read()
        if noted is None:
            return None
        snapshot_id = int(noted["snapshot_id"])
        snapshot = stored_snapshots.find_snapshot(own.table, snapshot_id)
        if snapshot is None:
            ids = stored_snapshots.snapshot_ids(own.table)
            if ids and snapshot_id < ids[0]:
                raise expired(snapshot_id, self.name)
            return None
        if not is_made_by(snapshot, self.publishing.properties[OPERATION_ID]):
            return None
        other = BranchFolder.of(self.storage.filesystem, own.path, self.spec.to)
        if self.spec.to == MAIN_BRANCH or other.has_files():
            self._tag(own, snapshot)
        return codec.decode(MaintenanceReport, noted["report"])

    def _is_published(self, plan: _Plan, report: MaintenanceReport) -> bool:
        """Publish; False: another snapshot has the id."""
        with before_publication():
            self._require_change(plan)
            self.publishing.require_wanted()
        self.note.write({"snapshot_id": plan.next_id, "report": codec.encode(report)})
        own = self._with_schemas(plan)
        self._tag(plan.other, plan.head)
        difference = self._difference(plan)
        with before_publication():
            change = difference.change(own.snapshot, plan.next_id)
        commit = Commit(
            self.publishing.properties[OPERATION_ID], COMMIT_IDENTIFIER, self._properties(plan)
        )
        published = publish_snapshot(
            self.store, own, change, commit, self.publishing.require_wanted, difference.completed
        )
        if published is None:
            return False
        snapshot = stored_snapshots.find_snapshot(own.table, published)
        if snapshot is not None:
            self._tag(own, snapshot)
        return True

    def _require_change(self, plan: _Plan) -> None:
        """Refuse what cannot be told as one change, before anything is stored."""
        self._difference(plan).change(plan.own.snapshot, plan.next_id)

    def _difference(self, plan: _Plan) -> Difference:
        theirs, base = plan.histories[1], plan.base
        after = base.id if base is not None else 0
        between = [snapshot for number, snapshot in theirs.snapshots.items() if number > after]
        return Difference(self.name, plan.other, base, plan.head, between)

    def _properties(self, plan: _Plan) -> dict[str, str]:
        base = plan.own.snapshot
        return {
            **self.publishing.properties,
            BASE_SNAPSHOT_ID: "" if base is None else str(base.id),
            PUBLISHED_BRANCH: self.spec.to,
            PUBLISHED_HEAD: plan.head.delta_manifest_list,
        }

    def _with_schemas(self, plan: _Plan) -> PinnedTable:
        """The branch with the other's schemas, pinned where it was."""
        if not plan.schemas:
            return plan.own
        for number, text in plan.schemas.items():
            if not self.keeper.store_schema(self.name, plan.own, number, text):
                mine, theirs = plan.histories
                raise diverged(self.name, mine.name, theirs.name, f"schema {number}")
        again = pinned_table(self.metadata.load_table(self.name))
        return replace(again, snapshot=plan.own.snapshot)

    def _tag(self, table: PinnedTable, snapshot: Any) -> None:
        """Keep the files that both branches have now, whichever of them expires."""
        branch = self.name.branch if self.spec.to == MAIN_BRANCH else self.spec.to
        self.keeper.tag(table, published_tag(branch, int(snapshot.id)), snapshot)
