"""Cleaning up after a merge that was not published. Driver only."""

from __future__ import annotations

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.commit.begin_merge import PaimonMerge
from spark_jobs.connectors.paimon.commit.find_commit import find_commit
from spark_jobs.connectors.paimon.commit.guard import guard_of
from spark_jobs.connectors.paimon.library import index_manifest, manifest_files, stored_snapshots
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.errors import CommitError
from spark_jobs.spi.tables import CommittedSnapshot, TableHandle
from spark_jobs.storage.removal import remove_with_prefixes


def abort_merge(filesystem: pafs.FileSystem, table: TableHandle, begun: PaimonMerge) -> None:
    """Remove every file of the write, whether or not a fragment names it, and the guard.

    The guard stays if another try of the operation committed a snapshot, or may have committed one
    that has expired. Nothing is removed if the operation's snapshot turns out to hold this write.
    """
    target = pinned_table(table)
    try:
        commit = find_commit(filesystem, table, begun.operation_id)
        needs_guard = commit is not None
    except CommitError:
        # This write certainly did not make any of the expired snapshots.
        commit, needs_guard = None, not begun.is_first
    prefixes = begun.prefixes
    if commit is not None and _has_files(target, commit, prefixes):
        return
    for root in (target.path, *(target.external.roots if target.external else ())):
        remove_with_prefixes(filesystem, root, prefixes)
    if not needs_guard:
        guard_of(filesystem, target, begun.operation_id).release()


def _has_files(table: PinnedTable, commit: CommittedSnapshot, prefixes: tuple[str, ...]) -> bool:
    """Whether the commit brought files whose names have one of these prefixes."""
    snapshot = stored_snapshots.find_snapshot(table.table, commit.snapshot_id)
    if snapshot is None:
        return True
    entries = manifest_files.changed_entries(table.table, snapshot)
    indexes = index_manifest.index_files(table.table, snapshot)
    names = [entry.file.file_name for entry in entries]
    names += [index_manifest.index_name(index.entry) for index in indexes]
    return any(name.startswith(prefixes) for name in names)
