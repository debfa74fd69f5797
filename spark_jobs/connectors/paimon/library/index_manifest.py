"""Index manifests and their index files, with pypaimon. Driver only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from spark_jobs.connectors.paimon.format.hash_index import HASH
from spark_jobs.connectors.paimon.format.locations import filesystem_path
from spark_jobs.connectors.paimon.format.manifest_entries import BucketKey
from spark_jobs.connectors.paimon.format.vectors import VectorRange
from spark_jobs.connectors.paimon.library.exact_partitions import (
    index_manifest_file,
    new_partition,
)
from spark_jobs.connectors.paimon.library.manifest_files import require_index_manifest
from spark_jobs.connectors.paimon.library.metadata_checks import (
    place_of_metadata,
    reading_metadata,
    require_sound_index,
)

DELETION_VECTORS: Final = "DELETION_VECTORS"
_ADD: Final = 0
_DELETE: Final = 1


@dataclass(frozen=True, slots=True)
class IndexFile:
    """An index file of a snapshot; ``vectors`` are by name of the data file."""

    entry: Any
    kind: str
    path: str
    vectors: Mapping[str, VectorRange]


def index_files(table: Any, snapshot: Any) -> list[IndexFile]:
    """All index files of a snapshot.

    Raises:
        CatalogError: METADATA_UNREADABLE, also if the index manifest is gone.
    """
    if snapshot.index_manifest is None:
        return []
    with reading_metadata(place_of_metadata(table)):
        require_index_manifest(table, snapshot.index_manifest)
        entries = index_manifest_file(table).read(snapshot.index_manifest)
        entries = [each for each in entries if each.kind == _ADD]
        return [_index_file(table, entry) for entry in entries]


def _index_file(table: Any, entry: Any) -> IndexFile:
    require_sound_index(entry)
    file = entry.index_file
    path = table.path_factory().bucket_index_path(
        tuple(entry.partition.values), entry.bucket, file, table.file_io
    )
    vectors = {
        name: VectorRange(meta.offset, meta.length, meta.cardinality)
        for name, meta in (file.dv_ranges or {}).items()
    }
    return IndexFile(entry, file.index_type, filesystem_path(path), vectors)


def index_directory(table: Any) -> str | None:
    """The directory for new index files; None: beside the data files of their bucket."""
    paths = table.path_factory()
    if paths.index_file_in_data_file_dir:
        return None
    return filesystem_path(str(paths.index_path()))


def new_vector_index(
    partition: Any, bucket: int, path: str, size: int, vectors: Mapping[str, VectorRange]
) -> Any:
    """The index manifest entry of a new index file; ``vectors`` are by name of the data file.

    ``partition`` is that of a data file's manifest entry: Java compares their bytes.
    """
    from pypaimon.index.deletion_vector_meta import DeletionVectorMeta
    from pypaimon.index.index_file_meta import IndexFileMeta
    from pypaimon.manifest.index_manifest_entry import IndexManifestEntry

    ranges = {
        name: DeletionVectorMeta(name, each.offset, each.length, each.cardinality)
        for name, each in vectors.items()
    }
    name = path.rpartition("/")[2]
    meta = IndexFileMeta(DELETION_VECTORS, name, size, len(ranges), ranges)
    return IndexManifestEntry(_ADD, partition, bucket, meta)


def new_hash_index(table: Any, place: BucketKey, path: str, size: int, hashes: int) -> Any:
    """The index manifest entry of a new file of the HASH index, of ``size`` bytes."""
    from pypaimon.index.index_file_meta import IndexFileMeta
    from pypaimon.manifest.index_manifest_entry import IndexManifestEntry

    meta = IndexFileMeta(HASH, path.rpartition("/")[2], size, hashes)
    return IndexManifestEntry(_ADD, new_partition(table, place.partition), place.bucket, meta)


def removed_index(entry: Any) -> Any:
    """The index manifest entry that removes the index file of ``entry``."""
    from pypaimon.manifest.index_manifest_entry import IndexManifestEntry

    return IndexManifestEntry(_DELETE, entry.partition, entry.bucket, entry.index_file)


def index_name(entry: Any) -> str:
    """The name of an entry's index file."""
    return str(entry.index_file.file_name)


def marked_files(entry: Any) -> list[str]:
    """The names of the data files whose vectors are in an entry's index file."""
    return list(entry.index_file.dv_ranges or {})


def is_hash_index(entry: Any) -> bool:
    """Whether an entry's index file is one of the HASH index."""
    return bool(entry.index_file.index_type == HASH)


def is_global_index(entry: Any) -> bool:
    """Whether an entry's index file is of a kind that statements do not keep."""
    return entry.index_file.index_type not in (DELETION_VECTORS, HASH)
