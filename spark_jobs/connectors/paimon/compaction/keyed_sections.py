"""The sections of a table with a primary key as a compaction sees them. Driver only."""

from __future__ import annotations

import math
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from spark_jobs.connectors.paimon.compaction.options import CompactionOptions
from spark_jobs.connectors.paimon.format.manifest_entries import POSTPONED, BucketKey, bucket_key_of
from spark_jobs.connectors.paimon.table.primary_key import KeyedTable
from spark_jobs.connectors.paimon.table.sections import units
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable

# The number of a file among those of its writer, at the end of its name.
_NUMBER: Final = re.compile(r"-([0-9]+)\.[^-]*$")

# Indexes in ``StoredFiles.located_entries``.
Files = tuple[int, ...]
Stretch = tuple[Files, ...]


@dataclass(frozen=True)
class BucketSections:
    """The sections of a bucket in key order, each with the indexes of its files.

    ``shows``: its files of level 0 become visible when they are compacted.
    """

    table: PinnedTable
    keyed: KeyedTable
    options: CompactionOptions
    place: BucketKey
    sections: tuple[Files, ...] = ()
    shows: bool = False

    @cached_property
    def files(self) -> Files:
        """All files."""
        return tuple(index for section in self.sections for index in section)

    @property
    def next_number(self) -> int:
        """The sequence number for a new record."""
        return max((self._file(index).max_sequence_number for index in self.files), default=-1) + 1

    def size(self, files: Files) -> int:
        """The bytes of files."""
        return sum(self._file(index).file_size for index in files)

    def new_files(self, stretch: Stretch) -> int:
        """The number of files that a stretch becomes at most."""
        size = sum(map(self.size, stretch))
        return math.ceil(size / self.options.target_file_size)

    @cached_property
    def level(self) -> int:
        """The bucket's highest level, which may be from a time when the table had more of them."""
        levels = [int(self._file(index).level) for index in self.files]
        return max([self.keyed.highest_level, *levels])

    def stretches(self) -> Iterator[Stretch]:
        """Sections to merge; those of a stretch are neighbours, whose rows go into the same files.

        Small files of the highest level join what is merged beside them.
        """
        stretch: list[Files] = []
        for section in self.sections:
            if self._is_worth_it(section) or self._is_small(section):
                stretch.append(section)
                continue
            if self._are_worth_it(stretch):
                yield tuple(stretch)
            stretch = []
        if self._are_worth_it(stretch):
            yield tuple(stretch)

    def _are_worth_it(self, sections: list[Files]) -> bool:
        least = 2 if self.options.is_full else self.options.min_files
        return any(map(self._is_worth_it, sections)) or len(sections) >= max(least, 2)

    def _is_worth_it(self, section: Files) -> bool:
        """Whether a section is merged whatever is beside it."""
        if self.shows and any(self._file(index).level == 0 for index in section):
            return True
        if self.options.is_full or self._has_many_runs:
            return not self._is_settled(section)
        return any(self._has_many_marks(index) for index in section)

    def _is_settled(self, section: Files) -> bool:
        """Whether a compaction leaves a section like that."""
        if len(section) > 1 or self._file(section[0]).level < self.level:
            return False
        if not self.options.is_full:
            return not self._has_many_marks(section[0])
        path, entry = self.table.files.located_entries[section[0]]
        return (
            entry.file.delete_row_count == 0
            and entry.file.file_name not in self.table.files.vectors
            and self.table.columns.mapped_schema(entry) is None
            and posixpath.dirname(path) in self._own_directories
        )

    def _is_small(self, section: Files) -> bool:
        """Whether a section is a small file of the highest level."""
        file = self._file(section[0])
        small = self.options.is_small(file.file_size)
        # A new file ends at the target size, whatever share of it the options call small.
        small = small and file.file_size < self.options.target_file_size
        return len(section) == 1 and file.level == self.level and small

    @cached_property
    def _has_many_runs(self) -> bool:
        """Paimon's ``LevelSortedRun``: each file of level 0 is a run, and each level above."""
        levels = [self._file(index).level for index in self.files]
        runs = levels.count(0) + len(set(levels) - {0})
        return runs >= self.options.sorted_runs

    @cached_property
    def _own_directories(self) -> frozenset[str]:
        """The directories of the bucket's new files."""
        inside, external = self.table.files.bucket_directory(self.place), self.table.external
        if external is None:
            return frozenset({inside})
        below = inside.removeprefix(self.table.path)
        return frozenset(f"{root}{below}" for root in external.roots)

    def _has_many_marks(self, index: int) -> bool:
        file = self._file(index)
        vector = self.table.files.vectors.get(file.file_name)
        share = self.options.deleted_share
        return vector is not None and vector.cardinality > share * file.row_count

    def _file(self, index: int) -> Any:
        return self.table.files.located_entries[index][1].file


def bucket_sections(
    table: PinnedTable, keyed: KeyedTable, options: CompactionOptions
) -> Iterator[BucketSections]:
    """The buckets with sections; none for records that wait for their bucket.

    Files of level 0 that batch readers do not see yet are left out, unless they are asked for.

    Raises:
        CatalogError: METADATA_UNREADABLE: files of a level above 0 overlap.
    """
    shows = options.include_pending and keyed.hides_level_0
    found = units(table.files.located_entries, hides_level_0=False) if shows else table.files.units
    buckets: dict[BucketKey, list[Files]] = defaultdict(list)
    for unit in found:
        place = bucket_key_of(table.files.located_entries[unit.files[0]][1])
        if not unit.is_pending and place.bucket != POSTPONED:
            buckets[place].append(unit.files)
    for place, sections in buckets.items():
        yield BucketSections(table, keyed, options, place, tuple(sections), shows)


def postponed_files(table: PinnedTable) -> Mapping[tuple[Any, ...], Files]:
    """The files whose records wait for their bucket, by partition, in the order of writing.

    As in Paimon (``PostponeBucketCompactSplitSource``), they are in the order in which they were
    created; those of a writer have increasing numbers, too.
    """
    by_partition: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for index, (_, entry) in enumerate(table.files.located_entries):
        if entry.bucket == POSTPONED:
            by_partition[tuple(entry.partition.values)].append(index)

    def order(index: int) -> tuple[Any, ...]:
        file = table.files.located_entries[index][1].file
        created, match = file.creation_time, _NUMBER.search(file.file_name)
        at = (0, 0)
        if created is not None:
            at = (created.get_millisecond(), created.get_nano_of_millisecond())
        return (*at, int(match[1]) if match else 0, file.file_name)

    return {partition: tuple(sorted(files, key=order)) for partition, files in by_partition.items()}
