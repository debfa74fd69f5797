"""Deletion vectors of Paimon tables as pypaimon sees them."""

from __future__ import annotations

from pathlib import Path
from typing import Any


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
    """The files that hold the deletion vectors of the latest snapshot."""
    return {Path(vector.dv_index_path) for _, vector in vectors(table)}
