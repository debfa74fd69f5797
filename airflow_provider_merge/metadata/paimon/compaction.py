"""What there is to compact in partitions, counted from the data files of a snapshot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from airflow_provider_merge.metadata.due_files import (
    StoredFile,
    due_files,
    due_neighbours,
    most_that_fit,
    rewritten,
)
from airflow_provider_merge.metadata.model import CompactionFacts, DueFiles, TableSchema
from airflow_provider_merge.metadata.paimon.manifests import DataFile
from airflow_provider_merge.metadata.paimon.partitions import (
    Marks,
    is_on,
    marked_rows,
    stored_rows,
)
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.partition_names import partition_text
from spark_jobs.formats.paimon.compaction import CompactionThresholds, highest_level

# Its files wait for a compaction that gives their rows a bucket.
_POSTPONED: Final = -2


@dataclass(frozen=True, slots=True)
class CompactionCount:
    """Counts the files of partitions as a compaction by ``spec`` sees them.

    ``highest_level`` is that of the table, if it has a primary key.
    """

    schema: TableSchema
    marks: Marks
    spec: CompactSpec
    thresholds: CompactionThresholds
    highest_level: int

    @classmethod
    def of(
        cls, schema: TableSchema, options: Mapping[str, str], marks: Marks, spec: CompactSpec
    ) -> CompactionCount:
        """With the thresholds of ``spec`` or of the table's newest ``options``.

        Raises:
            NotSupportedError: an option has an invalid value.
        """
        keyed = bool(schema.primary_keys)
        thresholds = CompactionThresholds.of(spec, options, has_primary_key=keyed)
        return cls(schema, marks, spec, thresholds, highest_level(options))

    def facts(self, partition: tuple[Any, ...], files: list[DataFile]) -> CompactionFacts:
        """What the files of one partition come to."""
        pending = [file for file in files if self._is_pending(file)]
        counted = files
        if pending and not self.spec.include_pending:
            counted = [file for file in files if not self._is_pending(file)]
        small = [file for file in counted if self.thresholds.is_small(file.size)]
        by_bucket: dict[int, list[DataFile]] = defaultdict(list)
        for file in counted:
            by_bucket[file.bucket].append(file)
        is_keyed = bool(self.schema.primary_keys)
        values = zip(self.schema.partition_keys, map(partition_text, partition), strict=True)
        return CompactionFacts(
            values=dict(values),
            files=len(files),
            size=sum(file.size for file in files),
            small_files=len(small),
            small_size=sum(file.size for file in small),
            joinable_files=max(map(self._joinable, by_bucket.values()), default=0),
            rows=stored_rows(self.schema, counted),
            marked_rows=marked_rows(counted, self.marks),
            sorted_runs=_sorted_runs(counted) if is_keyed else {},
            level_0_files=sum(file.level == 0 for file in counted) if is_keyed else 0,
            pending_files=len(pending),
            due=reduce(DueFiles.plus, map(self._due, by_bucket.values()), DueFiles()),
        )

    def _due(self, files: list[DataFile]) -> DueFiles:
        """The files of a bucket that would be rewritten."""
        limits = self.thresholds
        if self._is_ordered:
            files = sorted(files, key=lambda each: each.numbers)
        stored = [
            StoredFile.of(
                file.size,
                file.rows,
                self.marks.get((file.partition, file.bucket, file.name), 0),
                limits.deleted_share,
            )
            for file in files
        ]
        target = limits.target_file_size
        if self.schema.primary_keys and _runs_of(files) >= limits.sorted_runs:
            return rewritten(stored, target)
        if self._is_ordered:
            return due_neighbours(stored, limits.is_small, target, limits.min_files)
        if self.schema.primary_keys:
            is_worth_it = self._joinable(files) >= max(limits.min_files, 2)
            return due_files(stored, limits.is_small, target, 2 if is_worth_it else len(files) + 2)
        return due_files(stored, limits.is_small, target, limits.min_files)

    @property
    def _is_ordered(self) -> bool:
        """Whether only neighbours in the order of a bucket are put together."""
        bucket = self.schema.options.get("bucket", "").strip()
        return not self.schema.primary_keys and bucket.isdecimal() and bucket != "0"

    def _joinable(self, files: list[DataFile]) -> int:
        """The most small files of a bucket that fit into one file."""
        if self.schema.primary_keys:
            highest = max(self.highest_level, *(file.level for file in files))
            files = [file for file in files if file.level == highest]
        if self._is_ordered:
            return self._most_neighbours(sorted(files, key=lambda each: each.numbers))
        sizes = [file.size for file in files if self.thresholds.is_small(file.size)]
        return most_that_fit(sizes, self.thresholds.target_file_size)

    def _most_neighbours(self, files: list[DataFile]) -> int:
        most = count = size = 0
        for file in files:
            is_small = self.thresholds.is_small(file.size)
            if not is_small or size + file.size > self.thresholds.target_file_size:
                count = size = 0
            if is_small:
                count, size = count + 1, size + file.size
            most = max(most, count)
        return most

    def _is_pending(self, file: DataFile) -> bool:
        """Whether batch readers see the file's records only after a compaction."""
        if not self.schema.primary_keys:
            return False
        engine = self.schema.options.get("merge-engine", "").strip().lower()
        hides_level_0 = is_on(self.schema, "deletion-vectors.enabled") or engine == "first-row"
        return file.bucket == _POSTPONED or (hides_level_0 and file.level == 0)


def _sorted_runs(files: list[DataFile]) -> dict[int, int]:
    """The runs by bucket."""
    by_bucket: dict[int, list[DataFile]] = defaultdict(list)
    for file in files:
        by_bucket[file.bucket].append(file)
    return {bucket: _runs_of(each) for bucket, each in sorted(by_bucket.items())}


def _runs_of(files: list[DataFile]) -> int:
    """The runs of a bucket: each file of level 0 is one, and so is each level above 0."""
    return len({file.level or file.name for file in files})
