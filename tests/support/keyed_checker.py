"""Holds every data file of a table with a primary key against its manifest entry.

Independent of the code that it judges: pypaimon reads the manifests, pyarrow the files.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pypaimon.manifest.manifest_file_manager import ManifestFileManager
from pypaimon.manifest.manifest_list_manager import ManifestListManager
from pypaimon.schema.data_types import PyarrowFieldParser
from pypaimon.table.file_store_table import FileStoreTable

from spark_jobs.connectors.paimon.format.buckets import key_hashes
from tests.support.judged_values import from_arrow, is_bounded
from tests.support.snapshot_checker import (
    Place,
    differing,
    index_entries,
    path_of,
    place_of,
    problems_of_snapshot,
    stored_files,
)

_RECORD = {"_SEQUENCE_NUMBER": (2147483646, pa.int64()), "_VALUE_KIND": (2147483645, pa.int8())}
_KEY_IDS = 1073741823
_RETRACTING = (1, 3)


def problems_of(table: Any, *, numbered: bool = True) -> list[str]:
    """What is wrong with the latest snapshot of a table of pypaimon, or one at a path.

    ``numbered`` False: files need no field ids, as those that pypaimon writes. Files that are not
    parquet are not looked into.
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
    stored: dict[Place, list[_File]] = defaultdict(list)
    for entry in entries:
        name = entry.file.file_name
        path = path_of(entry, paths)
        if not path.is_file():
            found.append(f"{name}: there is no such file")
        elif path.suffix == ".parquet":
            file = _File(table, entry, path, numbered)
            found += [f"{name}: {problem}" for problem in _problems_of_file(file)]
            stored[place_of(entry)].append(file)
    if table.table_schema.options.get("bucket", "-1") == "-1":
        found += _problems_of_hash_index(table, snapshot, stored, paths)
    marked = _marked_files(table, snapshot)
    found += _problems_of_changelog(table, snapshot, paths)
    options = table.table_schema.options
    looks_up = options.get("changelog-producer") == "lookup" or "force-lookup" in options
    for place, files in stored.items():
        found += [f"bucket {place}: {problem}" for problem in _problems_of_levels(files)]
        # Java's compaction keeps the number of a row that it copies and marks, or looks up.
        whole = [file for file in files if file.meta.file_name not in marked and not looks_up]
        found += [f"bucket {place}: {problem}" for problem in _problems_of_numbers(whole)]
    return found


def _problems_of_hash_index(
    table: Any, snapshot: Any, stored: Mapping[Place, list[_File]], paths: Mapping[str, Path]
) -> Iterator[str]:
    """Keys whose hash is not in the index of their bucket, or in that of another one."""
    indexes: dict[Place, set[int]] = {}
    for entry in index_entries(table, snapshot) if stored else []:
        if entry.index_file.index_type != "HASH":
            continue
        place, content = place_of(entry), paths[entry.index_file.file_name].read_bytes()
        if place in indexes:
            yield f"bucket {place}: it has two HASH index files"
        hashes = [each for (each,) in struct.iter_unpack(">i", content)]
        indexes[place] = set(hashes)
        if not len(hashes) == len(indexes[place]) == entry.index_file.row_count:
            yield f"bucket {place}: its HASH index has {len(hashes)} hashes, some twice, or says so"
    for place, files in stored.items():
        others = {
            each
            for other, index in indexes.items()
            if other[0] == place[0] and other != place
            for each in index
        }
        for file in files:
            hashes = set(file.hashes)
            if not hashes <= indexes.get(place, set()):
                yield f"{file.meta.file_name}: the HASH index of its bucket lacks some of its keys"
            if hashes & others:
                yield f"{file.meta.file_name}: the HASH index has keys of it in another bucket"


def _marked_files(table: Any, snapshot: Any) -> set[str]:
    """Names of the files with a deletion vector."""
    return {
        name
        for entry in index_entries(table, snapshot)
        for name in entry.index_file.dv_ranges or ()
    }


@dataclass(frozen=True)
class _File:
    """A data file, its manifest entry and what the table's schema says about it."""

    table: Any
    entry: Any
    path: Path
    numbered: bool
    is_changelog: bool = False

    @property
    def meta(self) -> Any:
        return self.entry.file

    @cached_property
    def content(self) -> pa.Table:
        return pq.ParquetFile(self.path).read()

    @cached_property
    def columns(self) -> dict[str, tuple[int, pa.DataType, bool]]:
        """Field id, type and nullability of the columns of the file's schema."""
        fields = self.table.schema_manager.get_schema(self.meta.schema_id).fields
        arrow = PyarrowFieldParser.from_paimon_schema(fields)
        return {f.name: (f.id, arrow.field(f.name).type, f.type.nullable) for f in fields}

    @property
    def key(self) -> list[str]:
        return list(self.table.trimmed_primary_keys)

    @cached_property
    def keys(self) -> list[tuple[Any, ...]]:
        prefix = "" if _is_thin(self.content.schema) else "_KEY_"
        found = self.content.select([f"{prefix}{name}" for name in self.key])
        return [tuple(row.values()) for row in from_arrow(found)]

    @cached_property
    def hashes(self) -> list[int]:
        """The hashes of the keys; that they are Java's is seen in the indexes that Java writes."""
        prefix = "" if _is_thin(self.content.schema) else "_KEY_"
        keys = self.content.select([f"{prefix}{name}" for name in self.key])
        keys = keys.rename_columns(self.key)
        return list(key_hashes(keys, list(keys.schema)).tolist())

    @cached_property
    def numbers(self) -> list[int]:
        return list(self.content["_SEQUENCE_NUMBER"].to_pylist())

    def bound(self, value: Any, column: str) -> Any:
        """A value of a manifest, to be compared with ``values``."""
        array = pa.chunked_array([pa.array([value], self.columns[column][1])])
        return from_arrow(pa.table({column: array}))[0][column]

    def key_bound(self, row: Any) -> tuple[Any, ...]:
        return tuple(self.bound(v, name) for v, name in zip(row.values, self.key, strict=True))

    def values(self, column: str) -> list[Any]:
        return [row[column] for row in from_arrow(self.content.select([column]))]


def _problems_of_changelog(table: Any, snapshot: Any, paths: Mapping[str, Path]) -> Iterator[str]:
    """What is wrong with the changelog files of a snapshot."""
    if snapshot.changelog_manifest_list is None:
        return
    size = paths[snapshot.changelog_manifest_list].stat().st_size
    if size != snapshot.changelog_manifest_list_size:
        yield f"its list of changelog manifests has {size} bytes"
    manifests = ManifestListManager(table).read_changelog(snapshot)
    entries = ManifestFileManager(table).read_entries_parallel(manifests, drop_stats=False)
    counted = sum(entry.file.row_count for entry in entries)
    if snapshot.changelog_record_count != counted:
        yield f"the snapshot counts {snapshot.changelog_record_count} changes, not {counted}"
    for entry in entries:
        path = paths.get(entry.file.file_name)
        if path is None or path.parent.name != f"bucket-{entry.bucket}":
            yield f"{entry.file.file_name}: there is no such changelog file in its bucket"
        elif path.suffix == ".parquet":
            file = _File(table, entry, path, numbered=True, is_changelog=True)
            yield from (f"{path.name}: {problem}" for problem in _problems_of_file(file))


def _problems_of_file(file: _File) -> Iterator[str]:
    wrong = list(_problems_of_columns(file))
    if wrong:
        yield from wrong
        return
    kinds = file.content["_VALUE_KIND"].to_pylist()
    yield from differing(
        {
            "size": (file.meta.file_size, file.path.stat().st_size),
            "row count": (file.meta.row_count, file.content.num_rows),
            "delete count": (file.meta.delete_row_count, sum(k in _RETRACTING for k in kinds)),
            "schema": (file.meta.schema_id in range(file.table.table_schema.id + 1), True),
        }
    )
    if any(kind not in range(4) for kind in kinds):
        yield "it has a record of a kind that there is not"
    if not file.keys:
        yield "it is empty"
        return
    yield from _problems_of_keys(file)
    yield from _problems_of_values(file)


def _problems_of_columns(file: _File) -> Iterator[str]:
    key = {
        f"_KEY_{name}": (_KEY_IDS + file.columns[name][0], file.columns[name][1], False)
        for name in file.key
    }
    record = {name: (number, kind, False) for name, (number, kind) in _RECORD.items()}
    found = file.content.schema
    may_be_thin = file.table.table_schema.options.get("data-file.thin-mode") == "true"
    if may_be_thin and _is_thin(found):
        key = {}
    expected = key | record | file.columns
    if found.names != list(expected):
        yield f"its columns are {found.names} and not {list(expected)}"
        return
    for name, (number, kind, nullable) in expected.items():
        field = found.field(name)
        if not _is_like(field.type, kind):
            yield f"column {name} is of type {field.type} and not {kind}"
        if not file.numbered:
            continue
        stored = int((field.metadata or {}).get(b"PARQUET:field_id", -1))
        yield from differing({f"field id of {name}": (number, stored)})
        if field.nullable != nullable:
            yield f"column {name} is {'' if field.nullable else 'not '}nullable"


def _is_thin(schema: pa.Schema) -> bool:
    return not any(name.startswith("_KEY_") for name in schema.names)


def _is_like(stored: pa.DataType, expected: pa.DataType) -> bool:
    """Whether they are the same but for units of time and the nullability of nested fields."""
    if pa.types.is_timestamp(expected):
        return pa.types.is_timestamp(stored) and bool(stored.tz) == bool(expected.tz)
    if pa.types.is_nested(expected):
        pairs = zip(_children(stored), _children(expected), strict=False)
        return stored.id == expected.id and all(_is_like(*pair) for pair in pairs)
    return bool(stored == expected)


def _children(kind: pa.DataType) -> list[pa.DataType]:
    return [kind.field(i).type for i in range(kind.num_fields)]


def _problems_of_keys(file: _File) -> Iterator[str]:
    if any(value is None for key in file.keys for value in key):
        yield "it has a NULL in its key"
        return
    for first, second in pairwise(file.keys):
        if first > second or (first == second and not file.is_changelog):
            yield f"key {second} stands behind {first}"
    yield from differing(
        {
            "first key": (file.key_bound(file.meta.min_key), file.keys[0]),
            "last key": (file.key_bound(file.meta.max_key), file.keys[-1]),
            "lowest sequence number": (file.meta.min_sequence_number, min(file.numbers)),
            "highest sequence number": (file.meta.max_sequence_number, max(file.numbers)),
        }
    )
    for index, name in enumerate(file.key):
        values = [key[index] for key in file.keys]
        said = _statistics(file, file.meta.key_stats, index, name)
        if said[0] not in (None, min(values)) or said[1] not in (None, max(values)) or said[2]:
            yield f"the statistics of key {name} are wrong: {said}"
        if file.values(name) != values:
            yield f"column {name} differs from the key"


def _statistics(file: _File, statistics: Any, index: int, column: str) -> tuple[Any, Any, Any]:
    """Minimum, maximum and NULL count."""
    counts = statistics.null_counts
    return (
        file.bound(statistics.min_values.get_field(index), column),
        file.bound(statistics.max_values.get_field(index), column),
        counts[index] if counts else None,
    )


def _problems_of_values(file: _File) -> Iterator[str]:
    said = file.meta.value_stats
    names = [field.name for field in said.min_values.fields][: len(said.min_values)]
    for index, name in enumerate(names):
        if pa.types.is_nested(file.columns[name][1]):
            continue
        values = file.values(name)
        minimum, maximum, nulls = _statistics(file, said, index, name)
        outside = [value for value in values if not is_bounded(value, minimum, maximum)]
        if outside:
            yield f"{name} has {outside[0]!r}, which is not from {minimum!r} to {maximum!r}"
        if nulls not in (None, values.count(None)):
            yield f"{name} has {values.count(None)} NULLs, but its entry says {nulls}"


def _problems_of_levels(files: list[_File]) -> Iterator[str]:
    by_level = defaultdict(list)
    for file in files:
        if file.meta.level > 0:
            bounds = (file.key_bound(file.meta.min_key), file.key_bound(file.meta.max_key))
            by_level[file.meta.level].append((*bounds, file.meta.file_name))
    for level, ranges in by_level.items():
        for (_, last, before), (first, _, after) in pairwise(sorted(ranges)):
            if first <= last:
                yield f"{before} and {after} of level {level} overlap"


def _problems_of_numbers(files: list[_File]) -> Iterator[str]:
    records: Counter[Any] = Counter()
    for file in files:
        if set(_RECORD) <= set(file.content.column_names):
            records.update(zip(file.keys, file.numbers, strict=True))
    for (key, number), count in records.items():
        if count > 1:
            yield f"key {key} has sequence number {number} {count} times"
