"""The new files of one bucket whose sections are merged, and their changelog. Runs on executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.connectors.paimon.keyed.changelog import Changelog, ChangelogFiles
from spark_jobs.connectors.paimon.keyed.file_columns import (
    INSERT_KIND,
    SEQUENCE_NUMBER,
    VALUE_KIND,
)
from spark_jobs.connectors.paimon.keyed.owed_changes import owed_changes
from spark_jobs.connectors.paimon.keyed.run_writer import SortedRunWriter, WrittenRun
from spark_jobs.connectors.paimon.keyed.section_reader import RunFile, SectionReader, Window
from spark_jobs.datafiles.rolling_writer import NewFiles


@dataclass(frozen=True, slots=True)
class OwedChangelog:
    """Which changes a compaction writes to changelog ``files``.

    The records of levels below ``below`` owe theirs. ``copies_postponed``: postponed records are
    copied as they were written.
    """

    files: ChangelogFiles
    below: int
    copies_postponed: bool = False


class MergedBucket:
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
        changes = owed_changes(self._reader, window, owed.below)
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
