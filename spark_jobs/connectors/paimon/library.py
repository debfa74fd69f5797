"""With ``index_library`` the one place that calls pypaimon, its internals too. Driver only.

Internals moved in every minor release of pypaimon, so each function here has a contract test
(tests/connectors/test_paimon_library.py). Objects of pypaimon leave this module only as opaque
values: ``Any`` in a signature is one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from spark_jobs.connectors.paimon.field_ids import with_field_id
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
        return catalog.get_table(_identifier(name))
    except DatabaseNotExistException:
        return None
    except TableNotExistException:
        spelled = _in_another_case(catalog, name)
    try:
        return catalog.get_table(_identifier(spelled)) if spelled else None
    except TableNotExistException:
        return None


def _in_another_case(catalog: Any, name: TableName) -> TableName | None:
    from pypaimon.catalog.catalog_exception import DatabaseNotExistException

    try:
        tables = catalog.list_tables(name.database)
    except DatabaseNotExistException:
        return None
    table, *branch = name.table.split("$", 1)
    same = [each for each in tables if each.lower() == table.lower()]
    return replace(name, table="$".join([*same, *branch])) if len(same) == 1 else None


def create_table(catalog: Any, name: TableName, schema: PaimonSchema) -> None:
    """Create the database and the table where they do not exist.

    Raises:
        ValueError: pypaimon refuses the schema or an option.
    """
    from pypaimon import Schema

    catalog.create_database(name.database, True)
    fields = _new_fields(schema.columns)
    native = Schema(
        fields,
        list(schema.partition_keys),
        list(schema.primary_keys),
        dict(schema.options),
        schema.comment,
    )
    catalog.create_table(_identifier(name), native, True)


def schema_of(table: Any) -> PaimonSchema:
    """The schema that the table object was loaded with."""
    native = table.table_schema
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
    """The latest snapshot now; the LATEST hint is checked against the files."""
    return table.snapshot_manager().get_latest_snapshot()


def find_snapshot(table: Any, snapshot_id: int) -> Any | None:
    """The snapshot of that id; None when it expired or never was."""
    return table.snapshot_manager().get_snapshot_by_id(snapshot_id)


def retained_snapshots(table: Any) -> list[Any]:
    """All snapshots that still exist, oldest first."""
    snapshots: list[Any] = table.snapshot_manager().list_snapshots()
    return snapshots


def live_entries(table: Any, snapshot: Any) -> list[Any]:
    """The manifest entries of all data files of a snapshot, with their statistics."""
    from pypaimon.manifest.manifest_list_manager import ManifestListManager
    from pypaimon.read.scanner.file_scanner import FileScanner

    scanner = FileScanner(table, lambda: ([], None))
    manifests = ManifestListManager(table).read_all(snapshot)
    entries: list[Any] = scanner.read_manifest_entries(manifests, keep_stats=True)
    return entries


def changes_files(table: Any, snapshot: Any) -> bool:
    """Whether a snapshot added or removed data files."""
    from pypaimon.manifest.manifest_list_manager import ManifestListManager

    manifests = ManifestListManager(table).read_delta(snapshot)
    return any(each.num_added_files or each.num_deleted_files for each in manifests)


def bucket_directory(table: Any, partition: Sequence[Any], bucket: int) -> str:
    """The directory of a bucket's data files, as Paimon's Java writers spell it."""
    from pypaimon.utils.file_store_path_factory import canonical_data_file_path

    path: str = canonical_data_file_path(table, tuple(partition), bucket, "x")
    return path.rpartition("/")[0]


def column_range(entry: Any, column: str) -> tuple[Any, Any, int | None]:
    """Minimum, maximum and NULL count in a file's statistics; None for what they do not have."""
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


def commit_message(
    partition: Sequence[Any],
    bucket: int,
    new_files: Sequence[Any],
    deleted_files: Sequence[Any],
    check_from_snapshot: int | None,
    index_adds: Sequence[Any] = (),
    index_deletes: Sequence[Any] = (),
) -> Any:
    """What changes in one bucket.

    ``deleted_files`` are the objects of ``live_entries``; ``index_adds`` and ``index_deletes`` are
    from ``index_library``.
    """
    from pypaimon.write.commit_message import CommitMessage

    return CommitMessage(
        partition=tuple(partition),
        bucket=bucket,
        new_files=list(new_files),
        deleted_files=list(deleted_files),
        check_from_snapshot=check_from_snapshot,
        index_adds=list(index_adds),
        index_deletes=list(index_deletes),
    )


def commit_once(
    table: Any,
    publication: Any,
    user: str,
    identifier: int,
    messages: Sequence[Any],
    properties: Mapping[str, str],
) -> None:
    """Write manifests and hand the new snapshot to ``publication``, without any retry.

    ``publication`` has pypaimon's interface ``SnapshotCommit``.

    Raises:
        RuntimeError: a conflict, or ``publication`` did not succeed.
    """
    from pypaimon.write.file_store_commit import FileStoreCommit

    # No retries: what may have happened in between has to be looked at first, by our own rules.
    once = table.copy_without_time_travel({"commit.max-retries": "0"})
    FileStoreCommit(publication, once, user).commit(list(messages), identifier, dict(properties))


def snapshot_json(snapshot: Any) -> str:
    """The snapshot file's text."""
    from pypaimon.common.json_util import JSON

    text: str = JSON.to_json(snapshot, indent=2)
    return text


def _identifier(name: TableName) -> Any:
    from pypaimon.common.identifier import Identifier

    return Identifier.create(name.database, name.table)


def _new_fields(columns: Sequence[PaimonColumn]) -> list[Any]:
    """Fields with ids as pypaimon's own ``Schema.from_pyarrow_schema`` numbers them."""
    from pypaimon.schema.data_types import (
        AtomicInteger,
        DataField,
        DataTypeParser,
        reassign_field_id,
    )

    counter = AtomicInteger(-1)
    fields = []
    for column in columns:
        field_id = counter.increment_and_get()
        kind = reassign_field_id(DataTypeParser.parse_data_type(column.type), counter)
        fields.append(DataField(field_id, column.name, kind, column.comment, column.default))
    return fields
