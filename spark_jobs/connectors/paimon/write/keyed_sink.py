"""The executor half of a write to a table with a primary key. Never imports a table library.

Change rows arrive by partition, bucket and key. They are appended to their bucket as records of
level 0, or the sections that they fall in are rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from spark_jobs.connectors.paimon.format.buckets import BUCKET_COLUMN
from spark_jobs.connectors.paimon.format.manifest_entries import POSTPONED, BucketKey
from spark_jobs.connectors.paimon.keyed.bucket_index import (
    BucketIndex,
    BucketIndexes,
    require_own_rows,
)
from spark_jobs.connectors.paimon.keyed.bucket_rewriter import BucketRewriter, Section
from spark_jobs.connectors.paimon.keyed.changed_rows import BucketAppender, ChangedRows
from spark_jobs.connectors.paimon.keyed.changelog import Changelog, ChangelogFiles
from spark_jobs.connectors.paimon.keyed.file_columns import POSITION
from spark_jobs.connectors.paimon.keyed.key_order import equal_to_previous
from spark_jobs.connectors.paimon.keyed.run_writer import SortedRunWriter, WrittenRun
from spark_jobs.connectors.paimon.keyed.section_reader import SectionReader
from spark_jobs.connectors.paimon.write.file_layout import NewFileLayout, PaimonTaskFiles
from spark_jobs.contract.sql_text import sql_conditions
from spark_jobs.datafiles.row_id import FILE_FIELD, POSITION_FIELD
from spark_jobs.datafiles.runs import codes_of, runs_of_equal
from spark_jobs.datafiles.values import encode_value
from spark_jobs.errors import DataError, ErrorCode, InternalError, NotSupportedError
from spark_jobs.spi.writes import Fragment, InsertedKeys

_NAMED_KEYS = 3
_LEVEL_0 = 0


class Bucket(NamedTuple):
    """A bucket at the base snapshot; its ``sections`` are in key order.

    ``newest`` is the largest sequence number of all its files, -1 without any. ``is_pending``: it
    has records that batch readers do not see yet.
    """

    sections: tuple[Section, ...] = ()
    newest: int = -1
    is_pending: bool = False


@dataclass(frozen=True, slots=True)
class KeyedSinkFactory:
    """Makes the sinks of one write.

    ``name_prefix`` begins the names of all data files that sinks of this write create, and of no
    other files. ``appends``: changes become records of level 0; otherwise sections are rewritten
    into files of ``level``, and changes recorded in files of ``changelog``, unless it is None.
    ``buckets`` has all buckets with files, and a bucket ``POSTPONED`` for the records of a
    partition that wait for their bucket. ``indexes``: buckets are dynamic. ``assigned_columns`` is
    indexed by case number.
    """

    name_prefix: str
    layout: NewFileLayout
    reader: SectionReader
    appends: bool
    level: int
    inserted_keys: InsertedKeys
    assigned_columns: tuple[tuple[str, ...], ...]
    buckets: Mapping[BucketKey, Bucket]
    changelog: ChangelogFiles | None = None
    indexes: BucketIndexes | None = None

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """The names of the partition columns."""
        return tuple(key.name for key in self.layout.partitions.keys)

    def open(self, task_key: str) -> KeyedSink:
        """A sink with unique file names; ``task_key`` differs between attempts of a task."""
        return KeyedSink(self, task_key)


class KeyedSink:
    """Stores the change rows of one task."""

    def __init__(self, factory: KeyedSinkFactory, task_key: str) -> None:
        self._factory = factory
        self._files = PaimonTaskFiles(factory.layout, task_key)
        self._fragments: list[Fragment] = []
        self._held: pa.Table | None = None
        self._open: _OpenBucket | None = None
        self._done: set[BucketKey] = set()
        self._identity = [*factory.partition_keys, BUCKET_COLUMN, *factory.reader.schema.key]

    def store_merged_rows(self, batch: pa.RecordBatch) -> None:
        """Take change rows by partition, bucket and key.

        Raises:
            DataError: DUPLICATE_KEY_INSERT, or a value that cannot be stored.
            NotSupportedError: a bucket has records that batch readers do not see yet, or whose
                changelog is still owed.
        """
        rows = pa.table(batch)
        if self._held is not None:
            rows = pa.concat_tables([self._held, rows])
        last = int(np.flatnonzero(~equal_to_previous(rows, self._identity))[-1])
        # The next batch may have further changes of the last key.
        self._held = rows.slice(last)
        self._take(rows.slice(0, last))

    def finish(self) -> list[Fragment]:
        """Write out what is pending; a fragment for each file added and each section removed."""
        if self._held is not None:
            self._take(self._held)
            self._held = None
        self._close_bucket()
        return self._fragments

    def abort(self) -> None:
        """Remove all files of this sink."""
        if self._open is not None:
            self._open.close_quietly()
        self._files.remove()

    def read_row(self, row_id: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
        """The values of ``columns`` in the target row, as Python values.

        Raises:
            InternalError: there is no such row.
        """
        sections = (each for bucket in self._factory.buckets.values() for each in bucket.sections)
        section = next(each for each in sections if each.ordinal == row_id[FILE_FIELD])
        for window in self._factory.reader.rows(section.files, list(columns)):
            matches = np.flatnonzero(window.column(POSITION).to_numpy() == row_id[POSITION_FIELD])
            if len(matches):
                (row,) = window.select(list(columns)).slice(int(matches[0]), 1).to_pylist()
                return dict(row)
        raise InternalError(
            ErrorCode.INTERNAL_ERROR,
            "A row that more than one source row applies to is not where it was read.",
            "This is a defect: report it with the statement.",
        )

    def _take(self, rows: pa.Table) -> None:
        for cluster, changes in self._by_bucket(rows):
            if self._open is None or self._open.cluster != cluster:
                self._close_bucket()
                self._open = self._opened(cluster, cluster)
            if self._refuses_repeated:
                self._require_different_keys(changes)
            self._apply(self._open, changes)

    def _apply(self, opened: _OpenBucket, changes: pa.Table) -> None:
        """Apply changes to the open bucket, and those that it does not take to the next ones."""
        if opened.bucket_index is None:
            opened.changes.apply(changes)
            return
        bucket = self._factory.buckets.get(opened.place, Bucket())
        require_own_rows({section.ordinal for section in bucket.sections}, opened.place, changes)
        taken = opened.bucket_index.take(changes)
        if taken:
            opened.changes.apply(changes.slice(0, taken))
        if taken < changes.num_rows:
            self._close_bucket()
            self._open = self._opened(opened.bucket_index.next_place, opened.cluster)
            self._apply(self._open, changes.slice(taken))

    def _by_bucket(self, rows: pa.Table) -> Iterator[tuple[BucketKey, pa.Table]]:
        names = self._factory.partition_keys
        keys = [*map(codes_of, map(rows.column, names)), rows.column(BUCKET_COLUMN).to_numpy()]
        for start, end in runs_of_equal(rows.num_rows, keys):
            values = tuple(rows.column(name)[start].as_py() for name in names)
            yield BucketKey(values, int(keys[-1][start])), rows.slice(start, end - start)

    def _opened(self, place: BucketKey, cluster: BucketKey) -> _OpenBucket:
        factory = self._factory
        bucket = factory.buckets.get(place, Bucket())
        if place in self._done:
            raise InternalError(
                ErrorCode.INTERNAL_ERROR,
                "The sink's rows are not in the order of its layout.",
                "This is a defect: report it with the statement.",
            )
        self._done.add(place)
        waiting = place._replace(bucket=POSTPONED)
        if waiting in factory.buckets:
            raise pending_records(factory.partition_keys, waiting)
        if bucket.is_pending:
            raise pending_records(factory.partition_keys, place)
        schema = factory.reader.schema
        directory = factory.layout.folder(place)
        writer = SortedRunWriter(
            factory.layout.files,
            schema.key,
            schema.thin,
            lambda: self._files.data_path(factory.name_prefix, directory),
        )
        index = None if factory.indexes is None else BucketIndex(factory.indexes, place)
        if factory.appends:
            appender = BucketAppender(schema, bucket.newest + 1, writer)
            return _OpenBucket(cluster, place, writer, appender, index)
        changed_rows = ChangedRows(
            schema,
            factory.partition_keys,
            factory.assigned_columns,
            factory.inserted_keys,
            max(bucket.newest, 0),
        )
        changelog = self._new_changelog(directory)
        rewriter = BucketRewriter(bucket.sections, factory.reader, changed_rows, writer, changelog)
        return _OpenBucket(cluster, place, writer, rewriter, index, changelog)

    def _new_changelog(self, directory: str) -> Changelog | None:
        schema, files = self._factory.reader.schema, self._factory.changelog
        if files is None:
            return None
        writer = SortedRunWriter(
            replace(self._factory.layout.files, compression=files.compression),
            schema.key,
            schema.thin,
            lambda: self._files.data_path(files.name_prefix, directory),
            is_changelog=True,
        )
        return Changelog(schema, files, writer)

    def _close_bucket(self) -> None:
        if self._open is None:
            return
        place, changes = self._open.place, self._open.changes
        changes.finish()
        level = _LEVEL_0 if self._factory.appends else self._factory.level
        for run in self._open.writer.finish():
            document = {"removed": None, "added": run_document(run, place, level)}
            self._fragments.append(Fragment(document, files_added=1, bytes_added=run.size))
        if self._open.changelog is not None:
            for run in self._open.changelog.writer.finish():
                self._fragments.append(Fragment({"changelog": run_document(run, place, level)}))
        if isinstance(changes, BucketRewriter):
            self._fragments += _removals(changes)
        self._finish_index(self._open)
        self._open = None

    def _finish_index(self, opened: _OpenBucket) -> None:
        indexes = self._factory.indexes
        if opened.bucket_index is None or indexes is None:
            return
        directory = indexes.directory or self._factory.layout.folder(opened.place)
        new_path = partial(self._files.new_path, indexes.name_prefix, directory)
        document = opened.bucket_index.finish(new_path)
        if document is not None:
            fragment = Fragment({"hash_index": document}, bytes_added=document["size"])
            self._fragments.append(fragment)

    @property
    def _refuses_repeated(self) -> bool:
        """Whether equal keys among inserted rows are an error, because none of them is newer."""
        engine = self._factory.reader.schema.engine
        is_upsert = self._factory.inserted_keys is InsertedKeys.UPSERTED
        return (
            is_upsert
            and engine.kind in ("deduplicate", "first-row")
            and not (engine.sequence_fields)
        )

    def _require_different_keys(self, changes: pa.Table) -> None:
        repeated = np.flatnonzero(equal_to_previous(changes, self._identity))
        if len(repeated):
            names = [name for name in self._identity if name != BUCKET_COLUMN]
            rows = changes.select(names).take(pa.array(repeated[:_NAMED_KEYS]))
            shown = "; ".join(sql_conditions(row) for row in rows.to_pylist())
            raise DataError(
                ErrorCode.DUPLICATE_KEY_INSERT,
                f"INSERT has more than one row of the key {shown}",
                "Choose one row of each key in the source.",
            )


class _OpenBucket(NamedTuple):
    """The bucket whose changes are being stored; ``cluster`` is the one that its rows came for."""

    cluster: BucketKey
    place: BucketKey
    writer: SortedRunWriter
    changes: BucketAppender | BucketRewriter
    bucket_index: BucketIndex | None = None
    changelog: Changelog | None = None

    def close_quietly(self) -> None:
        """Abandon the open files."""
        self.writer.close_quietly()
        if self.changelog is not None:
            self.changelog.writer.close_quietly()


def run_document(run: WrittenRun, place: BucketKey, level: int) -> dict[str, Any]:
    """The JSON data of a new file."""
    return {
        "partition": [encode_value(value) for value in place.partition],
        "bucket": place.bucket,
        "level": level,
        "run": run.to_json(),
    }


def _removals(rewriter: BucketRewriter) -> list[Fragment]:
    """Fragments that remove the rewritten sections; the first also counts the rows carried."""
    carried = rewriter.carried
    fragments = []
    for section in rewriter.rewritten:
        fragments.append(
            Fragment(
                {"removed": section.ordinal, "added": None},
                files_removed=len(section.files),
                files_rewritten=len(section.files),
                bytes_removed=section.size,
                rows_carried=carried,
            )
        )
        carried = 0
    return fragments


def pending_records(partition_keys: Sequence[str], place: BucketKey) -> NotSupportedError:
    """The error for a change to a bucket with records that batch readers do not see yet.

    In bucket ``POSTPONED``, these are records of any bucket.
    """
    partition = dict(zip(partition_keys, place.partition, strict=True))
    where = f" of the partition {sql_conditions(partition)}" if partition else ""
    kind = "postponed files" if place.bucket == POSTPONED else "level 0"
    return NotSupportedError(
        f"Bucket {place.bucket}{where} has records that batch readers do not see yet ({kind}). "
        "They would later overrule the statement.",
        "Compact it with CompactOperator(include_pending=True) or Paimon's own engines first.",
    )
