"""Merges the sections of buckets into files of their highest level. Runs on executors.

After Paimon's ``MergeTreeCompactTask`` and its rewriters. A section comes as a whole, so that no
older record is left anywhere: rows whose newest record deletes them are gone.
"""

from __future__ import annotations

import posixpath
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from spark_jobs.connectors.paimon.format.bucket_key import BucketKey
from spark_jobs.connectors.paimon.keyed.changelog import Changelog, ChangelogFiles
from spark_jobs.connectors.paimon.keyed.file_columns import INSERT_KIND, SEQUENCE_NUMBER
from spark_jobs.connectors.paimon.keyed.owed_changes import owed_changes
from spark_jobs.connectors.paimon.keyed.run_writer import SortedRunWriter
from spark_jobs.connectors.paimon.keyed.section_reader import RunFile, SectionReader, Window
from spark_jobs.connectors.paimon.write.keyed_sink import run_document
from spark_jobs.connectors.paimon.write.new_rows import NewFileLayout
from spark_jobs.spi.writes import Fragment

SectionFiles = tuple[RunFile, ...]


class KeyedPart(NamedTuple):
    """Sections of one bucket.

    ``stretches`` are in key order, as are the sections in each: those of a stretch go into the same
    files, because nothing lies between them. ``files`` are the indexes of all their files, which
    have ``size`` bytes. ``level`` is that of the new files.
    """

    place: BucketKey
    level: int
    files: tuple[int, ...]
    size: int
    stretches: tuple[tuple[SectionFiles, ...], ...]


@dataclass(frozen=True, slots=True)
class OwedChangelog:
    """Where compactions write changelogs, and that records below level ``below`` owe theirs."""

    files: ChangelogFiles
    below: int


@dataclass(frozen=True, slots=True)
class KeyedCompactor:
    """Implements ``PartCompactor`` for tables with a primary key. Picklable.

    ``name_prefix`` begins the names of all data files that it writes, and of no other files.
    """

    name_prefix: str
    layout: NewFileLayout
    reader: SectionReader
    changelog: OwedChangelog | None = None

    def compact(self, native: Any, task_key: str) -> Sequence[Fragment]:
        """Merge the sections of a ``KeyedPart``; one fragment.

        Raises:
            CatalogError: DATA_FILE_UNREADABLE, METADATA_UNREADABLE; names the file.
            DataError: VALUE_NOT_STORABLE or NOT_NULL_VIOLATION; names the column.
            NotSupportedError: the merge engine does not define what delete records mean.
        """
        compaction = _BucketCompaction(self, native, task_key)
        try:
            return [compaction.run()]
        except BaseException:
            compaction.abort()
            raise


class _BucketCompaction:
    """The compaction of one part."""

    def __init__(self, compactor: KeyedCompactor, part: KeyedPart, task_key: str) -> None:
        self._compactor = compactor
        self._part = part
        self._task = uuid.uuid5(uuid.NAMESPACE_OID, task_key).hex[:12]
        self._paths: list[str] = []
        self._directory = compactor.layout.bucket_directory(part.place)
        schema = compactor.reader.schema
        self._writer = SortedRunWriter(
            compactor.layout.files,
            schema.key,
            schema.thin,
            lambda: self._new_path(compactor.name_prefix),
        )
        self._changelog = self._new_changelog(compactor.changelog)

    def run(self) -> Fragment:
        """Merge all sections."""
        for stretch in self._part.stretches:
            for files in stretch:
                for window in self._compactor.reader.windows(files):
                    self._store(window)
            self._writer.close_file()
        return self._fragment()

    def abort(self) -> None:
        """Remove all files that were written."""
        self._writer.close_quietly()
        if self._changelog is not None:
            self._changelog.writer.close_quietly()
        for path in self._paths:
            try:
                self._compactor.layout.files.filesystem.delete_file(path)
            except FileNotFoundError:
                continue

    def _store(self, window: Window) -> None:
        reader = self._compactor.reader
        rows = reader.merged(window)
        kinds = pa.array(np.full(rows.num_rows, INSERT_KIND, np.int8))
        columns = rows.select(reader.schema.columns.names)
        self._writer.write(columns, rows.column(SEQUENCE_NUMBER), kinds)
        if self._changelog is not None and self._compactor.changelog is not None:
            changes = owed_changes(reader, window, self._compactor.changelog.below)
            if changes is not None:
                self._changelog.write(changes.before, changes.keys, rows)

    def _fragment(self) -> Fragment:
        place, level = self._part.place, self._part.level
        runs = self._writer.finish()
        changelog = [] if self._changelog is None else self._changelog.writer.finish()
        document = {
            "files": list(self._part.files),
            "added": [run_document(run, place, level) for run in runs],
            "changelog": [run_document(run, place, level) for run in changelog],
        }
        return Fragment(
            {"compacted": document},
            files_added=len(runs),
            files_removed=len(self._part.files),
            bytes_added=sum(run.size for run in runs),
            bytes_removed=self._part.size,
            rows_carried=sum(run.rows for run in runs),
        )

    def _new_changelog(self, owed: OwedChangelog | None) -> Changelog | None:
        if owed is None:
            return None
        schema, files = self._compactor.reader.schema, owed.files
        writer = SortedRunWriter(
            replace(self._compactor.layout.files, compression=files.compression),
            schema.key,
            schema.thin,
            lambda: self._new_path(files.name_prefix),
            is_changelog=True,
        )
        return Changelog(schema, files, writer)

    def _new_path(self, prefix: str) -> str:
        number = len(self._paths)
        name = f"{prefix}{self._task}-{number}.parquet"
        place = self._compactor.layout.outside(self._directory, int(self._task, 16) + number)
        self._paths.append(posixpath.join(place, name))
        return self._paths[-1]
