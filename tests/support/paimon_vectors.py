"""Deletion vectors and index files of Paimon tables as pypaimon sees them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pypaimon.manifest.index_manifest_file import IndexManifestFile


def vectors(table: Any) -> list[tuple[Path, Any]]:
    """Live data files with rows that are marked as deleted, each with its ``DeletionFile``."""
    splits = table.new_read_builder().new_scan().plan().splits()
    return [
        (Path(path), vector)
        for split in splits
        for path, vector in zip(split.file_paths, split.data_deletion_files or (), strict=False)
        if vector is not None
    ]


def live_indexes(table: Any) -> set[Path]:
    """The files with deletion vectors or the HASH index of the latest snapshot."""
    snapshot = table.snapshot_manager().get_latest_snapshot()
    if snapshot is None or snapshot.index_manifest is None:
        return set()
    paths, entries = table.path_factory(), IndexManifestFile(table).read(snapshot.index_manifest)
    return {
        Path(
            paths.bucket_index_path(
                tuple(each.partition.values), each.bucket, each.index_file, table.file_io
            )
        )
        for each in entries
        if each.index_file.index_type == "HASH" or each.index_file.dv_ranges
    }
