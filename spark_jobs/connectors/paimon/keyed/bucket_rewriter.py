"""Rewrites the sections of one bucket in which changes fall. Runs on executors.

Changes arrive in key order, as the sections are. A section without changes stays as it is; new rows
between sections become files of their own, because files of the highest level must not overlap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from spark_jobs.connectors.paimon.keyed.changed_rows import ChangedRows
from spark_jobs.connectors.paimon.keyed.changelog import Changelog
from spark_jobs.connectors.paimon.keyed.file_columns import INSERT_KIND, SEQUENCE_NUMBER
from spark_jobs.connectors.paimon.keyed.key_order import rows_before, rows_up_to
from spark_jobs.connectors.paimon.keyed.run_writer import SortedRunWriter
from spark_jobs.connectors.paimon.keyed.section_reader import RunFile, SectionReader
from spark_jobs.errors import NotSupportedError


class Section(NamedTuple):
    """The files of a unit with their bytes, and the range of their keys.

    ``owes_changelog``: it has records whose changelog Paimon's compaction has still to write.
    """

    ordinal: int
    files: tuple[RunFile, ...]
    size: int
    first: tuple[Any, ...]
    last: tuple[Any, ...]
    owes_changelog: bool = False


@dataclass(slots=True)
class _OpenSection:
    """A section that is being rewritten; ``rest`` are rows that were read, but not yet written."""

    section: Section
    windows: Iterator[pa.Table]
    rest: pa.Table | None = None

    def window(self) -> pa.Table | None:
        """The next rows in key order; None after the last."""
        while self.rest is None or not self.rest.num_rows:
            self.rest = next(self.windows, None)
            if self.rest is None:
                return None
        return self.rest


class BucketRewriter:
    """Applies changes to the sections of one bucket; ``sections`` are in key order.

    What changes is added to ``changelog``, if there is one.
    """

    def __init__(
        self,
        sections: Sequence[Section],
        reader: SectionReader,
        changed_rows: ChangedRows,
        writer: SortedRunWriter,
        changelog: Changelog | None = None,
    ) -> None:
        self._ahead = deque(sections)
        self._reader = reader
        self._changed_rows = changed_rows
        self._writer = writer
        self._changelog = changelog
        self._open: _OpenSection | None = None
        self._key = reader.schema.key
        self._empty = changed_rows.no_rows()
        self.rewritten: list[Section] = []
        self.carried = 0

    def apply(self, changes: pa.Table) -> None:
        """Take the next changes in key order; all those of a key together.

        Raises:
            DataError: DUPLICATE_KEY_INSERT, or a value that cannot be stored.
            NotSupportedError: the changelog of a section is still owed.
        """
        while changes.num_rows:
            if self._open is None:
                changes = self._before_next_section(changes)
            else:
                changes = self._in_section(self._open, changes)

    def finish(self) -> None:
        """Copy what remains of the open section."""
        if self._open is None:
            return
        while (window := self._open.window()) is not None:
            self._store(window)
            self.carried += window.num_rows
            self._open.rest = None
        self._open = None

    def _before_next_section(self, changes: pa.Table) -> pa.Table:
        """Write new rows before the next section, or open it; returns the changes that are left."""
        while self._ahead and not rows_up_to(changes.slice(0, 1), self._key, self._ahead[0].last):
            self._ahead.popleft()
            self._writer.close_file()
        if not self._ahead:
            self._write(self._empty, changes)
            return changes.slice(changes.num_rows)
        before = rows_before(changes, self._key, self._ahead[0].first)
        if before:
            self._write(self._empty, changes.slice(0, before))
            return changes.slice(before)
        section = self._ahead.popleft()
        _require_changelog(section)
        self.rewritten.append(section)
        self._open = _OpenSection(section, self._windows(section))
        return changes

    def _windows(self, section: Section) -> Iterator[pa.Table]:
        return self._reader.rows(section.files, self._reader.schema.columns.names)

    def _in_section(self, opened: _OpenSection, changes: pa.Table) -> pa.Table:
        """Apply changes to the next rows of the section; returns the changes that are left."""
        window = opened.window()
        if window is None:
            self._open = None
            return self._after_section(opened.section, changes)
        reached = rows_up_to(window, self._key, self._key_of(changes, changes.num_rows - 1))
        if reached < window.num_rows:
            self._write(window.slice(0, reached), changes)
            opened.rest = window.slice(reached)
            return changes.slice(changes.num_rows)
        taken = rows_up_to(changes, self._key, self._key_of(window, window.num_rows - 1))
        self._write(window, changes.slice(0, taken))
        opened.rest = None
        return changes.slice(taken)

    def _after_section(self, section: Section, changes: pa.Table) -> pa.Table:
        """New rows behind the section's last live row, but within its range."""
        within = rows_up_to(changes, self._key, section.last)
        if within:
            self._write(self._empty, changes.slice(0, within))
        return changes.slice(within)

    def _write(self, window: pa.Table, changes: pa.Table) -> None:
        merged = self._changed_rows.merged(window, changes)
        self._store(merged)
        if self._changelog is not None:
            self._changelog.write(window, changes, merged)
        self.carried += window.num_rows - self._changed_rows.touched(changes)

    def _store(self, rows: pa.Table) -> None:
        if rows.num_rows:
            kinds = pa.array(np.full(rows.num_rows, INSERT_KIND, np.int8))
            columns = rows.select(self._reader.schema.columns.names)
            self._writer.write(columns, rows.column(SEQUENCE_NUMBER), kinds)

    def _key_of(self, rows: pa.Table, index: int) -> tuple[Any, ...]:
        return tuple(rows.column(name)[index] for name in self._key)


def _require_changelog(section: Section) -> None:
    if section.owes_changelog:
        raise NotSupportedError(
            f"The changes in some records among {section.files[0].path} and its neighbours are not "
            "yet in the table's changelog (option changelog-producer). Rewriting the records would "
            "lose them for streams.",
            "Compact the table with CompactOperator(mode='full') or Paimon's own engines first.",
        )
