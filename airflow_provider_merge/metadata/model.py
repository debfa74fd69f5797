"""What the metadata of a table tells, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_jobs.contract.partition_names import partition_name


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One snapshot. ``time_millis`` counts from 1970-01-01 UTC; ``properties`` are the writer's.

    ``snapshot_id`` is above 0; ids are neither consecutive nor in the order of time.
    ``commit_kind`` is the format's own word. ``keeps_rows``: the table has the same rows as before,
    in other files. ``total_record_count`` counts the rows of data files, among them those that are
    marked as deleted and older versions of keys; None: the snapshot does not tell.
    """

    snapshot_id: int
    schema_id: int
    commit_kind: str
    keeps_rows: bool
    time_millis: int
    total_record_count: int | None
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Tag:
    """A named snapshot, which stays readable after it has expired from the list of snapshots."""

    name: str
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Column:
    """One column; ``type`` is the format's, such as ``DECIMAL(10, 2) NOT NULL``.

    ``field_id`` stays the same when the column is renamed.
    """

    name: str
    type: str
    field_id: int


@dataclass(frozen=True, slots=True)
class TableSchema:
    """One schema of a table. ``options`` are the table's, and may hold what its owner put there."""

    schema_id: int
    columns: tuple[Column, ...]
    partition_keys: tuple[str, ...]
    primary_keys: tuple[str, ...]
    options: Mapping[str, str]

    @property
    def column_types(self) -> dict[str, str]:
        """The columns in their order, name → type."""
        return {column.name: column.type for column in self.columns}

    @property
    def partition_types(self) -> tuple[str, ...]:
        """The types of the partition columns."""
        types = self.column_types
        return tuple(types[key] for key in self.partition_keys)


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """What metadata tells of one partition.

    ``values`` has the text of each partition column, None for NULL. ``rows`` is what a reader
    finds, without the rows that deletion vectors mark; None where only reading can tell: on a
    primary-key table with versions of keys that are not compacted yet, and where an old writer did
    not count what its deletion vectors mark. ``records`` is the number of rows stored in files.
    ``size`` is in bytes. ``last_file_millis`` is when the newest file was made, by its writer's
    clock and in its writer's time zone; None: no file tells.
    """

    values: Mapping[str, str | None]
    rows: int | None
    records: int
    files: int
    size: int
    last_file_millis: int | None

    @property
    def name(self) -> str:
        """Such as ``day=2026-01-31/hour=7``, as results of statements name it; empty without."""
        return partition_name(self.values)


@dataclass(frozen=True, slots=True)
class DueFiles:
    """Files that a compaction would rewrite, and what they would become; sizes are in bytes."""

    files: int = 0
    size: int = 0
    files_after: int = 0
    size_after: int = 0

    def plus(self, other: DueFiles) -> DueFiles:
        """Both."""
        return DueFiles(
            self.files + other.files,
            self.size + other.size,
            self.files_after + other.files_after,
            self.size_after + other.size_after,
        )


@dataclass(frozen=True, slots=True)
class CompactionFacts:
    """What a compaction would find in one partition, as metadata tells; sizes are in bytes.

    ``values`` has the text of each partition column, None for NULL. ``files`` and ``size`` are of
    all data files; ``pending_files`` are those whose records batch readers see only after a
    compaction that includes them. All else counts pending files only if that was asked for:

    ``small_files`` and ``small_size``; ``joinable_files``, the most small files of one bucket that
    fit into one file (with a primary key: of its highest level); stored ``rows``, and
    ``marked_rows`` that deletion vectors mark (None: a writer did not count them); in a table with
    a primary key, ``sorted_runs`` by bucket and ``level_0_files``.

    ``due`` are those that the mode ``minor`` would rewrite, estimated.

    ``delete_files``, of formats that have such files, are the paths of those that may mark rows.

    Files of older partition specs are in no partition: they are together in facts without
    ``values``. ``stored`` then has the facts of the partitions that they were written to.
    """

    values: Mapping[str, str | None]
    files: int
    size: int
    small_files: int
    small_size: int
    joinable_files: int
    rows: int
    marked_rows: int | None
    sorted_runs: Mapping[int, int]
    level_0_files: int
    pending_files: int
    delete_files: frozenset[str] = frozenset()
    due: DueFiles = DueFiles()
    stored: tuple[CompactionFacts, ...] = ()

    @property
    def name(self) -> str:
        """As ``PartitionFacts.name``."""
        return partition_name(self.values)

    @property
    def marked_share(self) -> float | None:
        """The share of rows that are marked, from 0 to 1; None: it is not known."""
        if self.marked_rows is None:
            return None
        return self.marked_rows / self.rows if self.rows else 0.0

    @property
    def most_sorted_runs(self) -> int:
        """The runs of the bucket that has the most; 0 without a primary key."""
        return max(self.sorted_runs.values(), default=0)


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """What two snapshots differ in, in one partition; rows as in ``PartitionFacts``."""

    values: Mapping[str, str | None]
    files_added: int
    files_removed: int
    rows_before: int | None
    rows_after: int | None
