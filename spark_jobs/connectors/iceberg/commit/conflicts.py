"""Detects conflicts with commits since the base (rule 12 of docs/semantics.md). Driver only.

Everything that the write removes must still be there, without new deletes, under either isolation.
Under ``serializable``, nothing in the statement's read set may have changed; compactions do not
count, because they change files, not rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from spark_jobs.connectors.iceberg.commit.changes import Changes
from spark_jobs.connectors.iceberg.commit.gap import Gap, OtherCommit
from spark_jobs.connectors.iceberg.read.planning import described_files
from spark_jobs.connectors.iceberg.table.live_files import may_apply
from spark_jobs.connectors.iceberg.table.manifests import DATA, ManifestEntry
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.connectors.iceberg.write.table_layout import isolation, statement_of
from spark_jobs.connectors.shared.commit import refusals
from spark_jobs.spi.writes import MergeWrite

# What the first commit to a table of version 3 changes.
CHANGED_IDS: Final = "the ids of rows that the statement stores again"


def refuse_conflicts(table: PinnedTable, gap: Gap, changes: Changes, write: MergeWrite) -> None:
    """Refuse to publish ``changes``, which were made for the snapshot of ``table``, after ``gap``.

    Raises:
        CommitError: COMMIT_CONFLICT; names the conflicting snapshot.
    """
    known = {each.entry.path: each.entry for each in table.files}
    if changes.touched and gap.commits and may_have_got_ids(table):
        raise refusals.conflict(gap.commits[0], CHANGED_IDS)
    is_serializable = (write.isolation or isolation(table, statement_of(write))) == "serializable"
    for commit in gap.commits:
        refusals.refuse_own_commit(
            commit.snapshot.snapshot_id, commit.operation_id, write.operation
        )
        lost = [each for each in commit.removed if each.key in changes.removed]
        gone = {each.key for each in commit.removed} & {each.key for each in changes.touched}
        if lost or gone or _with_new_deletes(table, commit, changes.touched):
            raise refusals.conflict(commit, refusals.CHANGED_FILES)
        if is_serializable and not _keeps_rows(commit, known):
            touched = [*commit.data_files, *_with_new_deletes(table, commit, known.values())]
            if write.read_set(described_files(table, touched)):
                raise refusals.conflict(commit, refusals.READ_ROWS)
        known |= {each.path: each for each in commit.added if each.content == DATA}


def may_have_got_ids(table: PinnedTable) -> bool:
    """Whether rows of a base without ids get ids by any later commit: those must not be lost."""
    return table.has_vectors and not table.has_lineage


def _keeps_rows(commit: OtherCommit, known: Mapping[str, ManifestEntry]) -> bool:
    """Whether a compaction only moved rows; its delete files are then of files that it wrote."""
    return commit.keeps_rows and not any(
        each.record.get("referenced_data_file") in known for each in commit.delete_files
    )


def _with_new_deletes(
    table: PinnedTable, commit: OtherCommit, files: Iterable[ManifestEntry]
) -> Sequence[ManifestEntry]:
    if not commit.delete_files:
        return ()
    everywhere = table.unpartitioned
    return [
        file
        for file in files
        if any(may_apply(delete, file, everywhere) for delete in commit.delete_files)
    ]
