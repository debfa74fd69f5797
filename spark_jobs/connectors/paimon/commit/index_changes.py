"""The index files that a write adds and removes: deletion vectors and the HASH index.

Driver only. An index file has the vectors of several data files. A compaction that takes one of
them moves the vectors of the others to a new file, unchanged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.commit.history import Gap
from spark_jobs.connectors.paimon.format.manifest_entries import BucketKey, bucket_key_of
from spark_jobs.connectors.paimon.format.vectors import VectorLocation, VectorRange, copied_index
from spark_jobs.connectors.paimon.library import index_manifest
from spark_jobs.connectors.paimon.library.index_manifest import DELETION_VECTORS, IndexFile
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.datafiles.values import decode_value
from spark_jobs.errors import ErrorCode, InternalError

Vectors = Mapping[str, VectorLocation]


@dataclass(slots=True)
class IndexChanges:
    """The changes of one bucket, as index manifest entries (objects of pypaimon)."""

    adds: list[Any] = field(default_factory=list)
    deletes: list[Any] = field(default_factory=list)


class _NewIndex(NamedTuple):
    """A new index file; ``vectors`` are by name of the data file."""

    path: str
    size: int
    vectors: Mapping[str, VectorRange]

    def locations(self) -> Vectors:
        """The locations of the vectors, by name of the data file."""
        return {
            name: VectorLocation(self.path, each.offset, each.length, each.cardinality or 0)
            for name, each in self.vectors.items()
        }


def new_index_path(table: PinnedTable, entry: Any) -> str:
    """The path of a new index file, other than those of sinks."""
    directory = index_manifest.index_directory(table.table)
    folder = directory or table.files.bucket_directory(bucket_key_of(entry))
    return f"{folder}/{index_manifest.index_name(entry)}"


def index_changes(
    table: PinnedTable,
    index_files: Sequence[IndexFile],
    written: Iterable[Mapping[str, Any]],
    gone: Collection[str],
    entries: Iterable[Any],
    filesystem: pafs.FileSystem,
    prefix: str,
) -> dict[BucketKey, IndexChanges]:
    """The changes of ``index_files``, by bucket, given those ``written`` by the sinks.

    ``entries`` are the manifest entries of at least all data files that are changed or ``gone``.
    An index file is replaced if it has the vector of a data file that is ``gone`` or has a new
    vector. Its other vectors are copied to a new file, whose name starts with ``prefix``. A bucket
    gets one file with all its vectors, because Paimon's Java writers keep only one per bucket when
    they write the next one (``IndexManifestFileHandler.BucketedCombiner``).
    """
    new: dict[BucketKey, list[_NewIndex]] = defaultdict(list)
    for document in written:
        place, index = _new_index(table, document)
        new[place].append(index)
    touched = {*gone, *(name for each in new.values() for index in each for name in index.vectors)}
    old = _replaced(table, index_files, touched, new)
    partitions = {
        bucket_key_of(entry): entry.partition
        for entry in entries
        if entry.file.file_name in touched
    }
    numbers = count()
    changes: dict[BucketKey, IndexChanges] = defaultdict(IndexChanges)
    for place in {*new, *old}:
        kept = [_kept(file, touched) for file in old[place]]
        copies, taken = (_in_one if table.bucketing.matters else _apart)(kept, new[place])
        directory = index_manifest.index_directory(table.table) or table.files.bucket_directory(
            place
        )
        for vectors in filter(None, copies):
            path = f"{directory}/{prefix}copy-{next(numbers)}"
            taken = [*taken, _NewIndex(path, *copied_index(filesystem, path, vectors))]
        for index in new[place]:
            if index not in taken:
                filesystem.delete_file(index.path)
        changes[place].deletes += [index_manifest.removed_index(file.entry) for file in old[place]]
        changes[place].adds += [
            index_manifest.new_vector_index(partitions[place], place.bucket, *index)
            for index in taken
        ]
    return changes


def _new_index(table: PinnedTable, document: Mapping[str, Any]) -> tuple[BucketKey, _NewIndex]:
    """The bucket of an index file that a sink wrote, and the file."""
    entries = {each[0]: table.files.unit_entries(each[0])[0] for each in document["vectors"]}
    vectors = {
        entries[ordinal].file.file_name: VectorRange(*where)
        for ordinal, *where in document["vectors"]
    }
    places = {bucket_key_of(entry) for entry in entries.values()}
    if len(places) > 1:
        raise InternalError(
            ErrorCode.INTERNAL_ERROR,
            "An index file has vectors of several buckets.",
            "This is a defect: report it with the statement.",
        )
    return places.pop(), _NewIndex(document["path"], document["size"], vectors)


def _replaced(
    table: PinnedTable,
    index_files: Sequence[IndexFile],
    touched: Collection[str],
    new: Collection[BucketKey],
) -> dict[BucketKey, list[IndexFile]]:
    """The index files that are replaced, by bucket."""
    hit = [file for file in index_files if not file.vectors.keys().isdisjoint(touched)]
    if table.bucketing.matters:
        changed = {*new, *(bucket_key_of(file.entry) for file in hit)}
        of_vectors = (file for file in index_files if file.kind == DELETION_VECTORS)
        hit = [file for file in of_vectors if bucket_key_of(file.entry) in changed]
    replaced: dict[BucketKey, list[IndexFile]] = defaultdict(list)
    for file in hit:
        replaced[bucket_key_of(file.entry)].append(file)
    return replaced


def _kept(file: IndexFile, touched: Collection[str]) -> Vectors:
    return {
        name: VectorLocation(file.path, each.offset, each.length, each.cardinality or 0)
        for name, each in file.vectors.items()
        if name not in touched
    }


def _apart(
    kept: Sequence[Vectors], new: Sequence[_NewIndex]
) -> tuple[Sequence[Vectors], Sequence[_NewIndex]]:
    """The vectors to copy, grouped by new file, and the sinks' files to keep as they are."""
    return kept, new


def _in_one(
    kept: Sequence[Vectors], new: Sequence[_NewIndex]
) -> tuple[Sequence[Vectors], Sequence[_NewIndex]]:
    """The same as ``_apart``, but all vectors end up in one file."""
    merged = {name: each for vectors in kept for name, each in vectors.items()}
    if len(new) == 1 and not merged:
        return [], new
    for index in new:
        merged |= index.locations()
    return [merged], []


def hash_index_changes(
    table: PinnedTable,
    written: Iterable[Mapping[str, Any]],
    gone: Collection[str],
    *,
    overwrites: bool,
) -> IndexChanges:
    """The changes of the index, given the index files ``written`` by the sinks.

    A new file replaces its bucket's old one. Where a statement ``overwrites`` a partition, the
    files of buckets of which all data files are ``gone`` go as well.
    """
    changes = IndexChanges()
    places = set()
    for document in written:
        place = BucketKey(tuple(map(decode_value, document["partition"])), document["bucket"])
        places.add(place)
        changes.adds.append(
            index_manifest.new_hash_index(
                table.table, place, document["path"], document["size"], document["hashes"]
            )
        )
    if overwrites:
        places |= _emptied(table, {place.partition for place in places}, gone)
    old = table.files.hash_indexes
    removed = [old[place].entry for place in sorted(places & old.keys(), key=repr)]
    changes.deletes += map(index_manifest.removed_index, removed)
    return changes


def _emptied(
    table: PinnedTable, written: Collection[tuple[Any, ...]], gone: Collection[str]
) -> set[BucketKey]:
    """The buckets without a data file in the partitions that were ``written`` or lost files."""
    live, touched = set(), set(written)
    for _, entry in table.files.located_entries:
        place = bucket_key_of(entry)
        if entry.file.file_name in gone:
            touched.add(place.partition)
        else:
            live.add(place)
    return {
        place
        for place in table.files.hash_indexes
        if place.partition in touched and place not in live
    }


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
