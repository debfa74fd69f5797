"""The data files of an Iceberg table whose rows tell in what two snapshots differ."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from airflow_provider_merge.metadata.differing_files import DifferingFiles, RowFile, obstacle_of
from airflow_provider_merge.metadata.iceberg.manifests import TableFile
from airflow_provider_merge.metadata.iceberg.partitions import DifferingPartition
from airflow_provider_merge.metadata.iceberg.snapshots import IcebergSnapshot
from airflow_provider_merge.metadata.iceberg.table import IcebergTable
from spark_jobs.contract.partition_names import partition_name
from spark_jobs.errors import NotSupportedError

_MARKED: Final = "Files of deletes mark rows of its files, and are not read here."


def differing_files(
    table: IcebergTable, before: IcebergSnapshot, after: IcebergSnapshot
) -> list[DifferingFiles]:
    """See ``PageFacts``.

    Raises:
        NotSupportedError: a row may be in one partition before, and in another after.
    """
    differing = list(table.differing(before, after))
    specs = {file.spec_id for each in differing for file in (*each.removed, *each.added)}
    if len(specs) > 1:
        raise NotSupportedError(
            f"The partitioning of {table.name} changed between the files of the two snapshots.",
            "Compare the table at both snapshots with a query.",
        )
    return [_of(each, table.location) for each in differing]


def _of(partition: DifferingPartition, folder: str) -> DifferingFiles:
    name = partition_name(partition.values)
    removed, added = partition.removed, partition.added
    if _is_marked(partition, [*removed, *added]):
        return DifferingFiles(name, (), (), _MARKED)
    gone, come = (tuple(map(_row_file, some)) for some in (removed, added))
    return DifferingFiles(name, gone, come, obstacle_of([*gone, *come], folder))


def _is_marked(partition: DifferingPartition, differing: Iterable[TableFile]) -> bool:
    """Whether deletes concern the files, or differ in what they mark elsewhere."""
    old, new = partition.old_deletes, partition.new_deletes
    if any(each.touch(differing) for each in (old, new)):
        return True
    paths = {each.path for each in partition.new}
    common = [each for each in partition.old if each.path in paths]
    return bool(old.of_files(common) != new.of_files(common))


def _row_file(file: TableFile) -> RowFile:
    return RowFile(file.path, file.format, file.size, file.rows)
