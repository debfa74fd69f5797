"""The data files of a snapshot, and which delete files apply to each. Driver only.

Follows the Iceberg specification, "Scan Planning".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from spark_jobs.connectors.iceberg.format.deletes import PATH_ID
from spark_jobs.connectors.iceberg.table.manifests import (
    DATA,
    DELETED,
    EQUALITY_DELETES,
    ListedManifest,
    ManifestEntry,
    lean_entries,
    read_list,
    read_manifest,
)
from spark_jobs.storage.files import PARALLEL, in_parallel
from spark_jobs.storage.table_storage import TableStorage

# So many manifests are in memory as they are stored.
_AT_A_TIME: Final = 4 * PARALLEL

PartitionKey = tuple[int, tuple[tuple[int, Any], ...]]


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file, the files with deleted positions and those with equality deletes for it."""

    entry: ManifestEntry
    path: str
    deletes: tuple[ManifestEntry, ...] = ()
    equality_deletes: tuple[ManifestEntry, ...] = ()

    @property
    def all_deletes(self) -> tuple[ManifestEntry, ...]:
        """The files of deletes of both kinds."""
        return (*self.deletes, *self.equality_deletes)

    @property
    def own_deletes(self) -> tuple[ManifestEntry, ...]:
        """The files of position deletes that are about no other file."""
        return tuple(each for each in self.deletes if referenced_file(each) == self.entry.path)

    @property
    def vector(self) -> ManifestEntry | None:
        """Its deletion vector, beside which no other position deletes apply."""
        (found,) = self.deletes if len(self.deletes) == 1 else (None,)
        return found if found is not None and found.is_vector else None


def listed_manifests(storage: TableStorage, manifest_list: str) -> list[ListedManifest]:
    """The manifests of a snapshot; raises as ``read_list``, and what the storage raises."""
    return read_list(storage.read(manifest_list))


def entries_of(
    storage: TableStorage, listed: Sequence[ListedManifest], *, lean: bool = False
) -> list[ManifestEntry]:
    """The entries of live files; raises as ``read_manifest``, and what the storage raises.

    ``lean``: those of data files without the metrics of columns.
    """
    chosen = [each for each in listed if each.may_have_live_files]
    live_entries: list[ManifestEntry] = []
    for start in range(0, len(chosen), _AT_A_TIME):
        some = chosen[start : start + _AT_A_TIME]
        contents = in_parallel(lambda each: storage.read(each.path), some)
        for manifest, content in zip(some, contents, strict=True):
            is_lean = lean and manifest.content == DATA
            entries = (
                lean_entries(content, manifest) if is_lean else read_manifest(content, manifest)
            )
            live_entries += (entry for entry in entries if entry.status != DELETED)
    return live_entries


def live_files(
    storage: TableStorage, entries: Iterable[ManifestEntry], unpartitioned: Collection[int]
) -> tuple[LiveFile, ...]:
    """The data files among ``entries``, by path.

    ``unpartitioned`` are the ids of partition specs without fields: their equality deletes apply to
    all partitions.

    Raises:
        ValueError: a file occurs twice, or has two deletion vectors.
        NotSupportedError: a file is on other storage than the table.
    """
    data, deletes = [], _Deletes()
    for entry in entries:
        if entry.content == DATA:
            data.append(entry)
        else:
            deletes.add(entry, is_global=entry.spec_id in unpartitioned)
    files_by_path = {}
    for entry in data:
        path = storage.path(entry.path)
        if path in files_by_path:
            raise ValueError(f"{path} is listed twice")
        files_by_path[path] = LiveFile(entry, path, *deletes.of(entry))
    return tuple(files_by_path[path] for path in sorted(files_by_path))


@dataclass(slots=True)
class _Deletes:
    """Delete files by what they may apply to."""

    by_path: dict[str, list[ManifestEntry]] = field(default_factory=lambda: defaultdict(list))
    by_partition: dict[PartitionKey, list[ManifestEntry]] = field(
        default_factory=lambda: defaultdict(list)
    )
    equality: dict[PartitionKey, list[ManifestEntry]] = field(
        default_factory=lambda: defaultdict(list)
    )
    everywhere: list[ManifestEntry] = field(default_factory=list)

    def add(self, entry: ManifestEntry, *, is_global: bool) -> None:
        """Take a delete file."""
        if entry.content == EQUALITY_DELETES:
            (self.everywhere if is_global else self.equality[_key(entry)]).append(entry)
            return
        path = referenced_file(entry)
        (self.by_partition[_key(entry)] if path is None else self.by_path[path]).append(entry)

    def of(
        self, data: ManifestEntry
    ) -> tuple[tuple[ManifestEntry, ...], tuple[ManifestEntry, ...]]:
        """The position deletes and the equality deletes for a data file."""
        key, number = _key(data), data.sequence_number
        positions = [
            delete_file
            for delete_file in (*self.by_path.get(data.path, ()), *self.by_partition.get(key, ()))
            if delete_file.sequence_number >= number
        ]
        vectors = [each for each in positions if each.is_vector]
        if len(vectors) > 1:
            raise ValueError(f"{data.path} has {len(vectors)} deletion vectors")
        equality = [
            delete_file
            for delete_file in (*self.equality.get(key, ()), *self.everywhere)
            if delete_file.sequence_number > number
        ]
        return tuple(vectors or positions), tuple(equality)


def may_apply(delete: ManifestEntry, data: ManifestEntry, everywhere: Collection[int]) -> bool:
    """Whether a delete file may be about rows of a data file, whichever is older.

    ``everywhere`` are the specs whose equality deletes apply to all partitions.
    """
    if delete.content == EQUALITY_DELETES:
        return delete.spec_id in everywhere or _key(delete) == _key(data)
    path = referenced_file(delete)
    return path == data.path if path is not None else _key(delete) == _key(data)


def partition_key(spec_id: int, partition: Mapping[int, Any]) -> PartitionKey:
    """Equal for files of one partition; its values are Avro's by field id.

    Floating ones are as text: 0.0 and -0.0 are two values, and NaN is one.
    """
    values = (
        (key, each.hex() if isinstance(each, float) else each) for key, each in partition.items()
    )
    return spec_id, tuple(sorted(values))


def _key(entry: ManifestEntry) -> PartitionKey:
    return partition_key(entry.spec_id, entry.partition)


def referenced_file(entry: ManifestEntry) -> str | None:
    """The only data file that a file of position deletes is about; None if there may be several.

    Bounds of its column of paths are the same only if they are whole.
    """
    named = entry.record.get("referenced_data_file")
    if named is not None:
        return str(named)
    low, high = (entry.by_id(name).get(PATH_ID) for name in ("lower_bounds", "upper_bounds"))
    return None if low is None or low != high else bytes(low).decode()
