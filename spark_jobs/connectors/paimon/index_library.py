"""The calls of pypaimon that concern index files, as ``library`` has the others. Driver only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spark_jobs.connectors.paimon.external_paths import local_file
from spark_jobs.connectors.paimon.vectors import VectorRange

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
        FileNotFoundError: the index manifest is gone, which pypaimon takes for an empty one.
    """
    from pypaimon.manifest.index_manifest_file import IndexManifestFile

    if snapshot.index_manifest is None:
        return []
    manifest = IndexManifestFile(table)
    path = f"{manifest.manifest_path}/{snapshot.index_manifest}"
    if not manifest.file_io.exists(path):
        raise FileNotFoundError(f"index manifest {path} does not exist")
    paths = table.path_factory()
    return [
        IndexFile(
            entry=entry,
            kind=entry.index_file.index_type,
            path=local_file(
                paths.bucket_index_path(
                    tuple(entry.partition.values), entry.bucket, entry.index_file, table.file_io
                )
            ),
            vectors={
                name: VectorRange(meta.offset, meta.length, meta.cardinality)
                for name, meta in (entry.index_file.dv_ranges or {}).items()
            },
        )
        for entry in manifest.read(snapshot.index_manifest)
        if entry.kind == _ADD
    ]


def index_directory(table: Any) -> str | None:
    """Where new index files belong; None: beside the data files of their bucket."""
    paths = table.path_factory()
    return None if paths.index_file_in_data_file_dir else str(paths.index_path())


def new_vector_index(
    table: Any,
    partition: Sequence[Any],
    bucket: int,
    path: str,
    size: int,
    vectors: Mapping[str, VectorRange],
) -> Any:
    """The index manifest's entry for a new file of deletion vectors, by data file name."""
    from pypaimon.index.deletion_vector_meta import DeletionVectorMeta
    from pypaimon.index.index_file_meta import IndexFileMeta
    from pypaimon.manifest.index_manifest_entry import IndexManifestEntry
    from pypaimon.table.row.generic_row import GenericRow

    ranges = {
        name: DeletionVectorMeta(name, each.offset, each.length, each.cardinality)
        for name, each in vectors.items()
    }
    name = path.rpartition("/")[2]
    meta = IndexFileMeta(DELETION_VECTORS, name, size, len(ranges), ranges)
    row = GenericRow(list(partition), table.partition_keys_fields)
    return IndexManifestEntry(_ADD, row, bucket, meta)


def removed_index(entry: Any) -> Any:
    """The index manifest's entry that takes the index file of ``entry`` out."""
    from pypaimon.manifest.index_manifest_entry import IndexManifestEntry

    return IndexManifestEntry(_DELETE, entry.partition, entry.bucket, entry.index_file)
