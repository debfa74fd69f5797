"""Detects conflicts with commits since the base (rule 12 of docs/semantics.md). Driver only.

Everything that the write removes must still be there, without new deletes, under either isolation.
Deletes by value count if a row has the value: in a changed file, or among the new rows of a
statement that may have read such rows. Under ``serializable``, nothing in the statement's read set
may have changed; compactions do not count, because they change files, not rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from spark_jobs.connectors.iceberg.commit.gap import Gap
from spark_jobs.connectors.iceberg.commit.key_conflicts import KeyConflicts
from spark_jobs.connectors.iceberg.read.planning import described_files
from spark_jobs.connectors.iceberg.table.commits import OtherCommit, summary_of
from spark_jobs.connectors.iceberg.table.live_files import may_apply
from spark_jobs.connectors.iceberg.table.manifests import DATA, ManifestEntry
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.connectors.iceberg.write.table_layout import isolation, statement_of
from spark_jobs.connectors.shared.commit import refusals
from spark_jobs.spi.writes import MergeWrite

# What the first commit to a table of version 3 changes.
CHANGED_IDS: Final = "the ids of rows that the statement stores again"


def refuse_conflicts(gap: Gap, keys: KeyConflicts, write: MergeWrite) -> None:
    """Refuse to publish the changes of ``keys``, made for the snapshot of its table, after ``gap``.

    Raises:
        CommitError: COMMIT_CONFLICT; names the conflicting snapshot.
    """
    table, changes = keys.table, keys.changes
    known = {each.entry.path: each.entry for each in table.files}
    if changes.touched and gap.commits and may_have_got_ids(table):
        raise refusals.conflict(gap.commits[0], CHANGED_IDS)
    is_serializable = (write.isolation or isolation(table, statement_of(write))) == "serializable"
    for commit in gap.commits:
        refusals.refuse_own_commit(
            commit.snapshot.snapshot_id, commit.operation_id, write.operation
        )
        refusals.refuse_moved_mark(
            commit.snapshot.snapshot_id, summary_of(commit.snapshot), write.operation
        )
        lost = [each for each in commit.removed if each.key in changes.removed]
        gone = {each.key for each in commit.removed} & {each.key for each in changes.touched}
        deleted = commit.equality_deletes
        if lost or gone or _with_new_deletes(table, commit, changes.touched):
            raise refusals.conflict(commit, refusals.CHANGED_FILES)
        if deleted:
            may_have_read = bool(write.read_set(described_files(table, deleted)))
            if keys.found(commit, among_added=may_have_read):
                raise refusals.conflict(commit, refusals.CHANGED_FILES)
        if is_serializable and not _keeps_rows(commit, known):
            touched = [*commit.data_files, *deleted]
            touched += _with_new_deletes(table, commit, known.values())
            if write.read_set(described_files(table, touched)):
                raise refusals.conflict(commit, refusals.READ_ROWS)
        known |= {each.path: each for each in commit.added if each.content == DATA}


def may_have_got_ids(table: PinnedTable) -> bool:
    """Whether rows of a base without ids get ids by any later commit: those must not be lost."""
    return table.has_vectors and not table.has_lineage


def _keeps_rows(commit: OtherCommit, known: Mapping[str, ManifestEntry]) -> bool:
    """Whether a compaction only moved rows; its delete files are then of files that it wrote."""
    return commit.keeps_rows and not any(
        each.record.get("referenced_data_file") in known for each in commit.position_deletes
    )


def _with_new_deletes(
    table: PinnedTable, commit: OtherCommit, files: Iterable[ManifestEntry]
) -> Sequence[ManifestEntry]:
    """The files to which position deletes of the commit may apply."""
    if not commit.position_deletes:
        return ()
    everywhere = table.unpartitioned
    return [
        file
        for file in files
        if any(may_apply(delete, file, everywhere) for delete in commit.position_deletes)
    ]
