"""Publishing a staged snapshot on a branch. Driver only.

Follows ``CherryPickOperation`` of Iceberg's Java: the branch is fast-forwarded if the snapshot was
staged on its head. Else the files of an append, or of an overwrite of whole partitions that nobody
has written to since, become a new snapshot, which names the staged one. A ``wap.id`` is published
once. Unlike Java, the commit also demands that the staged snapshot has not expired.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from spark_jobs.connectors.iceberg.commit.changes import Changes
from spark_jobs.connectors.iceberg.commit.history import Gap, find_commit
from spark_jobs.connectors.iceberg.commit.manifest_records import NewDataFile
from spark_jobs.connectors.iceberg.commit.snapshot_commit import SnapshotCommits
from spark_jobs.connectors.iceberg.maintenance.noted_changes import NotedChanges, moved_branch
from spark_jobs.connectors.iceberg.maintenance.references import References, known_snapshot, pointer
from spark_jobs.connectors.iceberg.table.commits import OtherCommit, commit_of, summary_of
from spark_jobs.connectors.iceberg.table.live_files import partition_key
from spark_jobs.connectors.iceberg.table.manifests import DATA, ManifestEntry
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, ancestors, pinned_table
from spark_jobs.connectors.shared.commit.commit_loop import before_publication, until_committed
from spark_jobs.contract.maintenance import CherryPickSpec, MaintenanceReport
from spark_jobs.contract.marks import PREFIX as MARK_PREFIX
from spark_jobs.contract.properties import BASE_SNAPSHOT_ID, OPERATION_ID, REQUEST_DIGEST
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, CommitError, ErrorCode, JobError, RequestError
from spark_jobs.spi.branches import Publishing

STAGED_ID: Final = "wap.id"
PUBLISHED_ID: Final = "published-wap-id"
SOURCE: Final = "source-snapshot-id"
_REPLACES_PARTITIONS: Final = "replace-partitions"


@dataclass(frozen=True, slots=True)
class CherryPick:
    """The publication that ``spec`` asks for."""

    changes: NotedChanges
    spec: CherryPickSpec
    publishing: Publishing
    dry_run: bool

    def run(self) -> MaintenanceReport:
        """Publish the staged snapshot, unless an earlier try has.

        Raises:
            CatalogError: SNAPSHOT_NOT_FOUND.
            CommitError: ALREADY_PUBLISHED, BRANCHES_DIVERGED, COMMIT_CONFLICT,
                COMMIT_OUTCOME_UNKNOWN.
            RequestError: REQUEST_INVALID: several snapshots have the ``wap.id``.
        """
        return until_committed(self._attempt)

    def _attempt(self, number: int) -> MaintenanceReport | None:
        """The report; None if another writer was faster."""
        del number
        commits = self.changes.commits
        handle = commits.metadata.load_table(self.changes.name)
        table = pinned_table(handle)
        if not self.dry_run and (earlier := self._earlier(table)) is not None:
            return earlier
        staged = _staged(self.changes.name, table, self.spec)
        kind = _Kind.of(staged)
        if kind.is_replayed:
            _refuse_published_id(table, staged)
        if staged.parent_snapshot_id == pointer(table, table.branch):
            return self._forwarded(table, int(staged.snapshot_id))
        commits.metadata.require_writable(handle)
        with before_publication():
            changes = _replayed(table, staged, kind)
        if self.dry_run:
            return _report(int(staged.snapshot_id))
        publisher = SnapshotCommits(commits.catalog, commits.metadata, handle, staged.snapshot_id)
        recorded = {**self._properties(table), **_link(staged)}
        done = publisher.publish(table, changes, recorded, self.publishing.require_wanted)
        return None if done is None else _report(done.snapshot_id)

    def _earlier(self, table: PinnedTable) -> MaintenanceReport | None:
        """What an earlier try has published."""
        forwarded = self.changes.done(table)
        if forwarded is not None:
            return forwarded
        mine = self.publishing.properties
        committed = find_commit(table, mine[OPERATION_ID], None)
        if committed is None or committed.properties.get(REQUEST_DIGEST) != mine[REQUEST_DIGEST]:
            return None
        return _report(committed.snapshot_id)

    def _forwarded(self, table: PinnedTable, staged_id: int) -> MaintenanceReport | None:
        wanted, report = References([moved_branch(table, staged_id)]), _report(staged_id)
        is_done = self.dry_run or self.changes.change(table, wanted, report)
        return report if is_done else None

    def _properties(self, table: PinnedTable) -> dict[str, str]:
        head = pointer(table, table.branch)
        base = "" if head is None else str(head)
        return {**self.publishing.properties, BASE_SNAPSHOT_ID: base}


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a staged snapshot may be published besides by fast-forward."""

    appends: bool
    replaces: bool

    @classmethod
    def of(cls, staged: Any) -> _Kind:
        summary = summary_of(staged)
        is_whole = summary.get(_REPLACES_PARTITIONS, "").lower() == "true"
        operation = summary.get("operation")
        return cls(operation == "append", operation == "overwrite" and is_whole)

    @property
    def is_replayed(self) -> bool:
        return self.appends or self.replaces


def _report(snapshot_id: int) -> MaintenanceReport:
    return MaintenanceReport(snapshot_id=snapshot_id, latest_snapshot_id=snapshot_id)


def _staged(name: TableName, table: PinnedTable, spec: CherryPickSpec) -> Any:
    if spec.wap_id is None:
        return table.metadata.snapshot_by_id(known_snapshot(table, name, spec.snapshot_id))
    snapshots = [
        each for each in table.metadata.snapshots if summary_of(each).get(STAGED_ID) == spec.wap_id
    ]
    if len(snapshots) > 1:
        ids = ", ".join(str(each.snapshot_id) for each in snapshots)
        raise RequestError(
            ErrorCode.REQUEST_INVALID,
            f"wap_id: of {name}, the snapshots {ids} have the wap.id {spec.wap_id}.",
            "Give the snapshot_id of one of them.",
        )
    if not snapshots:
        raise CatalogError(
            ErrorCode.SNAPSHOT_NOT_FOUND,
            f"{name} does not have a snapshot of the wap.id {spec.wap_id}; it may have expired.",
            "Look at the table's snapshots.",
        )
    return snapshots[0]


def _link(staged: Any) -> dict[str, str]:
    """The properties by which every engine finds that a snapshot was published."""
    found, own = {SOURCE: str(staged.snapshot_id)}, summary_of(staged).get(STAGED_ID)
    return {**found, PUBLISHED_ID: own} if own else found


def _refuse_published_id(table: PinnedTable, staged: Any) -> None:
    own = summary_of(staged).get(STAGED_ID)
    for snapshot in ancestors(table) if own else ():
        if own in (summary_of(snapshot).get(STAGED_ID), summary_of(snapshot).get(PUBLISHED_ID)):
            reason = f"its wap.id {own} is that of snapshot {snapshot.snapshot_id}"
            raise _published(table, staged, reason)


def _replayed(table: PinnedTable, staged: Any, kind: _Kind) -> Changes:
    """The changes of the staged snapshot, for the head of the branch."""
    for snapshot in ancestors(table):
        if staged.snapshot_id == snapshot.snapshot_id:
            raise _published(table, staged, f"it is in the history of {table.branch}")
        if summary_of(snapshot).get(SOURCE) == str(staged.snapshot_id):
            raise _published(table, staged, f"it became snapshot {snapshot.snapshot_id}")
    if any(name.startswith(MARK_PREFIX) for name in summary_of(staged)):
        # Without the mark, what it applied would be applied again.
        raise _diverged(
            table, staged, "it moved the mark of a source, which only a run of its task can move"
        )
    if not kind.is_replayed:
        operation = summary_of(staged).get("operation")
        raise _diverged(
            table,
            staged,
            f"it is neither an append nor an overwrite of whole partitions ({operation}), and was "
            f"not staged on the head of {table.branch}",
        )
    with reading_metadata(table.place):
        commit = commit_of(table, staged)
    files = [*commit.added, *commit.removed]
    if any(each.content != DATA for each in files):
        raise _diverged(table, staged, "it has delete files")
    if kind.replaces:
        _refuse_changed_partitions(table, staged, commit)
    removed = {each.key: each for each in commit.removed} if kind.replaces else {}
    added = [NewDataFile(each.spec_id, each.partition, _of_new_rows(each)) for each in commit.added]
    return Changes(added, [], removed, [], overwrites=kind.replaces)


def _of_new_rows(entry: ManifestEntry) -> Mapping[str, Any]:
    """The record of a file without ids of its rows: on this branch they are new."""
    return {name: value for name, value in entry.record.items() if name != "first_row_id"}


def _refuse_changed_partitions(table: PinnedTable, staged: Any, commit: OtherCommit) -> None:
    """Refuse an overwrite if its partitions have new files since, or its old files are gone."""
    parent = staged.parent_snapshot_id
    known = {each.snapshot_id: each for each in ancestors(table)}
    if parent is not None and parent not in known:
        raise _diverged(table, staged, f"its parent is not in the history of {table.branch}")
    gap = Gap(replace(table, snapshot=None if parent is None else known[parent]))
    gap.read_up_to(table)
    replaced = {partition_key(each.spec_id, each.partition) for each in commit.added}
    old = {each.key for each in commit.removed}
    for other in gap.commits:
        new = {partition_key(e.spec_id, e.partition) for e in other.added if e.content == DATA}
        if new & replaced or old & {each.key for each in other.removed}:
            raise _diverged(table, staged, f"{other} has changed its partitions since")


def _published(table: PinnedTable, staged: Any, reason: str) -> JobError:
    return CommitError(
        ErrorCode.ALREADY_PUBLISHED,
        f"{table.place}: snapshot {staged.snapshot_id} is published already: {reason}.",
        "Look at the branch's snapshots: its rows are there.",
    )


def _diverged(table: PinnedTable, staged: Any, reason: str) -> JobError:
    return CommitError(
        ErrorCode.BRANCHES_DIVERGED,
        f"{table.place}: snapshot {staged.snapshot_id} cannot be published: {reason}.",
        "Write the rows anew, on the head of the branch.",
    )
