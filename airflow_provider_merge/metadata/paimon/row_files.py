"""The data files of a Paimon table whose rows tell in what two snapshots differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from airflow_provider_merge.metadata.differing_files import DifferingFiles, RowFile, obstacle_of
from airflow_provider_merge.metadata.model import TableSchema
from airflow_provider_merge.metadata.paimon.binary_row import decoded
from airflow_provider_merge.metadata.paimon.manifests import DataFile
from airflow_provider_merge.metadata.paimon.partitions import DifferingPartition, is_on
from airflow_provider_merge.metadata.paimon.snapshots import PaimonSnapshot, file_name
from airflow_provider_merge.metadata.paimon.table import PaimonTable
from airflow_provider_merge.storage.locations import child
from spark_jobs.contract.partition_names import partition_name
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.paimon.paths import (
    PartitionKey,
    PartitionLayout,
    bucket_directory,
    data_root,
)

_PRECISION: Final = re.compile(r"TIMESTAMP(?:_LTZ)? *\( *(\d+)")
_MARKED: Final = "Deletion vectors mark rows of its files, and are not read here."
_REMEDY: Final = "Compare the table at both snapshots with a query."


def differing_files(
    table: PaimonTable, before: PaimonSnapshot, after: PaimonSnapshot
) -> list[DifferingFiles]:
    """See ``PageFacts``.

    Raises:
        NotSupportedError: a row of such a table is made of several files.
    """
    schemas = [table.schema(each.schema_id) for each in (before, after)]
    if any(each.primary_keys for each in schemas):
        raise NotSupportedError(
            f"{table.name} has a primary key: its rows are merged from several files.", _REMEDY
        )
    if any(is_on(each, "data-evolution.enabled") for each in schemas):
        raise NotSupportedError(
            f"{table.name} has data evolution: a row's columns are in several files.", _REMEDY
        )
    files = _RowFiles(table, schemas[-1])
    return [files.of(each) for each in table.differing(before, after)]


@dataclass(frozen=True, slots=True)
class _RowFiles:
    """Finds the files of partitions, whose rows are shown with the columns of ``schema``."""

    table: PaimonTable
    schema: TableSchema

    def of(self, partition: DifferingPartition) -> DifferingFiles:
        """The files of one partition."""
        name = partition_name(self.table.partition_values(self.schema, partition.row))
        removed, added = partition.removed, partition.added
        obstacle = self._obstacle(partition, [*removed, *added])
        if obstacle:
            return DifferingFiles(name, (), (), obstacle)
        try:
            folder = self._folder(partition.row)
            gone, come = (
                tuple(_row_file(folder, each) for each in some) for some in (removed, added)
            )
        except NotSupportedError as error:
            return DifferingFiles(name, (), (), error.message)
        except ValueError:
            return DifferingFiles(name, (), (), "A file has an invalid name.")
        return DifferingFiles(name, gone, come, obstacle_of([*gone, *come], self._root))

    @property
    def _root(self) -> str:
        return data_root(self.table.location.rstrip("/"), self.schema.options)

    def _obstacle(self, partition: DifferingPartition, files: Sequence[DataFile]) -> str:
        marks = (partition.old_marks, partition.new_marks)
        keys = {(each.partition, each.bucket, each.name) for each in files}
        if marks[0] != marks[1] or any(keys & each.keys() for each in marks):
            return _MARKED
        if any(each.external_path for each in files):
            return "A file lies outside of the table's folder."
        if not all(self._fits(each.schema_id) for each in files):
            return "A file was written with other columns than the newer snapshot has."
        return ""

    def _fits(self, schema_id: int | None) -> bool:
        if schema_id is None or schema_id == self.schema.schema_id:
            return schema_id is not None
        return self.table.schema(schema_id).columns == self.schema.columns

    def _folder(self, row: bytes) -> tuple[str, str]:
        """The root of the data files and, below it, the folder of a partition.

        Raises:
            NotSupportedError: engines differ in the folder's name.
        """
        pairs = zip(self.schema.partition_keys, self.schema.partition_types, strict=True)
        layout = PartitionLayout.of([_key(*pair) for pair in pairs], self.schema.options)
        return self._root, layout.directory(decoded(row, self.schema.partition_types))


def _row_file(folder: tuple[str, str], file: DataFile) -> RowFile:
    root, partition = folder
    name = file_name(file.name)
    parts = [*bucket_directory("", partition, file.bucket).split("/"), name]
    return RowFile(reduce(child, parts, root), name.rpartition(".")[2], file.size, file.rows)


def _key(name: str, kind: str) -> PartitionKey:
    upper = kind.upper()
    precision = _PRECISION.match(upper)
    single = upper.startswith("FLOAT")
    return PartitionKey(name, int(precision[1]) if precision else None, single=single)
