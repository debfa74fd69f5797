"""With ``*_library`` the one place that calls pypaimon, its internals too. Driver only.

Internals moved in every minor release of pypaimon, so each function here has a contract test
(tests/connectors/test_paimon_library.py). Objects of pypaimon leave this module only as opaque
values: ``Any`` in a signature is one of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from spark_jobs.connectors.paimon.checked_files import CheckedFiles
from spark_jobs.connectors.paimon.field_ids import with_field_id
from spark_jobs.connectors.paimon.file_names import require_file_name
from spark_jobs.connectors.paimon.metadata_checks import (
    place_of_metadata,
    reading_metadata,
    require_sound_entry,
    require_sound_schema,
    require_sound_snapshot,
)
from spark_jobs.connectors.paimon.snapshot_library import parse_snapshot
from spark_jobs.contract.request import TableName
from spark_jobs.files.statistics import ColumnStatistics


@dataclass(frozen=True, slots=True)
class PaimonColumn:
    """A column as the schema file has it; ``type`` is Paimon's JSON form."""

    name: str
    type: Any
    comment: str | None = None
    default: str | None = None


@dataclass(frozen=True, slots=True)
class PaimonSchema:
    """A table's schema, without field ids."""

    columns: tuple[PaimonColumn, ...]
    partition_keys: tuple[str, ...]
    primary_keys: tuple[str, ...]
    options: Mapping[str, str]
    comment: str | None = None

    @property
    def bucket_key(self) -> tuple[str, ...]:
        """The columns of option ``bucket-key``."""
        names = self.options.get("bucket-key", "").split(",")
        return tuple(name.strip() for name in names if name.strip())


def open_catalog(options: Mapping[str, str]) -> Any:
    """The catalog that the options describe; a missing warehouse is not noticed."""
    from pypaimon import CatalogFactory

    return CatalogFactory.create(dict(options))


def find_table(catalog: Any, name: TableName) -> Any | None:
    """The table with its latest schema, or None when it or its database does not exist.

    Where no table has exactly this name, it is the only one that differs from it in case. A branch
    (``table$branch_b``) is found by its exact name.
    """
    from pypaimon.catalog.catalog_exception import DatabaseNotExistException, TableNotExistException

    try:
        return _opened(catalog, name)
    except DatabaseNotExistException:
        return None
    except TableNotExistException:
        spelled = _in_another_case(catalog, name)
    try:
        return _opened(catalog, spelled) if spelled else None
    except TableNotExistException:
        return None


def _opened(catalog: Any, name: TableName) -> Any:
    table = catalog.get_table(_identifier(name))
    table.file_io = CheckedFiles(table.file_io)
    return table


def _in_another_case(catalog: Any, name: TableName) -> TableName | None:
    from pypaimon.catalog.catalog_exception import DatabaseNotExistException

    try:
        tables = catalog.list_tables(name.database)
    except DatabaseNotExistException:
        return None
    table, *branch = name.table.split("$", 1)
    same = [each for each in tables if each.lower() == table.lower()]
    return replace(name, table="$".join([*same, *branch])) if len(same) == 1 else None


def schema_of(table: Any) -> PaimonSchema:
    """The schema that the table object was loaded with.

    Raises:
        ValueError: it has values that no schema has.
    """
    native = table.table_schema
    require_sound_schema(native)
    return PaimonSchema(
        columns=tuple(
            PaimonColumn(f.name, f.type.to_dict(), f.description, f.default_value)
            for f in native.fields
        ),
        partition_keys=tuple(native.partition_keys),
        primary_keys=tuple(native.primary_keys),
        options=dict(native.options),
        comment=native.comment,
    )


def schema_id(table: Any) -> int:
    """The id of the schema that the table object was loaded with."""
    return int(table.table_schema.id)


def has_same_columns(table: Any, schema_id: int) -> bool:
    """Whether a schema of the table has the columns that the table has now."""
    schema = table.schema_manager.get_schema(schema_id)
    if schema is None:
        raise FileNotFoundError(f"schema {schema_id} of {table_path(table)} does not exist")
    now = table.table_schema.fields
    return [_physical(field) for field in schema.fields] == [_physical(field) for field in now]


def _physical(field: Any) -> tuple[Any, ...]:
    """What of a column decides how files hold it."""
    return field.id, field.name, field.type


def arrow_schema(table: Any) -> pa.Schema:
    """The Arrow schema of the table's data files, with Paimon's field ids and without comments."""
    from pypaimon.schema.data_types import PyarrowFieldParser

    fields = table.table_schema.fields
    schema = PyarrowFieldParser.from_paimon_schema(fields)
    return pa.schema(
        [
            with_field_id(arrow.remove_metadata(), field.id, field.type.to_dict())
            for arrow, field in zip(schema, fields, strict=True)
        ]
    )


def table_path(table: Any) -> str:
    """The table's directory."""
    return str(table.table_path).rstrip("/")


def branch_path(table: Any) -> str:
    """The directory of the snapshots, schemas and consumers of the table's branch."""
    from pypaimon.branch.branch_manager import BranchManager

    path: str = BranchManager.branch_path(table_path(table), table.current_branch())
    return path


def latest_snapshot(table: Any) -> Any | None:
    """The latest snapshot now; the LATEST hint is checked against the files.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    with reading_metadata(place_of_metadata(table)):
        manager = table.snapshot_manager()
        snapshot = manager.get_latest_snapshot()
        if snapshot is not None:
            require_sound_snapshot(snapshot)
            if not table.file_io.exists(manager.get_snapshot_path(snapshot.id)):
                raise ValueError(f"the latest snapshot says that it is {snapshot.id}")
        return snapshot


def find_snapshot(table: Any, snapshot_id: int) -> Any | None:
    """The snapshot of that id; None when it expired or never was.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    with reading_metadata(place_of_metadata(table)):
        path = table.snapshot_manager().get_snapshot_path(snapshot_id)
        try:
            text = table.file_io.read_file_utf8(path)
        except FileNotFoundError:
            return None
        return parse_snapshot(text, snapshot_id)


def is_same_snapshot(one: Any, other: Any) -> bool:
    """Whether they are one and the same attempt, wherever they were read.

    Its lists of manifests have names that nothing else has; ``uuid`` is lost on a server that does
    not know it yet.
    """
    return bool(one.delta_manifest_list == other.delta_manifest_list)


def snapshot_ids(table: Any) -> list[int]:
    """The ids of all snapshots that still exist, in their order; nothing but names is read.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    with reading_metadata(place_of_metadata(table)):
        directory = table.snapshot_manager().snapshot_dir
        if not table.file_io.exists(directory):
            return []
        names = (info.path.rpartition("/")[2] for info in table.file_io.list_status(directory))
        found = (re.fullmatch(r"snapshot-([0-9]{1,18})", name) for name in names)
        return sorted(int(match[1]) for match in found if match)


def live_entries(table: Any, snapshot: Any) -> list[Any]:
    """The manifest entries of all data files of a snapshot, with their statistics.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    from pypaimon.manifest.manifest_list_manager import ManifestListManager
    from pypaimon.read.scanner.file_scanner import FileScanner

    with reading_metadata(place_of_metadata(table)):
        scanner = FileScanner(table, lambda: ([], None))
        manifests = ManifestListManager(table).read_all(snapshot)
        for each in manifests:
            require_file_name("manifest", each.file_name)
        entries: list[Any] = scanner.read_manifest_entries(manifests, keep_stats=True)
        for entry in entries:
            require_sound_entry(entry)
        return entries


def all_options(table: Any) -> list[Mapping[str, str]]:
    """The options of every schema that the table ever had."""
    return [schema.options for schema in table.schema_manager.list_all()]


def bucket_directory(table: Any, partition: Sequence[Any], bucket: int) -> str:
    """The directory of a bucket's data files, as Paimon's Java writers spell it."""
    from pypaimon.utils.file_store_path_factory import canonical_data_file_path

    path: str = canonical_data_file_path(table, tuple(partition), bucket, "x")
    return path.rpartition("/")[0]


def column_range(entry: Any, column: str) -> tuple[Any, Any, int | None]:
    """Minimum, maximum and NULL count in a file's statistics; None for what they do not have.

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
) -> Any:
    """The manifest's description of a new file of an append table; external: outside of it.

    ``sequence_numbers`` are the first and the last one of the file's rows.
    """
    from pypaimon.data.timestamp import Timestamp
    from pypaimon.manifest.schema.data_file_meta import DataFileMeta
    from pypaimon.manifest.schema.simple_stats import SimpleStats
    from pypaimon.table.row.generic_row import GenericRow

    fields = table.table_schema.fields
    ordered = [statistics[field.name] for field in fields]
    values = SimpleStats(
        GenericRow([each.minimum for each in ordered], fields),
        GenericRow([each.maximum for each in ordered], fields),
        [each.null_count for each in ordered],
    )
    return DataFileMeta.create(
        file_name=path.rpartition("/")[2],
        file_size=size,
        row_count=rows,
        min_key=GenericRow([], []),
        max_key=GenericRow([], []),
        key_stats=SimpleStats.empty_stats(),
        value_stats=values,
        min_sequence_number=sequence_numbers[0],
        max_sequence_number=sequence_numbers[1],
        schema_id=schema_id(table),
        level=0,
        extra_files=[],
        creation_time=Timestamp.now(),
        delete_row_count=0,
        file_source=0,
        external_path=f"file:{path}" if is_external else None,
        file_path=path,
    )


def snapshot_json(snapshot: Any) -> str:
    """The snapshot file's text."""
    from pypaimon.common.json_util import JSON

    text: str = JSON.to_json(snapshot, indent=2)
    return text


def _identifier(name: TableName) -> Any:
    from pypaimon.common.identifier import Identifier

    return Identifier.create(name.database, name.table)
