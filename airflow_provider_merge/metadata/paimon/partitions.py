"""Rows, files and bytes of partitions, counted from the data files of a snapshot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_merge.metadata.model import PartitionFacts, TableSchema
from airflow_provider_merge.metadata.paimon.manifests import DataFile, MarkedRows
from spark_jobs.contract.partition_names import partition_text

Marks = Mapping[tuple[bytes, int, str], int | None]


@dataclass(frozen=True, slots=True)
class DifferingPartition:
    """A partition, of the binary ``row``, that two snapshots differ in: files by key, and marks."""

    row: bytes
    old: Mapping[Any, DataFile]
    new: Mapping[Any, DataFile]
    old_marks: Marks
    new_marks: Marks

    @property
    def removed(self) -> list[DataFile]:
        """The files that only the old snapshot has."""
        return [file for key, file in self.old.items() if key not in self.new]

    @property
    def added(self) -> list[DataFile]:
        """The files that only the new snapshot has."""
        return [file for key, file in self.new.items() if key not in self.old]


def marks_by_file(marked: Iterable[MarkedRows]) -> Marks:
    """The number of marked rows by partition, bucket and name of the data file."""
    return {(each.partition, each.bucket, each.file): each.count for each in marked}


def facts_of(
    schema: TableSchema, partition: tuple[Any, ...], files: list[DataFile], marks: Marks
) -> PartitionFacts:
    """What the files of one partition come to."""
    values = zip(schema.partition_keys, map(partition_text, partition), strict=True)
    times = [file.created_millis for file in files if file.created_millis is not None]
    return PartitionFacts(
        values=dict(values),
        rows=visible_rows(schema, files, marks),
        records=sum(file.rows for file in files),
        files=len(files),
        size=sum(file.size for file in files),
        last_file_millis=max(times, default=None),
    )


def visible_rows(schema: TableSchema, files: list[DataFile], marks: Marks) -> int | None:
    """The rows that a reader of these files finds; None where only reading can tell."""
    vectors = is_on(schema, "deletion-vectors.enabled")
    if schema.primary_keys and vectors:
        # Readers skip what is not compacted yet.
        files = [file for file in files if file.level > 0]
    elif schema.primary_keys and not _compacted(files):
        return None
    marked = marked_rows(files, marks)
    return None if marked is None else stored_rows(schema, files) - marked


def stored_rows(schema: TableSchema, files: list[DataFile]) -> int:
    """The rows in these files, of which several may hold columns of the same rows."""
    if is_on(schema, "data-evolution.enabled"):
        return _distinct_row_ids(files)
    return sum(file.rows for file in files)


def marked_rows(files: list[DataFile], marks: Marks) -> int | None:
    """The rows of these files that deletion vectors mark; None: a writer did not count them."""
    counts = [marks.get((file.partition, file.bucket, file.name), 0) for file in files]
    return None if None in counts else sum(count or 0 for count in counts)


def is_on(schema: TableSchema, option: str) -> bool:
    """Whether an option of true or false, false by default, is true."""
    return schema.options.get(option, "").strip().lower() == "true"


def _compacted(files: list[DataFile]) -> bool:
    """Whether each bucket has its keys once: in one level above 0, and without deletions."""
    levels: dict[tuple[bytes, int], set[int]] = defaultdict(set)
    for file in files:
        if file.level == 0 or file.deleted_keys != 0:
            return False
        levels[file.partition, file.bucket].add(file.level)
    return all(len(each) == 1 for each in levels.values())


def _distinct_row_ids(files: list[DataFile]) -> int:
    total = sum(file.rows for file in files if file.first_row_id is None)
    ranges = sorted(
        (f.first_row_id, f.first_row_id + f.rows) for f in files if f.first_row_id is not None
    )
    end = 0
    for start, stop in ranges:
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total
