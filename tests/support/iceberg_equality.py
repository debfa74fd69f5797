"""Rows of Iceberg tables that are deleted by value, which pyiceberg neither writes nor reads."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFileContent
from pyiceberg.schema import Schema

from spark_jobs.connectors.iceberg.table.manifests import DELETES, EQUALITY_DELETES
from spark_jobs.connectors.iceberg.table.pinned_table import pinned_table
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName
from tests.support.iceberg_files import rows_in
from tests.support.iceberg_foreign_files import add_file

# Types by whose values rows are deleted.
_COMPARED: Final = (
    *("boolean", "int", "long", "string", "date", "timestamp", "timestamptz", "binary"),
)


class _File(NamedTuple):
    path: Path
    location: str
    sequence_number: int


class _Keys(NamedTuple):
    columns: tuple[str, ...]
    sequence_number: int
    values: frozenset[tuple[Any, ...]]


def delete_by_value(spec: CatalogSpec, name: TableName, rows: pa.Table) -> bool:
    """Delete all rows with the values of ``rows``, in all partitions.

    False if there is no column by which rows can be deleted. The table's first partition spec must
    have no field.
    """
    connector = open_connector(spec, {})
    table = pinned_table(connector.metadata.load_table(name)).table
    assert not table.specs()[0].fields
    schema = table.schema()
    columns = [each.name for each in schema.fields if _is_compared(str(each.field_type))]
    if not columns:
        return False
    path = Path(urlsplit(table.location()).path, f"{uuid.uuid4()}.parquet")
    pq.write_table(rows.select(columns).cast(schema.select(*columns).as_arrow()), path)
    add_file(
        connector,
        DELETES,
        name,
        content=EQUALITY_DELETES,
        file_format="PARQUET",
        file_path=f"file://{path}",
        file_size_in_bytes=path.stat().st_size,
        record_count=rows.num_rows,
        equality_ids=sorted(schema.find_field(each).field_id for each in columns),
    )
    return True


def live_rows(table: Any) -> list[dict[str, Any]]:
    """The rows of pyiceberg's ``table`` that neither a position nor a value deletes.

    Deletes by value must be about all partitions.
    """
    schema = table.schema()
    data, positions, keys = _files(table)
    gone = _positions(positions)
    return [
        row
        for file in data
        for number, row in enumerate(rows_in(file.path, schema))
        if number not in gone[file.location]
        if not any(_is_deleted(row, file, each) for each in keys)
    ]


def _is_deleted(row: dict[str, Any], file: _File, keys: _Keys) -> bool:
    is_older = file.sequence_number < keys.sequence_number
    return is_older and tuple(row.get(each) for each in keys.columns) in keys.values


def _files(table: Any) -> tuple[list[_File], list[_File], list[_Keys]]:
    """The files of data and of position deletes, and what equality deletes delete."""
    found: dict[Any, list[_File]] = defaultdict(list)
    keys = []
    for entry in _entries(table):
        file = entry.data_file
        known = _File(Path(urlsplit(file.file_path).path), file.file_path, entry.sequence_number)
        found[file.content].append(known)
        if file.content == DataFileContent.EQUALITY_DELETES:
            keys.append(_keys(known, table.schema(), file.equality_ids))
    return found[DataFileContent.DATA], found[DataFileContent.POSITION_DELETES], keys


def _entries(table: Any) -> Iterator[Any]:
    snapshot = table.current_snapshot()
    for manifest in snapshot.manifests(table.io) if snapshot else ():
        yield from manifest.fetch_manifest_entry(table.io)


def _keys(file: _File, schema: Schema, ids: list[int]) -> _Keys:
    columns = tuple(schema.find_field(each).name for each in ids)
    values = frozenset(tuple(row[each] for each in columns) for row in rows_in(file.path, schema))
    return _Keys(columns, file.sequence_number, values)


def _positions(files: list[_File]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = defaultdict(set)
    for file in files:
        for row in pq.ParquetFile(file.path).read().to_pylist():
            found[row["file_path"]].add(row["pos"])
    return found


def _is_compared(kind: str) -> bool:
    return kind in _COMPARED or kind.startswith("decimal")
