"""How the manifests of a snapshot are written anew: fewer, clustered by partition. Driver only.

As Iceberg's ``rewrite_manifests``: every file keeps its snapshot, its sequence numbers and all else
that its entry says. Files of deletes that apply to no data file are left out, as Iceberg's
``remove_dangling_deletes`` does.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

from spark_jobs.avro import open_manifest
from spark_jobs.connectors.iceberg.table.live_files import listed_manifests, live_files
from spark_jobs.connectors.iceberg.table.manifests import (
    DATA,
    DELETED,
    FileKey,
    ListedManifest,
    ManifestEntry,
    data_file_fields,
    entries_with_records,
    partition_fields,
)
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.contract.compaction_record import ManifestRecord
from spark_jobs.formats.iceberg.compaction import target_manifest_size
from spark_jobs.packing import in_order
from spark_jobs.storage.files import in_parallel

# How many times the target size a manifest may have that stays.
_MOST: Final = 1.5
_VERSION: Final = "format-version"
# A field that only manifests of version 1 have, and that says nothing.
_OBSOLETE: Final = frozenset(["block_size_in_bytes"])


class Placed(NamedTuple):
    """A live file, as it stands in a manifest."""

    entry: ManifestEntry
    record: Mapping[str, Any]
    listed: ListedManifest


@dataclass(frozen=True, slots=True)
class Shape:
    """The Avro schema of a manifest, and its header."""

    schema: Any
    header: Mapping[str, bytes]

    @property
    def names(self) -> frozenset[str]:
        """The fields that it has of a file."""
        return frozenset(each["name"] for each in data_file_fields(self.schema))

    @property
    def partition(self) -> str:
        """Equal for schemas whose partitions are written alike."""
        kinds = partition_fields(self.schema)
        return json.dumps([(each["name"], each["field-id"], each["type"]) for each in kinds])


class _Manifest(NamedTuple):
    listed: ListedManifest
    shape: Shape
    files: Sequence[Placed]

    @property
    def key(self) -> tuple[int, int, str]:
        return self.listed.spec_id, self.listed.content, self.shape.partition


class Cluster(NamedTuple):
    """The files of one new manifest; ``shape`` None: that of a manifest of new files."""

    spec_id: int
    content: int
    shape: Shape | None
    files: Sequence[Placed]


@dataclass(frozen=True, slots=True)
class ManifestRewrite:
    """What a snapshot is to list: ``kept`` entries of its parent's list, and new ``clusters``.

    ``removed`` are the files of deletes that are left out.
    """

    kept: Sequence[Mapping[str, Any]]
    clusters: Sequence[Cluster]
    removed: Mapping[FileKey, ManifestEntry]
    before: int

    @property
    def record(self) -> ManifestRecord:
        """The counts of it."""
        after = len(self.kept) + len(self.clusters)
        return ManifestRecord(self.before, after, len(self.removed))

    @property
    def changes_nothing(self) -> bool:
        """Whether the manifests are as a rewrite leaves them."""
        return len(self.kept) == self.before

    @property
    def summary(self) -> dict[str, str]:
        """What Iceberg's Java tells of a rewrite in the summary of its snapshot."""
        return {
            "manifests-created": str(len(self.clusters)),
            "manifests-kept": str(len(self.kept)),
            "manifests-replaced": str(self.before - len(self.kept)),
            "entries-processed": str(sum(len(each.files) for each in self.clusters)),
        }


def planned_rewrite(table: PinnedTable) -> ManifestRewrite:
    """How the manifests of the pinned snapshot are written anew.

    Raises:
        CatalogError: METADATA_UNREADABLE.
        InternalError: STORAGE_UNAVAILABLE.
        NotSupportedError: a file is encrypted, or on other storage than the table; the property
            with the target size has an invalid value.
    """
    if table.snapshot is None:
        return ManifestRewrite((), (), {}, 0)
    target = target_manifest_size(table.metadata.properties)
    with reading_metadata(table.place):
        listed = listed_manifests(table.storage, table.snapshot.manifest_list)
        contents = in_parallel(lambda each: table.storage.read(each.path), listed)
        manifests = [_opened(*each) for each in zip(listed, contents, strict=True)]
        removed = _dangling(table, manifests)
        groups: dict[tuple[int, int, str], list[_Manifest]] = defaultdict(list)
        for each in manifests:
            groups[each.key].append(each)
        kept_records: list[Mapping[str, Any]] = []
        clusters: list[Cluster] = []
        for group in groups.values():
            shape, members = _alike(group, str(table.metadata.format_version))
            if _are_settled(members, target, removed):
                members = []
            chosen = {each.listed.path for each in members}
            kept_records += [each.listed.record for each in group if each.listed.path not in chosen]
            clusters += _clusters(shape, members, target)
    keys = {each.entry.key for cluster in clusters for each in cluster.files}
    gone = {key: entry for key, entry in removed.items() if key in keys}
    return ManifestRewrite(kept_records, clusters, gone, len(listed))


def _opened(listed: ListedManifest, content: bytes) -> _Manifest:
    file = open_manifest(content)
    files = [
        Placed(entry, record, listed)
        for entry, record in entries_with_records(file, listed)
        if entry.status != DELETED
    ]
    header = {name: text for name, text in file.metadata.items() if not name.startswith("avro.")}
    return _Manifest(listed, Shape(file.schema, header), files)


def _dangling(table: PinnedTable, manifests: Sequence[_Manifest]) -> dict[FileKey, ManifestEntry]:
    entries = [each.entry for manifest in manifests for each in manifest.files]
    live = live_files(table.storage, entries, table.unpartitioned)
    # A file of vectors stays whole: its removal by an expiry of Java would follow.
    applied = {delete.path for file in live for delete in file.all_deletes}
    return {each.key: each for each in entries if each.content != DATA and each.path not in applied}


def _alike(group: Sequence[_Manifest], version: str) -> tuple[Shape | None, list[_Manifest]]:
    """The manifests that can become some of one shape: that with the most fields."""
    shapes = [each.shape for each in group if _version(each.shape) == version]
    if version == "3":
        shapes = [each for each in shapes if "first_row_id" in each.names]
    if not shapes:
        # Of an older version, whose fields every later one has.
        return None, list(group)
    shape = max(shapes, key=lambda each: len(each.names))
    return shape, [each for each in group if each.shape.names - _OBSOLETE <= shape.names]


def _version(shape: Shape) -> str:
    return shape.header.get(_VERSION, b"1").decode()


def _are_settled(manifests: Sequence[_Manifest], target: int, removed: Collection[FileKey]) -> bool:
    """Whether each has the partitions behind the last one's, and no two fit into one."""
    if not all(each.files for each in manifests):
        return False
    if any(each.entry.key in removed for manifest in manifests for each in manifest.files):
        return False
    if any(_size(each) > target * _MOST and len(each.files) > 1 for each in manifests):
        return False
    found = sorted((sorted(map(_order, each.files)), _size(each)) for each in manifests)
    return all(
        one[-1] <= other[0] and size + more > target
        for (one, size), (other, more) in pairwise(found)
    )


def _size(manifest: _Manifest) -> int:
    return int(manifest.listed.record["manifest_length"])


def _clusters(
    shape: Shape | None, manifests: Sequence[_Manifest], target: int
) -> Iterator[Cluster]:
    files = sorted(
        (each for manifest in manifests for each in manifest.files),
        key=lambda each: (_order(each), each.entry.sequence_number, each.entry.path),
    )
    for part in in_order(files, max(math.ceil(sum(map(_size, manifests)) / target), 1)):
        yield Cluster(part[0].listed.spec_id, part[0].listed.content, shape, part)


def _order(file: Placed) -> list[tuple[bool, Any]]:
    """The order of partitions: NULL first."""
    values = sorted(file.entry.partition.items())
    return [(value is not None, 0 if value is None else value) for _, value in values]
