"""What a compaction would find in partitions, by the files of a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from airflow_provider_merge.metadata.due_files import (
    StoredFile,
    bins_of,
    due_files,
    most_that_fit,
    rewritten,
)
from airflow_provider_merge.metadata.iceberg.manifests import TableFile
from airflow_provider_merge.metadata.iceberg.partitions import Deletes, key_of
from airflow_provider_merge.metadata.model import CompactionFacts, DueFiles
from spark_jobs.contract.compaction import SORTED_BYTES
from spark_jobs.formats.iceberg.compaction import CompactionThresholds

Values = Mapping[str, str | None]
_NOTHING: Final = DueFiles()


@dataclass(frozen=True, slots=True)
class CompactionReader:
    """Counts files; ``spec_id`` is the current spec, which ``is_partitioned`` or not."""

    deletes: Deletes
    thresholds: CompactionThresholds
    spec_id: int
    is_partitioned: bool

    def facts(
        self, found: Iterable[tuple[Values, Sequence[TableFile]]], *, are_all: bool
    ) -> list[CompactionFacts]:
        """The facts of partitions and of files that are in none, as the job plans them.

        ``found`` has the values that files were written with; ``are_all``: of the whole table, not
        of some partitions, in which no file of an older spec is.
        """
        partitions, others, written = [], list[TableFile](), []
        for values, files in found:
            placed = [each for each in files if self._is_placed(each)]
            if placed:
                partitions.append(self._of(values, placed, *self._joined(placed)))
            if len(placed) < len(files):
                written.append((values, files))
                others += [each for each in files if not self._is_placed(each)]
        if others and are_all:
            are_older = any(each.spec_id != self.spec_id for each in others)
            stored = [self._of(*each) for each in written] if are_older else []
            stored.sort(key=lambda each: each.name)
            work = self._moved(others) if self.is_partitioned else self._joined(others)
            partitions.append(replace(self._of({}, others, *work), stored=tuple(stored)))
        return partitions

    def _is_placed(self, file: TableFile) -> bool:
        return self.is_partitioned and file.spec_id == self.spec_id

    def _of(
        self,
        values: Values,
        files: Sequence[TableFile],
        joinable: int = 0,
        due: DueFiles = _NOTHING,
    ) -> CompactionFacts:
        small = [each for each in files if self.thresholds.is_small(each.size)]
        rows, visible = sum(each.rows for each in files), self.deletes.visible(files)
        return CompactionFacts(
            values=values,
            files=len(files),
            size=sum(each.size for each in files),
            small_files=len(small),
            small_size=sum(each.size for each in small),
            joinable_files=joinable,
            rows=rows,
            marked_rows=None if visible is None else rows - visible,
            sorted_runs={},
            level_0_files=0,
            pending_files=0,
            delete_files=self.deletes.files_for(files),
            due=due,
        )

    def _joined(self, files: Sequence[TableFile]) -> tuple[int, DueFiles]:
        """How many small files fit into one, and what is due."""
        limits = self.thresholds
        sizes = [each.size for each in files if limits.is_small(each.size)]
        stored, target = [*map(self._stored, files)], limits.target_file_size
        due = due_files(stored, limits.is_small, target, limits.min_files)
        return most_that_fit(sizes, target), due

    def _moved(self, files: Sequence[TableFile]) -> tuple[int, DueFiles]:
        """How many small files one task takes, and what is due, where rows change partitions."""
        limits = self.thresholds
        ordered = sorted(files, key=lambda each: (str(key_of(each)), each.path))
        stored = [self._stored(each) for each in ordered]
        chosen = [each for each in stored if each.is_candidate(limits.is_small)]
        bins = [*bins_of(chosen, max(limits.target_file_size, SORTED_BYTES))]
        worth = [
            each
            for some in bins
            if len(some) >= limits.min_files or any(each.is_flawed for each in some)
            for each in some
        ]
        small = (sum(limits.is_small(each.size) for each in some) for some in bins)
        return max(small, default=0), rewritten(worth, limits.target_file_size)

    def _stored(self, file: TableFile) -> StoredFile:
        marked = self.deletes.counted.get(file.path, 0)
        return StoredFile.of(file.size, file.rows, marked, self.thresholds.deleted_share)
