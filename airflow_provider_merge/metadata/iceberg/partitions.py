"""Rows, files and bytes of partitions, counted from the files of a snapshot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_merge.metadata.iceberg.manifests import DATA, TableFile
from airflow_provider_merge.metadata.iceberg.schemas import Spec
from airflow_provider_merge.metadata.model import PartitionFacts
from spark_jobs.contract.partition_names import partition_name

Key = tuple[int, tuple[Any, ...]]


@dataclass
class Deletes:
    """The deletes of a snapshot, as far as they tell how many rows they mark.

    ``marked`` has the rows that deletes mark, by their only data file; None: of several files of
    deletes some may mark the same row, which ``counted`` counts twice. ``open`` has the deletes
    that may mark rows of any file, by their partition; None: of all partitions. ``files`` has the
    paths of all, by partition, too.
    """

    marked: dict[str, int | None] = field(default_factory=dict)
    counted: dict[str, int] = field(default_factory=dict)
    open: dict[Key | None, set[str]] = field(default_factory=dict)
    files: dict[Key | None, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, files: Iterable[TableFile]) -> Deletes:
        """What the live files of deletes tell."""
        deletes = cls()
        for file in files:
            where = key_of(file) if file.partition else None
            deletes.files.setdefault(where, set()).add(file.path)
            if file.marks is not None:
                known = file.marks in deletes.marked
                deletes.marked[file.marks] = None if known else file.rows
                deletes.counted[file.marks] = deletes.counted.get(file.marks, 0) + file.rows
            else:
                deletes.open.setdefault(where, set()).add(file.path)
        return deletes

    def visible(self, files: Sequence[TableFile]) -> int | None:
        """The rows of data files that a reader finds; None: only reading can tell."""
        if files and (None in self.open or any(key_of(each) in self.open for each in files)):
            return None
        total = 0
        for file in files:
            marked = self.marked.get(file.path, 0)
            if marked is None:
                return None
            total += file.rows - marked
        return total

    def files_for(self, files: Iterable[TableFile]) -> frozenset[str]:
        """The files of deletes of the partitions of these data files."""
        keys = {None, *map(key_of, files)}
        return frozenset(path for key in keys for path in self.files.get(key, ()))

    def touch(self, files: Iterable[TableFile]) -> bool:
        """Whether rows of these data files may be marked."""
        if None in self.open:
            return True
        return any(key_of(each) in self.open or each.path in self.marked for each in files)

    def of_files(self, files: Sequence[TableFile]) -> tuple[Any, ...]:
        """What is known of rows that are marked in these files, to compare two snapshots."""
        keys = {None, *map(key_of, files)}
        open_ = {path for key in keys for path in self.open.get(key, ())}
        return {each.path: self.marked.get(each.path, 0) for each in files}, open_


def key_of(file: TableFile) -> Key:
    """What tells a file's partition: values mean nothing without their spec."""
    return file.spec_id, file.partition


def values_of(spec: Spec, partition: Sequence[Any]) -> dict[str, str | None]:
    """The texts of a partition's values, by the names of its fields."""
    pairs = zip(spec, partition, strict=True)
    return {each.name: each.text(value) for each, value in pairs if each is not None}


def by_name(
    files: Iterable[TableFile], specs: Mapping[int, Spec]
) -> dict[str, tuple[dict[str, str | None], list[TableFile]]]:
    """Data files by the name of their partition, with its values: one name may have two specs."""
    keys: dict[Key, list[TableFile]] = defaultdict(list)
    for file in files:
        if file.content == DATA:
            keys[key_of(file)].append(file)
    partitions: dict[str, tuple[dict[str, str | None], list[TableFile]]] = {}
    for (spec_id, partition), some in keys.items():
        values = values_of(specs[spec_id], partition)
        partitions.setdefault(partition_name(values), (values, []))[1].extend(some)
    return partitions


@dataclass(frozen=True, slots=True)
class DifferingPartition:
    """A partition that two snapshots differ in: its data files, and the snapshots' deletes."""

    values: Mapping[str, str | None]
    old: Sequence[TableFile]
    new: Sequence[TableFile]
    old_deletes: Deletes
    new_deletes: Deletes

    @property
    def removed(self) -> list[TableFile]:
        """The data files that only the old snapshot has."""
        return _without(self.old, self.new)

    @property
    def added(self) -> list[TableFile]:
        """The data files that only the new snapshot has."""
        return _without(self.new, self.old)


def _without(files: Sequence[TableFile], others: Sequence[TableFile]) -> list[TableFile]:
    paths = {each.path for each in others}
    return [each for each in files if each.path not in paths]


def facts_of(
    values: Mapping[str, str | None], files: Sequence[TableFile], deletes: Deletes
) -> PartitionFacts:
    """What the data files of one partition come to."""
    return PartitionFacts(
        values=values,
        rows=deletes.visible(files),
        records=sum(each.rows for each in files),
        files=len(files),
        size=sum(each.size for each in files),
        last_file_millis=None,
    )
