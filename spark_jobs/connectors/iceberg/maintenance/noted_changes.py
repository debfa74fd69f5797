"""Changes of references, each noted first: a retry reports what an earlier try has done.

Iceberg keeps no word about who made a tag or moved a branch, so a retry compares what the table has
with the note. It takes an equal change that somebody else made in between for its own. Driver only.

Driver only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spark_jobs.connectors.iceberg.commit.metadata_commits import MetadataCommits
from spark_jobs.connectors.iceberg.maintenance.references import (
    BRANCH,
    TAG,
    Reference,
    References,
    has_moved,
    pointer,
    retention_of,
)
from spark_jobs.connectors.iceberg.table.commits import summary_of
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.contract import codec
from spark_jobs.contract.maintenance import MaintenanceReport
from spark_jobs.contract.properties import DAG_ID
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CommitError, ErrorCode, JobError
from spark_jobs.formats.iceberg.expiry import history
from spark_jobs.spi.alterations import ChangeNote

# How often a move begins again when others commit all the time.
_TRIES: Final = 10


@dataclass(frozen=True, slots=True)
class NotedChanges:
    """Changes references of the table of ``commits``."""

    commits: MetadataCommits
    note: ChangeNote

    @property
    def name(self) -> TableName:
        """The table's."""
        return self.commits.name

    def done(self, table: PinnedTable) -> MaintenanceReport | None:
        """What an earlier try reported on the changes that ``table`` has; None: it has them not.

        Raises:
            CatalogError: METADATA_UNREADABLE, WORKSPACE_ACCESS_DENIED.
            CommitError: COMMIT_HISTORY_EXPIRED: a branch was moved since, so it cannot be known.
        """
        noted = self.note.read()
        if noted is None or noted["table"] != str(table.metadata.table_uuid):
            return None
        if not all(_is_made(table, each) for each in noted["references"]):
            return None
        return codec.decode(MaintenanceReport, noted["report"])

    def table(self) -> PinnedTable:
        """The table as it is now."""
        return self.commits.table()

    def change(self, read: PinnedTable, wanted: References, report: MaintenanceReport) -> bool:
        """Change the table that was ``read``; False: others changed the references meanwhile.

        Raises: as ``MetadataCommits.change``, and what the note raises.
        """
        noted = [_noted(read, each) for each in wanted.each]
        uuid, told = str(read.metadata.table_uuid), codec.encode(report)
        self.note.write({"table": uuid, "references": noted, "report": told})
        try:
            is_changed = self.commits.change(read, wanted)
        except JobError as error:
            if error.code is not ErrorCode.COMMIT_OUTCOME_UNKNOWN:
                self.note.remove()
            raise
        if not is_changed:
            self.note.remove()
        return is_changed

    def require(
        self, read: PinnedTable, wanted: References, report: MaintenanceReport
    ) -> MaintenanceReport:
        """Change the table, once; the report.

        Raises:
            CommitError: COMMIT_CONFLICT: others changed the references; and as ``change``.
        """
        if not self.change(read, wanted, report):
            raise CommitError(
                ErrorCode.COMMIT_CONFLICT,
                f"{self.name}: somebody else changed the {wanted} meanwhile.",
                "Look at the table's tags, branches and snapshots, and run it again.",
            )
        return report


def _noted(read: PinnedTable, wanted: Reference) -> dict[str, Any]:
    return {
        "name": wanted.name,
        "kind": wanted.kind,
        "before": pointer(read, wanted.name),
        "after": wanted.snapshot_id,
        "retention": dict(wanted.retention),
    }


def _is_made(table: PinnedTable, noted: Mapping[str, Any]) -> bool:
    """Whether a reference has been changed as noted, whatever others did to it after that."""
    name: str = noted["name"]
    before: int | None = noted["before"]
    after: int | None = noted["after"]
    ref = table.metadata.refs.get(name)
    if after is None:
        return pointer(table, name) != before
    if ref is None or str(ref.snapshot_ref_type) != noted["kind"]:
        return False
    if before is None and retention_of(ref) != noted["retention"]:
        return False
    if noted["kind"] == TAG:
        return int(ref.snapshot_id) == after
    has = has_moved(table, name, before, after)
    if has is None and before is not None:
        raise CommitError(
            ErrorCode.COMMIT_HISTORY_EXPIRED,
            f"Somebody else has moved the branch {name} since an earlier try of this operation "
            "began, so whether that one moved it cannot be known.",
            "Look at the branch; clear the task to move it once more.",
        )
    return bool(has)


@dataclass(frozen=True, slots=True)
class Move:
    """The branch goes to ``target``, and leaves ``dropped`` snapshots behind."""

    target: int
    dropped: Sequence[Any] = ()


def carried_out(
    changes: NotedChanges, plan: Callable[[PinnedTable], Move], *, dry_run: bool
) -> MaintenanceReport:
    """Move the branch as ``plan`` says of the table as it is now, in one commit.

    Raises:
        CommitError: COMMIT_CONFLICT, COMMIT_HISTORY_EXPIRED, COMMIT_OUTCOME_UNKNOWN.
        JobError: raised by ``plan``.
    """
    for _ in range(_TRIES):
        table = changes.table()
        if not dry_run and (earlier := changes.done(table)) is not None:
            return earlier
        move = plan(table)
        is_there = pointer(table, table.branch) == move.target
        report = MaintenanceReport(
            snapshots=len(move.dropped),
            earliest_snapshot_id=[each.snapshot_id for each in history_of(table, move.target)][-1],
            latest_snapshot_id=move.target,
            snapshot_id=None if is_there else move.target,
        )
        wanted = References([moved_branch(table, move.target)])
        if dry_run or is_there or changes.change(table, wanted, report):
            return report
    raise CommitError(
        ErrorCode.COMMIT_CONFLICT,
        f"Others committed to {changes.name} in each of {_TRIES} tries to move its branch.",
        "Run it again when fewer writers are at work on the table.",
    )


def history_of(table: PinnedTable, snapshot_id: int | None) -> Iterator[Any]:
    """The snapshot and those that it builds on, newest first."""
    return history({each.snapshot_id: each for each in table.metadata.snapshots}, snapshot_id)


def moved_branch(table: PinnedTable, target: int) -> Reference:
    """The branch at ``target``, with the retention that it has."""
    kept = retention_of(table.metadata.refs.get(table.branch))
    return Reference(table.branch, BRANCH, target, kept)


def told(snapshot: Any) -> str:
    """A snapshot with who made it, for errors."""
    summary = summary_of(snapshot)
    maker = summary.get(DAG_ID)
    by = f"DAG {maker}" if maker else "another writer"
    return f"snapshot {snapshot.snapshot_id} ({summary.get('operation')}) of {by}"
