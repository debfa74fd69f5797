"""Committing a write as one snapshot through the catalog, or its schema alone. Driver only.

The change is prepared once. Each attempt reads what others committed meanwhile, refuses conflicts,
and publishes a snapshot after the head of the branch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from spark_jobs.connectors.iceberg.commit.changes import changes_of
from spark_jobs.connectors.iceberg.commit.conflicts import KeyConflicts, refuse_conflicts
from spark_jobs.connectors.iceberg.commit.history import Gap
from spark_jobs.connectors.iceberg.commit.metadata_commits import MetadataCommits
from spark_jobs.connectors.iceberg.commit.snapshot_commit import SnapshotCommits, required_columns
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, pinned_table
from spark_jobs.connectors.iceberg.table.table_spec import evolved
from spark_jobs.connectors.shared.commit.commit_loop import before_publication, until_committed
from spark_jobs.connectors.shared.commit.refusals import READ_AGAIN
from spark_jobs.contract.properties import published_properties
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.spi.alterations import SchemaChange
from spark_jobs.spi.tables import CommittedSnapshot, TableHandle
from spark_jobs.spi.writes import Fragment, MergeWrite


@dataclass(frozen=True, slots=True)
class MergeCommit:
    """The commit of ``write``, which is based on the snapshot that its table is pinned at.

    ``properties`` are what the snapshot is to record, still without the metrics of publishing.
    """

    commits: SnapshotCommits
    write: MergeWrite
    properties: Mapping[str, str]

    def run(self, fragments: Sequence[Fragment]) -> CommittedSnapshot:
        """Publish the fragments as one snapshot.

        Raises:
            CommitError: COMMIT_CONFLICT (nothing was published) or COMMIT_OUTCOME_UNKNOWN.
            InternalError: STORAGE_UNAVAILABLE (nothing was published).
            JobError: raised by ``require_wanted`` (nothing was published).
        """
        with before_publication():
            base = pinned_table(self.commits.table)
            changes = changes_of(base, fragments, overwrites=self.write.overwrites)
            keys, gap = KeyConflicts(self.commits.table.name, base, changes), Gap(base)
        return until_committed(partial(self._attempt, keys, gap))

    def _attempt(self, keys: KeyConflicts, gap: Gap, number: int) -> CommittedSnapshot | None:
        """The new snapshot; None if another writer was faster."""
        with before_publication():
            latest = self.commits.latest()
            gap.read_up_to(latest)
            refuse_conflicts(gap, keys, self.write)
            recorded = published_properties(self.properties, number, len(gap.commits))
        return self.commits.publish(latest, keys.changes, recorded, self.write.require_wanted)


def store_schema(commits: MetadataCommits, table: TableHandle) -> None:
    """Store the schema of the evolved ``table`` unless it has it already.

    Raises:
        CommitError: COMMIT_CONFLICT: another writer changed the schema; COMMIT_OUTCOME_UNKNOWN.
        InternalError: STORAGE_UNAVAILABLE.
    """
    until_committed(partial(_attempt, commits, table))


def _attempt(commits: MetadataCommits, table: TableHandle, number: int) -> bool | None:
    """True: the table has the schema; None: others changed the table meanwhile."""
    del number
    pinned, latest = pinned_table(table), commits.table()
    before = pinned.evolved_from or pinned
    wanted = _NewSchema(table.name, table.schema_changes)
    if wanted.is_in(before, latest):
        return True
    if not wanted.fits(before, latest):
        raise CommitError(
            ErrorCode.COMMIT_CONFLICT,
            f"{table.name}: its schema changed while the statement ran.",
            READ_AGAIN,
        )
    return commits.change(latest, wanted) or None


@dataclass(frozen=True, slots=True)
class _NewSchema:
    """The schema of the table ``name`` after ``changes``. A ``Change``."""

    name: TableName
    changes: Sequence[SchemaChange]

    def __str__(self) -> str:
        return f"the schema of {self.name}"

    def updates(self, read: PinnedTable) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The columns must be those that were read."""
        from pyiceberg.table.update import AssertCurrentSchemaId

        wanted = evolved(self.name, read, self.changes)
        current: dict[str, Any] = {"current-schema-id": read.metadata.current_schema_id}
        required = (AssertCurrentSchemaId(**current), *required_columns(wanted))
        return required, wanted.schema_updates

    def is_in(self, read: PinnedTable, now: PinnedTable) -> bool:
        """Whether the table has the columns since it was read."""
        return now.fields == evolved(self.name, read, self.changes).fields

    def fits(self, read: PinnedTable, now: PinnedTable) -> bool:
        """Whether the table still has the columns that were read."""
        return _schema_ids(read) == _schema_ids(now)


def _schema_ids(table: PinnedTable) -> tuple[str, int, int]:
    """What tells that no other writer has changed the columns."""
    metadata = table.metadata
    return str(metadata.table_uuid), metadata.current_schema_id, metadata.last_column_id
