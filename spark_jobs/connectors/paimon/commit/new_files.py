"""Manifest entries of new files, from the documents that tasks return. Driver only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_jobs.connectors.paimon.format.bucket_key import BucketKey
from spark_jobs.connectors.paimon.format.row_tracking import (
    ROW_ID,
    SEQUENCE_NUMBER,
    stored_numbers,
    stores_ids,
)
from spark_jobs.connectors.paimon.format.sequence_numbers import bucket_key_of
from spark_jobs.connectors.paimon.keyed.run_writer import WrittenRun
from spark_jobs.connectors.paimon.library import data_files, manifest_files
from spark_jobs.connectors.paimon.library.keyed_files import new_keyed_file
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.datafiles.statistics import ColumnStatistics
from spark_jobs.datafiles.values import decode_value
from spark_jobs.errors import CatalogError, ErrorCode


def place_of(file: Mapping[str, Any]) -> BucketKey:
    """The partition and bucket in the document of a file."""
    return BucketKey(tuple(map(decode_value, file["partition"])), file["bucket"])


def added_run(table: PinnedTable, file: Mapping[str, Any], *, is_changelog: bool = False) -> Any:
    """The entry that adds a file of a table with a primary key."""
    place = place_of(file)
    new = new_keyed_file(
        table.table,
        WrittenRun.from_json(file["run"]),
        file["level"],
        is_external=table.external is not None,
        is_changelog=is_changelog,
    )
    buckets = table.bucketing.total(place.partition)
    return manifest_files.added_entry(table.table, place, new, buckets)


def added_file(
    table: PinnedTable,
    place: BucketKey,
    file: Mapping[str, Any],
    numbers: tuple[int, int],
    *,
    is_compacted: bool = False,
) -> Any:
    """The entry that adds a file of an append table, whose rows have the sequence ``numbers``.

    If the file stores numbers itself, it has those.

    Raises:
        CatalogError: DATA_FILE_UNREADABLE: the file that it replaces lacked a column.
    """
    statistics = {
        name: ColumnStatistics.from_json(each) for name, each in file["statistics"].items()
    }
    path, size, rows = file["path"], file["size"], file["rows"]
    missing = [c.name for c in table.schema.columns if c.name not in statistics]
    if missing:
        raise CatalogError(
            ErrorCode.DATA_FILE_UNREADABLE,
            f"the file that {path} replaces has no column {missing[0]}, which its schema has",
            "Look for who changed the file or the schema; this statement changed nothing.",
        )
    stored = None
    if stores_ids(statistics):
        _require_ids(path, statistics)
        stored = [*(column.name for column in table.schema.columns), ROW_ID, SEQUENCE_NUMBER]
        numbers = stored_numbers(statistics)
    new = data_files.new_data_file(
        table.table,
        path,
        size,
        rows,
        statistics,
        numbers,
        is_external=table.external is not None,
        is_compacted=is_compacted,
        stored_columns=stored,
    )
    buckets = table.bucketing.total(place.partition)
    return manifest_files.added_entry(table.table, place, new, buckets)


def added_columns(table: PinnedTable, file: Mapping[str, Any]) -> Any:
    """The entry that adds a file of new values of some columns, from its document."""
    anchor = table.files.unit_entries(file["range"])[0]
    statistics = {
        name: ColumnStatistics.from_json(each) for name, each in file["statistics"].items()
    }
    new = data_files.new_data_file(
        table.table,
        file["path"],
        file["size"],
        file["rows"],
        statistics,
        is_external=table.external is not None,
        stored_columns=[each.name for each in table.schema.columns if each.name in statistics],
        first_row_id=anchor.file.first_row_id,
    )
    place = bucket_key_of(anchor)
    return manifest_files.added_entry(table.table, place, new, anchor.total_buckets)


def _require_ids(path: str, statistics: Mapping[str, ColumnStatistics]) -> None:
    """Check that every row of a new file has an id.

    Raises:
        CatalogError: DATA_FILE_UNREADABLE.
    """
    if statistics[ROW_ID].null_count:
        raise CatalogError(
            ErrorCode.DATA_FILE_UNREADABLE,
            f"a file whose rows {path} takes lacks the ids of {statistics[ROW_ID].null_count} rows "
            f"(column {ROW_ID})",
            "Look for who wrote the file; this statement changed nothing.",
        )
