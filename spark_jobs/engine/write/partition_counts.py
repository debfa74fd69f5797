"""The partitions that a statement changes, by name, and what a dry run would change in each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from spark_jobs.contract.partition_names import partition_name
from spark_jobs.contract.result import Metrics, PartitionMetrics
from spark_jobs.engine.write.change_counts import DELETED, Placement
from spark_jobs.engine.write.change_writer import TaskReport
from spark_jobs.engine.write.guarding import PartitionChange, row_count
from spark_jobs.engine.write.statement_run import StatementRun
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi import rows
from spark_jobs.spi.tables import PlannedFile, TableHandle
from spark_jobs.spi.writes import Fragment, WriteLayout

if TYPE_CHECKING:
    from spark_jobs.spi.connector import Connector
    from spark_jobs.spi.sinks import MergeHandle


_NUMBERS: Final = tuple(each.name for each in fields(PartitionMetrics) if each.name != "name")


def placement(
    table: TableHandle, update_layout: WriteLayout | None, insert_layout: WriteLayout
) -> Placement | None:
    """How change rows tell their partitions; None: the table has none, or they do not tell."""
    names = [each.name for each in table.partitioned_by]
    columns = insert_layout.cluster_by[: len(names)]
    file = update_layout.file_ordinal if update_layout else None
    has_other_places = update_layout is not None and file is None
    if not names or len(columns) < len(names) or has_other_places:
        return None
    prefix = f"{rows.ROW_ID}."
    return Placement(
        dict(zip(names, columns, strict=True)), file.removeprefix(prefix) if file else None
    )


def partition_metrics(
    run: StatementRun[Any],
    handle: MergeHandle,
    reports: Sequence[TaskReport],
    scanned: Iterable[PlannedFile],
    dropped: Sequence[PlannedFile],
) -> tuple[PartitionMetrics, ...]:
    """What a dry run would change in each partition, by name; none for a table without partitions.

    ``scanned`` files are those whose rows ``reports`` count; ``dropped`` ones lose all their rows.
    """
    connector, table = run.connector, run.table
    if not table.partitioned_by:
        return ()
    counts: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(_NUMBERS, 0))
    names = FileNames(connector, table, handle)
    by_ordinal = {file.ordinal: file for file in scanned}
    for report in reports:
        for (place, kind), count in report.counts.by_place.items():
            file = None if place.ordinal is None else by_ordinal[place.ordinal]
            counts[place.partition if file is None else names.of(file)][kind] += count
    lost: dict[str, list[PlannedFile]] = defaultdict(list)
    for file in dropped:
        lost[names.of(file)].append(file)
    for name, files in lost.items():
        counts[name][DELETED] += row_count(connector.scan, table, files)
    for fragment in (each for report in reports for each in report.fragments):
        for name in changed_partitions(connector, table, [fragment]):
            # What concerns several partitions marks rows, and neither adds nor removes files.
            counts[name]["files_added"] += fragment.files_added
            counts[name]["files_removed"] += fragment.files_removed
    return tuple(PartitionMetrics(name, **counts[name]) for name in sorted(counts))


def partition_changes(
    run: StatementRun[Any],
    handle: MergeHandle,
    metrics: Metrics,
    by_partition: Sequence[PartitionMetrics],
    planned: Sequence[PlannedFile],
) -> list[PartitionChange]:
    """What a run does in each partition, with the partition's files of those ``planned``.

    None if no guard asks. A table without partitions is one partition without a name.

    Raises:
        NotSupportedError: the table's rows do not tell their partitions.
    """
    if not run.guards.counts_by_partition:
        return []
    table = run.table
    if not table.partitioned_by:
        whole = PartitionMetrics("", metrics.inserted, metrics.updated, metrics.deleted)
        return [PartitionChange(whole, planned)]
    if (metrics.updated or metrics.deleted) and not by_partition:
        raise NotSupportedError(
            f"guards: changes of {table.name} are not counted by partition.",
            "Leave max_partition_deleted_share and max_partition_changed_share out.",
        )
    names = FileNames(run.connector, table, handle)
    files: dict[str, list[PlannedFile]] = defaultdict(list)
    for file in planned:
        files[names.of(file)].append(file)
    return [PartitionChange(each, files[each.name]) for each in by_partition]


@dataclass(frozen=True, slots=True)
class FileNames:
    """The names of files' partitions."""

    connector: Connector
    table: TableHandle
    handle: MergeHandle

    def of(self, file: PlannedFile) -> str:
        """The name of a file's partition, which an older file may have by other fields."""
        if {each.name for each in self.table.partitioned_by} == file.partition.keys():
            return partition_name(file.partition)
        dropped = self.connector.writes.drop_files(self.table, self.handle, [file])
        return changed_partitions(self.connector, self.table, dropped)[0]


def changed_partitions(
    connector: Connector, table: TableHandle, fragments: Sequence[Fragment]
) -> tuple[str, ...]:
    """Sorted names such as ``day=2026-01-31/hour=7``; none for a table without partitions."""
    if not table.partitioned_by:
        return ()
    changed = connector.writes.changed_partitions(table, fragments)
    return tuple(sorted(set(map(partition_name, changed))))
