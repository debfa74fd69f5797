"""Manifest descriptions of data files, read and made with pypaimon. Driver only."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spark_jobs.connectors.paimon.format.manifest_entries import require_file_name
from spark_jobs.connectors.paimon.keyed.run_writer import WrittenRun
from spark_jobs.connectors.paimon.library.exact_partitions import encoded_row, manifest_file_manager
from spark_jobs.connectors.paimon.library.metadata_checks import (
    place_of_metadata,
    reading_metadata,
    require_sound_entry,
)
from spark_jobs.connectors.paimon.library.table_schema import schema_id
from spark_jobs.datafiles.statistics import ColumnStatistics

# Paimon's ``FileSource``.
APPENDED: Final = 0
COMPACTED: Final = 1


def live_entries(table: Any, snapshot: Any) -> list[Any]:
    """The manifest entries of all data files of a snapshot, with statistics.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    from pypaimon.manifest.manifest_list_manager import ManifestListManager
    from pypaimon.read.scanner.file_scanner import FileScanner

    with reading_metadata(place_of_metadata(table)):
        scanner = FileScanner(table, lambda: ([], None)).with_all_buckets()
        scanner.manifest_file_manager = manifest_file_manager(table)
        manifests = ManifestListManager(table).read_all(snapshot)
        for each in manifests:
            require_file_name("manifest", each.file_name)
        entries: list[Any] = scanner.read_manifest_entries(manifests, keep_stats=True)
        for entry in entries:
            require_sound_entry(entry)
        return entries


def column_range(entry: Any, column: str) -> tuple[Any, Any, int | None]:
    """The minimum, maximum and NULL count of a column in a file's statistics; None if missing.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    with reading_metadata(entry.file.file_name):
        statistics = entry.file.value_stats
        names = [field.name for field in statistics.min_values.fields]
        index = names.index(column) if column in names else len(names)
        if index >= len(statistics.min_values):
            return None, None, None
        counts = statistics.null_counts
        return (
            statistics.min_values.get_field(index),
            statistics.max_values.get_field(index),
            counts[index] if counts else None,
        )


def new_data_file(
    table: Any,
    path: str,
    size: int,
    rows: int,
    statistics: Mapping[str, ColumnStatistics],
    sequence_numbers: tuple[int, int] = (0, 0),
    *,
    is_external: bool = False,
    is_compacted: bool = False,
    stored_columns: Sequence[str] | None = None,
    first_row_id: int | None = None,
) -> Any:
    """The manifest's description of a new data file of an append table.

    ``sequence_numbers`` are the first and last one of the file's rows. ``is_external``: the file is
    outside the table's directory. ``is_compacted``: a compaction made it. ``stored_columns`` are
    the file's, if they are not the table's; ``statistics`` are of those that both have.
    ``first_row_id``: the file holds these columns of rows that have ids from there on.
    """
    from pypaimon.data.timestamp import Timestamp
    from pypaimon.manifest.schema.data_file_meta import DataFileMeta
    from pypaimon.manifest.schema.simple_stats import SimpleStats
    from pypaimon.table.row.generic_row import GenericRow

    fields = [field for field in table.table_schema.fields if field.name in statistics]
    return DataFileMeta.create(
        file_name=path.rpartition("/")[2],
        file_size=size,
        row_count=rows,
        min_key=GenericRow([], []),
        max_key=GenericRow([], []),
        key_stats=SimpleStats.empty_stats(),
        value_stats=manifest_statistics(fields, statistics),
        min_sequence_number=sequence_numbers[0],
        max_sequence_number=sequence_numbers[1],
        schema_id=schema_id(table),
        level=0,
        extra_files=[],
        creation_time=Timestamp.now(),
        delete_row_count=0,
        file_source=COMPACTED if is_compacted else APPENDED,
        value_stats_cols=None if stored_columns is None else [field.name for field in fields],
        external_path=f"file:{path}" if is_external else None,
        first_row_id=first_row_id,
        write_cols=None if stored_columns is None else list(stored_columns),
        file_path=path,
    )


def manifest_statistics(fields: Sequence[Any], statistics: Mapping[str, ColumnStatistics]) -> Any:
    """The statistics of pypaimon's ``fields`` in the form of manifests."""
    from pypaimon.manifest.schema.simple_stats import SimpleStats
    from pypaimon.table.row.generic_row import GenericRow

    pairs = [(field, statistics[field.name]) for field in fields]
    return SimpleStats(
        GenericRow([_bound(field, each.minimum) for field, each in pairs], fields),
        GenericRow([_bound(field, each.maximum) for field, each in pairs], fields),
        [each.null_count for _, each in pairs],
    )


def _bound(field: Any, value: Any) -> Any:
    """``value`` as a bound of ``field``; None if it is one of the file's type, and not of its own.

    Other writers' files may hold texts for bytes, or times in UTC for those without a zone.
    """
    kind = str(field.type).upper()
    is_binary = kind.startswith(("BYTES", "BINARY", "VARBINARY"))
    if isinstance(value, str | bytes) and is_binary != isinstance(value, bytes):
        return None
    if isinstance(value, dt.datetime) and value.tzinfo is not None and "LOCAL" not in kind:
        return None
    return value


def has_index(file: Any) -> bool:
    """Whether a data file has file indexes, such as bloom filters, in files of its own or not."""
    return bool(file.extra_files) or file.embedded_index is not None


def new_keyed_file(
    table: Any,
    run: WrittenRun,
    level: int,
    *,
    is_external: bool = False,
    is_changelog: bool = False,
) -> Any:
    """The manifest's description of a new data file, as by ``KeyValueDataFileWriter``.

    ``is_external``: the file is outside the table's directory. A file of a level above 0 counts as
    the result of a compaction, because Java's writers append to level 0 only; ``is_changelog``:
    never.
    """
    from pypaimon.data.timestamp import Timestamp
    from pypaimon.manifest.schema.data_file_meta import DataFileMeta

    key = table.trimmed_primary_keys_fields
    return DataFileMeta.create(
        file_name=run.path.rpartition("/")[2],
        file_size=run.size,
        row_count=run.rows,
        min_key=encoded_row(run.first_key, key),
        max_key=encoded_row(run.last_key, key),
        key_stats=manifest_statistics(key, run.key_statistics),
        value_stats=manifest_statistics(table.table_schema.fields, run.statistics),
        min_sequence_number=run.min_sequence_number,
        max_sequence_number=run.max_sequence_number,
        schema_id=schema_id(table),
        level=level,
        extra_files=[],
        creation_time=Timestamp.now(),
        delete_row_count=run.delete_count,
        file_source=APPENDED if level == 0 or is_changelog else COMPACTED,
        external_path=f"file:{run.path}" if is_external else None,
        file_path=run.path,
    )


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The first and the last key of a file, both inclusive, as Python values in Paimon's order."""

    first: tuple[Any, ...]
    last: tuple[Any, ...]

    def overlaps(self, other: KeyRange) -> bool:
        """Whether a key can be in both ranges."""
        return self.first <= other.last and other.first <= self.last


def key_range(entry: Any) -> KeyRange:
    """The range of the file of a manifest entry."""
    return KeyRange(_values(entry.file.min_key), _values(entry.file.max_key))


def _values(row: Any) -> tuple[Any, ...]:
    return tuple(row.values)
