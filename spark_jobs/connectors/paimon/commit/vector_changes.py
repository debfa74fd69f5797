"""The index changes of a write, which follow compactions of other files. Driver only.

An index file has the vectors of several data files. A compaction that takes one of them moves the
vectors of the others to a new file, unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.commit.gap import Gap
from spark_jobs.connectors.paimon.commit.index_changes import (
    IndexChanges,
    index_changes,
    new_index_path,
)
from spark_jobs.connectors.paimon.format.bucket_key import BucketKey
from spark_jobs.connectors.paimon.library import index_manifest
from spark_jobs.connectors.paimon.library.index_manifest import IndexFile
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable


class VectorChanges:
    """The changes that the index files ``written`` by sinks and the files that are ``gone`` make.

    ``index_files`` are those that the changes are made for: at first those of the base, ``table``.
    The constructor and ``behind`` write new index files, named ``<prefix>…``.
    """

    def __init__(
        self,
        table: PinnedTable,
        written: Sequence[Mapping[str, Any]],
        gone: Collection[str],
        filesystem: pafs.FileSystem,
        prefix: str,
    ) -> None:
        self._table = table
        self._written = written
        self._gone = gone
        self._filesystem = filesystem
        self._prefixes = (f"{prefix}{number}-" for number in count())
        self.index_files: Sequence[IndexFile] = table.files.index_files
        self._by_bucket = self._made()

    def behind(self, gap: Gap, latest: PinnedTable) -> list[IndexChanges]:
        """The changes after ``gap``, whose last snapshot is that of ``latest``.

        They are made anew if only compactions have moved the vectors that they keep. In a table
        with fixed buckets, files of sinks may be merged into others, so that this is done only if
        sinks wrote none.
        """
        may_follow = not (self._table.bucketing.matters and self._written)
        if may_follow and self._is_moved(gap):
            for path in self._copies():
                with suppress(FileNotFoundError):
                    self._filesystem.delete_file(path)
            self.index_files = latest.files.index_files
            self._by_bucket = self._made()
        return [self._by_bucket[place] for place in sorted(self._by_bucket, key=repr)]

    def _made(self) -> Mapping[BucketKey, IndexChanges]:
        return index_changes(
            self._table,
            self.index_files,
            self._written,
            self._gone,
            (entry for _, entry in self._table.files.located_entries),
            self._filesystem,
            next(self._prefixes),
        )

    def _is_moved(self, gap: Gap) -> bool:
        """Whether compactions, and only they, replaced index files that the changes delete."""
        deleted = {
            index_manifest.index_name(entry)
            for changes in self._by_bucket.values()
            for entry in changes.deletes
        }
        moved = deleted - {index_manifest.index_name(file.entry) for file in gap.index_files}
        movers = [
            commit
            for commit in gap.commits
            if moved & {index_manifest.index_name(entry) for entry in commit.reindexed}
        ]
        return bool(moved) and all(commit.keeps_rows for commit in movers)

    def _copies(self) -> list[str]:
        """The paths of the index files that were written here, and not by sinks."""
        sinks = {document["path"].rpartition("/")[2] for document in self._written}
        return [
            new_index_path(self._table, entry)
            for changes in self._by_bucket.values()
            for entry in changes.adds
            if index_manifest.index_name(entry) not in sinks
        ]
