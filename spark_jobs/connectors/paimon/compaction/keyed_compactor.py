"""Merges the sections of buckets into files of their highest level. Runs on executors.

After Paimon's ``MergeTreeCompactTask`` and its rewriters. A section comes as a whole, so that no
older record is left anywhere: rows whose newest record deletes them are gone. What it owes to the
changelog is after ``LookupChangelogMergeFunctionWrapper`` and
``FullChangelogMergeFunctionWrapper``: records below a level change the rows that the others make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.connectors.paimon.format.manifest_entries import BucketKey
from spark_jobs.connectors.paimon.keyed.changelog import Changelog, ChangelogFiles
from spark_jobs.connectors.paimon.keyed.file_columns import INSERT_KIND, SEQUENCE_NUMBER, VALUE_KIND
from spark_jobs.connectors.paimon.keyed.run_writer import SortedRunWriter, WrittenRun
from spark_jobs.connectors.paimon.keyed.section_reader import RunFile, SectionReader, Window
from spark_jobs.connectors.paimon.keyed.waiting_records import WaitingRecords
from spark_jobs.connectors.paimon.write.file_layout import NewFileLayout, PaimonTaskFiles
from spark_jobs.connectors.paimon.write.keyed_sink import run_document
from spark_jobs.datafiles.rolling_writer import NewFiles
from spark_jobs.spi.writes import Fragment


class _OwedChanges(NamedTuple):
    """Changes in a window: the rows before as of ``SectionReader.merged``, and the keys changed."""

    before: pa.Table
    keys: pa.Table


def _owed_changes(reader: SectionReader, window: Window, below: int) -> _OwedChanges | None:
    """What the records of levels below ``below`` have changed; None: there are no such records.

    Raises:
        CatalogError: as of ``SectionReader.merged``.
        NotSupportedError: as of ``SectionReader.merged``.
    """
    owes = window.levels < below
    if not owes.any():
        return None
    keys = window.records.select(list(reader.schema.key)).filter(pa.array(owes))
    return _OwedChanges(reader.merged(window.only(np.logical_not(owes))), keys)


@dataclass(frozen=True, slots=True)
class OwedChangelog:
    """Which changes a compaction writes to changelog ``files``.

    The records of levels below ``below`` owe theirs. ``copies_postponed``: postponed records are
    copied as they were written.
    """

    files: ChangelogFiles
    below: int
    copies_postponed: bool = False


class _MergedBucket:
    """Merges sections, which come in key order, into new files.

    ``new_path`` makes the path of a file whose name begins with a prefix.
    """

    def __init__(
        self,
        reader: SectionReader,
        files: NewFiles,
        name_prefix: str,
        owed: OwedChangelog | None,
        new_path: Callable[[str], str],
    ) -> None:
        self._reader = reader
        self._owed = owed
        schema = reader.schema
        self._writer = SortedRunWriter(
            files, schema.key, schema.thin, lambda: new_path(name_prefix)
        )
        self._changelog: Changelog | None = None
        if owed is not None:
            prefix = owed.files.name_prefix
            writer = SortedRunWriter(
                replace(files, compression=owed.files.compression),
                schema.key,
                schema.thin,
                lambda: new_path(prefix),
                is_changelog=True,
            )
            self._changelog = Changelog(schema, owed.files, writer)

    def merge(self, files: Sequence[RunFile], waiting: Sequence[Iterator[pa.Table]] = ()) -> None:
        """Merge the files of a section, and postponed records of its bucket.

        Raises:
            CatalogError: as of ``SectionReader.rows``.
            DataError: VALUE_NOT_STORABLE or NOT_NULL_VIOLATION; names the column.
            NotSupportedError: the merge engine does not define what a delete record means.
        """
        for window in self._reader.windows(files, waiting):
            rows = self._reader.merged(window)
            kinds = pa.array(np.full(rows.num_rows, INSERT_KIND, np.int8))
            columns = rows.select(self._reader.schema.columns.names)
            self._writer.write(columns, rows.column(SEQUENCE_NUMBER), kinds)
            if self._changelog is not None and self._owed is not None:
                self._record(self._changelog, self._owed, window, rows, len(files))
            # Before the next window is read.
            del window, rows, columns, kinds

    def close_file(self) -> None:
        """Let the next section begin a new file."""
        self._writer.close_file()

    def finish(self) -> tuple[list[WrittenRun], list[WrittenRun]]:
        """The data files and the changelog files, complete."""
        changelog = [] if self._changelog is None else self._changelog.writer.finish()
        return self._writer.finish(), changelog

    def close_quietly(self) -> None:
        """Abandon the open files."""
        self._writer.close_quietly()
        if self._changelog is not None:
            self._changelog.writer.close_quietly()

    def _record(
        self,
        changelog: Changelog,
        owed: OwedChangelog,
        window: Window,
        rows: pa.Table,
        waiting: int,
    ) -> None:
        """Add to the changelog; ``waiting`` is the file number of postponed records."""
        if owed.copies_postponed:
            self._copy(changelog, window, waiting)
            return
        changes = _owed_changes(self._reader, window, owed.below)
        if changes is not None:
            changelog.write(changes.before, changes.keys, rows)

    def _copy(self, changelog: Changelog, window: Window, waiting: int) -> None:
        records = window.records.filter(pa.array(window.files == waiting))
        by = [(name, "ascending") for name in (*self._reader.schema.key, SEQUENCE_NUMBER)]
        ordered = records.take(pc.sort_indices(records, sort_keys=by))
        changelog.writer.write(
            ordered.select(self._reader.schema.columns.names),
            ordered.column(SEQUENCE_NUMBER),
            ordered.column(VALUE_KIND).combine_chunks(),
        )


class KeyedFiles(NamedTuple):
    """Files that are merged together, of ``size`` bytes, and their indexes in the table."""

    indexes: tuple[int, ...] = ()
    files: tuple[RunFile, ...] = ()
    size: int = 0


class KeyedBucket(NamedTuple):
    """The sections of a bucket that are merged, into files of ``level``.

    ``stretches`` are in key order, as are the sections in each: those of a stretch go into the same
    files, because nothing lies between them. ``whole`` has all files of the bucket, which are
    merged with its postponed records if there are any; these are numbered from ``next_number`` on.
    """

    place: BucketKey
    level: int
    stretches: tuple[tuple[KeyedFiles, ...], ...]
    whole: KeyedFiles = KeyedFiles()
    next_number: int = 0


class KeyedPart(NamedTuple):
    """What one task merges: sections of one bucket.

    Or all buckets of a partition, by their numbers, with the files of ``postponed`` records in the
    order in which they were written.
    """

    buckets: tuple[KeyedBucket, ...]
    postponed: KeyedFiles = KeyedFiles()


@dataclass(frozen=True, slots=True)
class KeyedCompactor:
    """Implements ``Compactor`` for tables with a primary key.

    ``name_prefix`` begins the names of all data files that it writes, and of no other files. The
    columns ``bucket_key`` determine the buckets of postponed records.
    """

    name_prefix: str
    layout: NewFileLayout
    reader: SectionReader
    bucket_key: tuple[str, ...] = ()
    changelog: OwedChangelog | None = None

    def compact(self, native: Any, task_key: str) -> Sequence[Fragment]:
        """Merge a ``KeyedPart``; a fragment for each bucket, and one for postponed files."""
        compaction = _Compaction(self, task_key)
        try:
            if native.postponed.files:
                return compaction.with_postponed(native)
            return [compaction.sections(bucket) for bucket in native.buckets]
        except BaseException:
            compaction.abort()
            raise


class _Compaction:
    """The compaction of one part; ``task_key`` makes the names of its files unique."""

    def __init__(self, compactor: KeyedCompactor, task_key: str) -> None:
        self._compactor = compactor
        self._files = PaimonTaskFiles(compactor.layout, task_key)
        self._open: _MergedBucket | None = None

    def sections(self, bucket: KeyedBucket) -> Fragment:
        """Merge sections as they are."""
        merged = self._merged(bucket)
        for stretch in bucket.stretches:
            for section in stretch:
                merged.merge(section.files)
            merged.close_file()
        return self._fragment(bucket, [each for stretch in bucket.stretches for each in stretch])

    def with_postponed(self, part: KeyedPart) -> list[Fragment]:
        """Merge postponed records into their buckets."""
        reader = self._compactor.reader
        fragments = [_removal(part.postponed)]
        with TemporaryDirectory(prefix="postponed-") as folder:
            key, count = self._compactor.bucket_key, len(part.buckets)
            waiting = WaitingRecords(reader, key, count, Path(folder))
            waiting.take(part.postponed.files)
            for number, bucket in enumerate(part.buckets):
                if waiting.count(number):
                    whole = bucket.whole
                    runs = waiting.runs(number, len(whole.files), bucket.next_number)
                    self._merged(bucket).merge(whole.files, runs)
                    fragments.append(self._fragment(bucket, [whole]))
                elif bucket.stretches:
                    fragments.append(self.sections(bucket))
        return fragments

    def abort(self) -> None:
        """Remove all files that were written."""
        if self._open is not None:
            self._open.close_quietly()
        self._files.remove()

    def _merged(self, bucket: KeyedBucket) -> _MergedBucket:
        compactor = self._compactor
        directory = compactor.layout.folder(bucket.place)
        self._open = _MergedBucket(
            compactor.reader,
            compactor.layout.files,
            compactor.name_prefix,
            compactor.changelog,
            lambda prefix: self._files.data_path(prefix, directory),
        )
        return self._open

    def _fragment(self, bucket: KeyedBucket, removed: Sequence[KeyedFiles]) -> Fragment:
        """What the open bucket has become."""
        assert self._open is not None  # noqa: S101
        runs, changelog = self._open.finish()
        self._open = None
        files = [index for each in removed for index in each.indexes]
        document = {
            "files": files,
            "added": [run_document(run, bucket.place, bucket.level) for run in runs],
            "changelog": [run_document(run, bucket.place, bucket.level) for run in changelog],
        }
        return Fragment(
            {"compacted": document},
            files_added=len(runs),
            files_removed=len(files),
            bytes_added=sum(run.size for run in runs),
            bytes_removed=sum(each.size for each in removed),
            rows_carried=sum(run.rows for run in runs),
        )


def _removal(postponed: KeyedFiles) -> Fragment:
    return Fragment(
        {"compacted": {"files": list(postponed.indexes), "added": [], "changelog": []}},
        files_removed=len(postponed.files),
        bytes_removed=postponed.size,
    )
