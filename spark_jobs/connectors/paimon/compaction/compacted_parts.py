"""What compacted parts change in a table's data and index files, and which others made void.

Driver only.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.commit.changes import added_file, added_run, place_of
from spark_jobs.connectors.paimon.commit.history import Gap
from spark_jobs.connectors.paimon.commit.index_changes import (
    IndexChanges,
    index_changes,
    new_index_path,
)
from spark_jobs.connectors.paimon.format.manifest_entries import (
    ADD,
    POSTPONED,
    BucketKey,
    bucket_key_of,
)
from spark_jobs.connectors.paimon.library import manifest_files
from spark_jobs.connectors.paimon.library.data_files import KeyRange, has_index, key_range
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.paimon.write.table_layout import NamePrefixes
from spark_jobs.connectors.shared.compaction.plan import by_partition, texts_of
from spark_jobs.contract.compaction import CompactedPartition
from spark_jobs.spi.compaction import PartResult, PublishedParts
from spark_jobs.storage.files import remove_file


@dataclass(frozen=True, slots=True)
class CompactedPart:
    """A part whose files are written, as manifest entries of the files before and after."""

    result: PartResult
    before: Sequence[Any]
    after: Sequence[Any]
    changelog: Sequence[Any]

    @classmethod
    def of(cls, table: PinnedTable, result: PartResult) -> CompactedPart:
        """The part with this ``result``; ``table`` is as it was when the part was planned.

        Raises:
            CatalogError: DATA_FILE_UNREADABLE: a file lacks a column that its schema has.
        """
        documents = [fragment.document["compacted"] for fragment in result.fragments]
        files = [index for each in documents for index in each["files"]]
        added = [file for each in documents for file in each["added"]]
        changelog = [file for each in documents for file in each["changelog"]]
        return cls(
            result,
            before=[table.files.located_entries[index][1] for index in files],
            after=[_added(table, file) for file in added],
            changelog=[added_run(table, file, is_changelog=True) for file in changelog],
        )

    @property
    def number(self) -> int:
        """The number of the part in its group."""
        return self.result.part.number

    @property
    def names_before(self) -> frozenset[str]:
        """The names of the data files that go."""
        return frozenset(entry.file.file_name for entry in self.before)

    @property
    def partitions_numbered(self) -> frozenset[tuple[Any, ...]]:
        """The partition whose postponed records got their numbers in this part, if any did."""
        places = (bucket_key_of(entry) for entry in self.before)
        return frozenset(place.partition for place in places if place.bucket == POSTPONED)

    def did(self, table: PinnedTable) -> CompactedPartition:
        """What the part did, as a share of what its partition did."""
        values = self.before[0].partition.to_dict()
        return CompactedPartition(
            values=texts_of(values),
            files_before=len(self.before),
            files_after=len(self.after),
            bytes_before=sum(entry.file.file_size for entry in self.before),
            bytes_after=sum(entry.file.file_size for entry in self.after),
            rows=sum(entry.file.row_count for entry in self.after),
            vectors_removed=len(self.names_before & table.files.vectors.keys()),
            indexes_lost=sum(has_index(entry.file) for entry in self.before),
        )


def lost_parts(gap: Gap, parts: Iterable[CompactedPart], *, keyed: bool) -> frozenset[int]:
    """The numbers of the parts that do not fit the table after the commits in ``gap``.

    Somebody removed or marked a file of theirs or, in a table with a primary key, added a file of
    a level above 0 within their keys, which must not overlap with theirs. New files of level 0,
    and those of append tables, are never in the way, unless a part has numbered postponed records:
    then the records of any file in the partition's buckets have the same numbers.
    """
    unsettled: set[str] = set()
    added: dict[BucketKey, list[KeyRange]] = defaultdict(list)
    numbered: set[tuple[Any, ...]] = set()
    for commit in gap.commits:
        unsettled |= commit.unsettled
        for entry in commit.entries if keyed else ():
            if entry.kind != ADD or entry.bucket == POSTPONED:
                continue
            numbered.add(bucket_key_of(entry).partition)
            if entry.file.level > 0:
                added[bucket_key_of(entry)].append(key_range(entry))
    return frozenset(
        part.number
        for part in parts
        if part.names_before & unsettled
        or part.partitions_numbered & numbered
        or (
            keyed
            and any(
                theirs.overlaps(own)
                for place, own in _ranges(part).items()
                for theirs in added[place]
            )
        )
    )


def published(table: PinnedTable, parts: Sequence[CompactedPart]) -> PublishedParts:
    """What the parts did together."""
    done = by_partition((part.result.part.partition, part.did(table)) for part in parts)
    return PublishedParts(done, sum(len(part.changelog) for part in parts))


def removed_entries(parts: Iterable[CompactedPart]) -> list[Any]:
    """The entries that remove the files of the parts."""
    return [manifest_files.removed_entry(entry) for part in parts for entry in part.before]


def _added(table: PinnedTable, file: Mapping[str, Any]) -> Any:
    if "run" in file:
        return added_run(table, file)
    low, high = file["numbers"]
    return added_file(table, place_of(file), file, (low, high), is_compacted=True)


def _ranges(part: CompactedPart) -> Mapping[BucketKey, KeyRange]:
    """The range of keys from the first to the last of the part's files, in each bucket."""
    files: dict[BucketKey, list[KeyRange]] = defaultdict(list)
    for entry in (*part.before, *part.after):
        files[bucket_key_of(entry)].append(key_range(entry))
    return {
        place: KeyRange(min(each.first for each in found), max(each.last for each in found))
        for place, found in files.items()
    }


class KeptVectors:
    """The index changes of the attempts to publish; only the files of the last attempt stay."""

    def __init__(self, filesystem: pafs.FileSystem) -> None:
        self._filesystem = filesystem
        self._made_for: tuple[Any, ...] = ()
        self._changes = IndexChanges()
        self._paths: list[str] = []

    def changes(self, latest: PinnedTable, removed: Iterable[Any]) -> IndexChanges:
        """The changes of the index files of ``latest`` when the ``removed`` entries' files go."""
        entries = list(removed)
        gone = frozenset(entry.file.file_name for entry in entries)
        snapshot = latest.snapshot
        made_for = (snapshot.index_manifest if snapshot else None, gone)
        if made_for != self._made_for:
            self.remove()
            self._changes = self._without(latest, gone, entries)
            self._made_for = made_for
        return self._changes

    def remove(self) -> None:
        """Remove the files, which no snapshot refers to."""
        for path in self._paths:
            remove_file(self._filesystem, path)
        self._paths, self._made_for = [], ()

    def _without(
        self, latest: PinnedTable, gone: Collection[str], entries: Iterable[Any]
    ) -> IndexChanges:
        prefix = NamePrefixes.of(latest, str(uuid.uuid4())).indexes
        by_bucket = index_changes(
            latest, latest.files.index_files, (), gone, entries, self._filesystem, prefix
        )
        changes = IndexChanges()
        for place in sorted(by_bucket, key=repr):
            changes.adds += by_bucket[place].adds
            changes.deletes += by_bucket[place].deletes
        self._paths = [new_index_path(latest, entry) for entry in changes.adds]
        return changes
