"""What executors need to read the live rows of a data file. Driver only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from spark_jobs.connectors.iceberg.format.deletes import DataFileDeletes, DeleteFile
from spark_jobs.connectors.iceberg.format.schema import arrow_type
from spark_jobs.connectors.iceberg.format.values import partition_value
from spark_jobs.connectors.iceberg.read.arrow_scan import ScannedFile
from spark_jobs.connectors.iceberg.table.live_files import PUFFIN, LiveFile
from spark_jobs.connectors.iceberg.table.manifests import ManifestEntry
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.connectors.iceberg.table.refusals import refuse_file
from spark_jobs.contract.request import TableName


def scanned_file(table: PinnedTable, name: TableName, ordinal: int) -> ScannedFile:
    """The data file ``ordinal`` of the pinned snapshot.

    Raises:
        NotSupportedError: it is in another format than parquet, or has equality deletes.
        CatalogError: METADATA_UNREADABLE.
    """
    file = table.files[ordinal]
    refuse_file(name, file)
    with reading_metadata(table.place):
        deletes = tuple(_delete_file(table, each) for each in file.deletes)
        of_file = DataFileDeletes(ordinal, file.entry.path, file.entry.row_count, deletes)
        return ScannedFile(file.path, of_file, dict(_constants(table, file)))


def _delete_file(table: PinnedTable, entry: ManifestEntry) -> DeleteFile:
    path = table.storage.path(entry.path)
    if entry.file_format != PUFFIN:
        return DeleteFile(path)
    offset, length = (entry.record.get(f"content_{name}") for name in ("offset", "size_in_bytes"))
    if type(offset) is not int or type(length) is not int:
        raise ValueError(f"the deletion vector in {entry.path} has no place")
    return DeleteFile(path, offset, length, entry.row_count)


def _constants(table: PinnedTable, file: LiveFile) -> Iterator[tuple[int, Any]]:
    """The values of identity fields by column, which some files do not have."""
    for part in table.specs[file.entry.spec_id]:
        if part.transform == "identity" and part.source is not None:
            kind = part.source.type
            value = partition_value(kind, file.entry.partition.get(part.id))
            yield part.source.id, pa.scalar(value, arrow_type(kind))
