"""The changes that a write makes to a table, from the documents of its tasks. Driver only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.commit.history import Gap
from spark_jobs.connectors.paimon.commit.index_changes import VectorChanges, hash_index_changes
from spark_jobs.connectors.paimon.commit.new_snapshot import Change
from spark_jobs.connectors.paimon.format.manifest_entries import (
    BucketKey,
    SequenceNumbers,
    bucket_key_of,
    numbers_of,
)
from spark_jobs.connectors.paimon.format.row_tracking import (
    ROW_ID,
    SEQUENCE_NUMBER,
    stored_numbers,
    stores_ids,
)
from spark_jobs.connectors.paimon.keyed.run_writer import WrittenRun
from spark_jobs.connectors.paimon.library import data_files, manifest_files
from spark_jobs.connectors.paimon.library.data_files import new_keyed_file
from spark_jobs.connectors.paimon.library.index_manifest import IndexFile
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.datafiles.statistics import ColumnStatistics
from spark_jobs.datafiles.values import decode_value
from spark_jobs.errors import CatalogError, ErrorCode, InternalError
from spark_jobs.spi.writes import Fragment


class Changes:
    """The change that a write makes, whichever snapshot it will follow.

    The constructor writes new index files, named ``<index_prefix>…``.
    """

    def __init__(
        self,
        table: PinnedTable,
        fragments: Sequence[Fragment],
        filesystem: pafs.FileSystem,
        index_prefix: str,
        *,
        overwrites: bool = False,
    ) -> None:
        """Take the fragments of a write that is based on the snapshot of ``table``.

        Raises:
            InternalError: two fragments change the same file.
        """
        documents = [fragment.document for fragment in fragments]
        indexes = [document["index"] for document in documents if "index" in document]
        self._table = table
        self._changelog = [each["changelog"] for each in documents if "changelog" in each]
        self._files = [document for document in documents if "removed" in document]
        self._columns = [each["column_file"] for each in documents if "column_file" in each]
        self._overwrites = overwrites
        _require_each_file_once(self._files, indexes, self._columns)
        gone = {
            entry.file.file_name
            for removing in self._files
            if _removes(removing)
            for entry in table.files.unit_entries(removing["removed"])
        }
        self._vectors = VectorChanges(table, indexes, gone, filesystem, index_prefix)
        hash_indexes = [each["hash_index"] for each in documents if "hash_index" in each]
        self._hash_index = hash_index_changes(table, hash_indexes, gone, overwrites=overwrites)

    @property
    def index_files(self) -> Sequence[IndexFile]:
        """The index files that the last change was made for."""
        return self._vectors.index_files

    def behind(self, gap: Gap, latest: PinnedTable) -> Change:
        """The change to commit after ``gap``, whose last snapshot is that of ``latest``."""
        base = [entry for _, entry in self._table.files.located_entries]
        ordered = self._table.bucketing.matters
        numbers = SequenceNumbers([*base, *gap.added], ordered=ordered)
        entries = [entry for each in self._files for entry in self._entries(each, numbers)]
        entries += [added_columns(self._table, each) for each in self._columns]
        of_indexes = [*self._vectors.behind(gap, latest), self._hash_index]
        return Change(
            entries=sorted(entries, key=lambda entry: repr(bucket_key_of(entry))),
            index_adds=[each for index in of_indexes for each in index.adds],
            index_deletes=[each for index in of_indexes for each in index.deletes],
            overwrites=self._overwrites,
            changelog=[added_run(self._table, each, is_changelog=True) for each in self._changelog],
        )

    def _entries(self, document: Mapping[str, Any], numbers: SequenceNumbers) -> list[Any]:
        """The manifest entries of a file that was added, removed or replaced."""
        file = document["added"]
        if not _removes(document):
            if "run" in file:
                return [added_run(self._table, file)]
            place = place_of(file)
            own = numbers.of_new_file(place, file["rows"])
            return [added_file(self._table, place, file, own)]
        entries = self._table.files.unit_entries(document["removed"])
        removed = [manifest_files.removed_entry(entry) for entry in entries]
        if file is None:
            return removed
        (entry,) = entries
        new = added_file(self._table, bucket_key_of(entry), file, numbers_of(entry))
        return [*removed, new]


def partitions_of(table: PinnedTable, fragments: Sequence[Fragment]) -> list[dict[str, Any]]:
    """Values by partition column, for each file that is added, removed or has rows changed."""
    partitions = []
    for document in (fragment.document for fragment in fragments):
        if "changelog" in document or "hash_index" in document:
            continue
        if "index" in document:
            ordinals = [vector[0] for vector in document["index"]["vectors"]]
        elif "column_file" in document:
            ordinals = [document["column_file"]["range"]]
        elif _removes(document):
            ordinals = [document["removed"]]
        else:
            ordinals = []
            partitions.append(list(map(decode_value, document["added"]["partition"])))
        entries = [table.files.unit_entries(ordinal)[0] for ordinal in ordinals]
        partitions += [list(entry.partition.values) for entry in entries]
    names = table.schema.partition_keys
    return [dict(zip(names, values, strict=True)) for values in partitions]


def _removes(document: Mapping[str, Any]) -> bool:
    return document["removed"] is not None


def _require_each_file_once(
    files: Sequence[Mapping[str, Any]],
    indexes: Sequence[Mapping[str, Any]],
    columns: Sequence[Mapping[str, Any]],
) -> None:
    """Check that files are removed or marked once; the same for ranges, and for their columns."""
    removed = [file["removed"] for file in files if file["removed"] is not None]
    marked = Counter([*removed, *(vector[0] for index in indexes for vector in index["vectors"])])
    assigned = Counter([*removed, *(file["range"] for file in columns)])
    if any(count > 1 for counts in (marked, assigned) for count in counts.values()):
        raise InternalError(
            ErrorCode.INTERNAL_ERROR,
            "A file was changed by two tasks.",
            "This is a defect: report it with the statement.",
        )


def place_of(file: Mapping[str, Any]) -> BucketKey:
    """The partition and bucket in the document of a file."""
    return BucketKey(tuple(map(decode_value, file["partition"])), file["bucket"])


def added_run(table: PinnedTable, file: Mapping[str, Any], *, is_changelog: bool = False) -> Any:
    """The entry that adds a file of a table with a primary key."""
    place = place_of(file)
    new = new_keyed_file(
        table.table,
        WrittenRun.from_json(file["run"]),
        file["level"],
        is_external=table.external is not None,
        is_changelog=is_changelog,
    )
    buckets = table.bucketing.total(place.partition)
    return manifest_files.added_entry(table.table, place, new, buckets)


def added_file(
    table: PinnedTable,
    place: BucketKey,
    file: Mapping[str, Any],
    numbers: tuple[int, int],
    *,
    is_compacted: bool = False,
) -> Any:
    """The entry that adds a file of an append table, whose rows have the sequence ``numbers``.

    If the file stores numbers itself, it has those.

    Raises:
        CatalogError: DATA_FILE_UNREADABLE: the file that it replaces lacked a column.
    """
    statistics = {
        name: ColumnStatistics.from_json(each) for name, each in file["statistics"].items()
    }
    path, size, rows = file["path"], file["size"], file["rows"]
    missing = [c.name for c in table.schema.columns if c.name not in statistics]
    if missing:
        raise CatalogError(
            ErrorCode.DATA_FILE_UNREADABLE,
            f"the file that {path} replaces has no column {missing[0]}, which its schema has",
            "Look for who changed the file or the schema; this statement changed nothing.",
        )
    stored = None
    if stores_ids(statistics):
        _require_ids(path, statistics)
        stored = [*(column.name for column in table.schema.columns), ROW_ID, SEQUENCE_NUMBER]
        numbers = stored_numbers(statistics)
    new = data_files.new_data_file(
        table.table,
        path,
        size,
        rows,
        statistics,
        numbers,
        is_external=table.external is not None,
        is_compacted=is_compacted,
        stored_columns=stored,
    )
    buckets = table.bucketing.total(place.partition)
    return manifest_files.added_entry(table.table, place, new, buckets)


def added_columns(table: PinnedTable, file: Mapping[str, Any]) -> Any:
    """The entry that adds a file of new values of some columns, from its document."""
    anchor = table.files.unit_entries(file["range"])[0]
    statistics = {
        name: ColumnStatistics.from_json(each) for name, each in file["statistics"].items()
    }
    new = data_files.new_data_file(
        table.table,
        file["path"],
        file["size"],
        file["rows"],
        statistics,
        is_external=table.external is not None,
        stored_columns=[each.name for each in table.schema.columns if each.name in statistics],
        first_row_id=anchor.file.first_row_id,
    )
    place = bucket_key_of(anchor)
    return manifest_files.added_entry(table.table, place, new, anchor.total_buckets)


def _require_ids(path: str, statistics: Mapping[str, ColumnStatistics]) -> None:
    """Check that every row of a new file has an id.

    Raises:
        CatalogError: DATA_FILE_UNREADABLE.
    """
    if statistics[ROW_ID].null_count:
        raise CatalogError(
            ErrorCode.DATA_FILE_UNREADABLE,
            f"a file whose rows {path} takes lacks the ids of {statistics[ROW_ID].null_count} rows "
            f"(column {ROW_ID})",
            "Look for who wrote the file; this statement changed nothing.",
        )
