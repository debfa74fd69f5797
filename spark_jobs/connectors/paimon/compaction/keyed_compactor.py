"""Merges the sections of buckets into files of their highest level. Runs on executors.

After Paimon's ``MergeTreeCompactTask`` and its rewriters. A section comes as a whole, so that no
older record is left anywhere: rows whose newest record deletes them are gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from spark_jobs.connectors.paimon.compaction.merged_bucket import MergedBucket, OwedChangelog
from spark_jobs.connectors.paimon.format.bucket_key import BucketKey
from spark_jobs.connectors.paimon.keyed.section_reader import RunFile, SectionReader
from spark_jobs.connectors.paimon.keyed.waiting_records import WaitingRecords
from spark_jobs.connectors.paimon.write.file_layout import NewFileLayout
from spark_jobs.connectors.paimon.write.keyed_sink import run_document
from spark_jobs.connectors.paimon.write.task_files import PaimonTaskFiles
from spark_jobs.spi.writes import Fragment


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
        """Merge a ``KeyedPart``; a fragment for each bucket, and one for postponed files.

        Raises:
            CatalogError: DATA_FILE_UNREADABLE, METADATA_UNREADABLE; names the file.
            DataError: VALUE_NOT_STORABLE or NOT_NULL_VIOLATION; names the column.
            NotSupportedError: the merge engine does not define what delete records mean.
        """
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
        self._open: MergedBucket | None = None

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

    def _merged(self, bucket: KeyedBucket) -> MergedBucket:
        compactor = self._compactor
        directory = compactor.layout.folder(bucket.place)
        self._open = MergedBucket(
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
