"""Holds every data file of a table without a primary key against its manifest entry.

Independent of the code that it judges: pypaimon reads the manifests, pyarrow and fastavro the
files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
from pypaimon.manifest.manifest_file_manager import ManifestFileManager
from pypaimon.manifest.manifest_list_manager import ManifestListManager
from pypaimon.schema.data_types import PyarrowFieldParser
from pypaimon.table.file_store_table import FileStoreTable

from tests.support.judged_values import from_arrow, is_bounded
from tests.support.snapshot_checker import (
    Place,
    differing,
    marked_rows,
    path_of,
    place_of,
    problems_of_snapshot,
    stored_files,
)


def problems_of(table: Any) -> list[str]:
    """What is wrong with the latest snapshot of a table of pypaimon, or one at a path.

    Of files that are not parquet, only sizes and row counts are looked at.
    """
    if isinstance(table, str | Path):
        table = FileStoreTable.from_path(str(table))
    snapshot = table.snapshot_manager().get_latest_snapshot()
    if snapshot is None:
        return []
    manifests = ManifestListManager(table).read_all(snapshot)
    entries = ManifestFileManager(table).read_entries_parallel(manifests, drop_stats=False)
    paths = stored_files(table)
    found = list(problems_of_snapshot(table, snapshot, entries, paths))
    stored: dict[Place, list[Any]] = defaultdict(list)
    for entry in entries:
        name, path = entry.file.file_name, path_of(entry, paths)
        if not path.is_file():
            found.append(f"{name}: there is no such file")
            continue
        file = _File(table, entry, path)
        found += [f"{name}: {problem}" for problem in _problems_of_file(file)]
        stored[place_of(entry)].append(entry)
    if int(table.table_schema.options.get("bucket", "-1")) > 0:
        for place, files in stored.items():
            found += [f"bucket {place}: {problem}" for problem in _problems_of_order(files)]
    return found


def rows_in_order(table: Any, column: str) -> dict[Place, list[Any]]:
    """The values of live rows by bucket, in the order of their files' sequence numbers."""
    snapshot = table.snapshot_manager().get_latest_snapshot()
    manifests = ManifestListManager(table).read_all(snapshot) if snapshot else []
    entries = ManifestFileManager(table).read_entries_parallel(manifests, drop_stats=True)
    paths = stored_files(table)
    marked = marked_rows(table, snapshot, paths)
    found: dict[Place, list[Any]] = defaultdict(list)
    for entry in sorted(entries, key=lambda each: each.file.min_sequence_number):
        gone = marked.get(entry.file.file_name, set())
        values = _values(path_of(entry, paths), column)
        live = [value for number, value in enumerate(values) if number not in gone]
        found[place_of(entry)] += live
    return {place: values for place, values in found.items() if values}


def _values(path: Path, column: str) -> list[Any]:
    if path.suffix == ".parquet":
        return list(pq.ParquetFile(path).read([column])[column].to_pylist())
    if path.suffix == ".orc":
        return list(orc.ORCFile(path).read([column])[column].to_pylist())
    with path.open("rb") as stream:
        return [row[column] for row in fastavro.reader(stream)]


@dataclass(frozen=True)
class _File:
    """A data file, its manifest entry and what the schema that wrote it says about it."""

    table: Any
    entry: Any
    path: Path

    @property
    def meta(self) -> Any:
        return self.entry.file

    @cached_property
    def content(self) -> pa.Table:
        return pq.ParquetFile(self.path).read()

    @cached_property
    def columns(self) -> dict[str, tuple[pa.DataType, bool]]:
        """Type and nullability of the columns of the file's schema."""
        fields = self.table.schema_manager.get_schema(self.meta.schema_id).fields
        arrow = PyarrowFieldParser.from_paimon_schema(fields)
        return {field.name: (arrow.field(field.name).type, field.type.nullable) for field in fields}

    @property
    def rows(self) -> int:
        if self.path.suffix == ".parquet":
            return int(self.content.num_rows)
        if self.path.suffix == ".orc":
            return int(orc.ORCFile(self.path).nrows)
        with self.path.open("rb") as stream:
            return sum(1 for _ in fastavro.reader(stream))

    def bound(self, value: Any, column: str) -> Any:
        """A value of a manifest, to be compared with ``values``."""
        array = pa.chunked_array([pa.array([value], self.columns[column][0])])
        return from_arrow(pa.table({column: array}))[0][column]

    def values(self, column: str) -> list[Any]:
        return [row[column] for row in from_arrow(self.content.select([column]))]


def _problems_of_file(file: _File) -> Iterator[str]:
    yield from differing(
        {
            "size": (file.meta.file_size, file.path.stat().st_size),
            "row count": (file.meta.row_count, file.rows),
            "delete count": (file.meta.delete_row_count or 0, 0),
            "level": (file.meta.level, 0),
        }
    )
    if file.meta.schema_id not in range(file.table.table_schema.id + 1):
        yield f"there is no schema {file.meta.schema_id}"
        return
    if file.path.suffix != ".parquet":
        return
    wrong = list(_problems_of_columns(file))
    yield from wrong
    if not wrong:
        yield from _problems_of_values(file)
        yield from _problems_of_partition(file)


def _problems_of_columns(file: _File) -> Iterator[str]:
    found = file.content.schema
    expected = list(file.meta.write_cols or file.columns)
    if found.names != expected:
        yield f"its columns are {found.names} and not {expected}"
        return
    held = [name for name in file.columns if name in found.names]
    for name, (kind, nullable) in ((name, file.columns[name]) for name in held):
        stored = found.field(name).type
        if not pa.types.is_nested(kind) and not _is_like(stored, kind):
            yield f"column {name} is of type {stored} and not {kind}"
        if not nullable and file.content[name].null_count:
            yield f"column {name} has NULLs"


def _is_like(stored: pa.DataType, expected: pa.DataType) -> bool:
    """Whether they are the same but for units of time."""
    if pa.types.is_timestamp(expected):
        return pa.types.is_timestamp(stored) and bool(stored.tz) == bool(expected.tz)
    return bool(stored == expected)


def _problems_of_values(file: _File) -> Iterator[str]:
    said = file.meta.value_stats
    names = [field.name for field in said.min_values.fields][: len(said.min_values)]
    for index, name in enumerate(names):
        kind = file.columns[name][0]
        if pa.types.is_nested(kind) or pa.types.is_timestamp(kind):
            continue
        values = file.values(name)
        minimum = file.bound(said.min_values.get_field(index), name)
        maximum = file.bound(said.max_values.get_field(index), name)
        outside = [value for value in values if not is_bounded(value, minimum, maximum)]
        if outside:
            yield f"{name} has {outside[0]!r}, which is not from {minimum!r} to {maximum!r}"
        nulls = said.null_counts[index] if said.null_counts else None
        if nulls not in (None, values.count(None)):
            yield f"{name} has {values.count(None)} NULLs, but its entry says {nulls}"


def _problems_of_partition(file: _File) -> Iterator[str]:
    """Rows of another partition than that of the entry."""
    keys: Sequence[str] = file.table.partition_keys
    for name, value in zip(keys, file.entry.partition.values, strict=True):
        if name not in file.content.column_names:
            continue
        other = [each for each in file.values(name) if each != file.bound(value, name)]
        if other:
            yield f"it has {name} = {other[0]!r}, but belongs to the partition {value!r}"


def _problems_of_order(entries: Sequence[Any]) -> Iterator[str]:
    """Ranges of sequence numbers that overlap, or have less numbers than rows."""
    ranges: dict[str, tuple[int, int]] = {}
    for entry in entries:
        file = entry.file
        ranges[file.file_name] = (file.min_sequence_number, file.max_sequence_number)
        if file.max_sequence_number - file.min_sequence_number + 1 < file.row_count:
            yield f"{file.file_name} has {file.row_count} rows, but {_text(ranges[file.file_name])}"
    yield from _overlaps(ranges)


def _overlaps(ranges: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    ordered = sorted(ranges.items(), key=lambda each: each[1])
    for (before, first), (after, second) in pairwise(ordered):
        if second[0] <= first[1]:
            yield f"{before} and {after} overlap: {_text(first)} and {_text(second)}"


def _text(numbers: tuple[int, int]) -> str:
    return f"sequence numbers {numbers[0]} to {numbers[1]}"
