"""The directories of a table's files, according to pypaimon. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def table_path(table: Any) -> str:
    """The table's directory."""
    return str(table.table_path).rstrip("/")


def branch_path(table: Any) -> str:
    """The directory with the snapshots, schemas and consumers of the table's branch."""
    from pypaimon.branch.branch_manager import BranchManager

    path: str = BranchManager.branch_path(table_path(table), table.current_branch())
    return path


def bucket_directory(table: Any, partition: Sequence[Any], bucket: int) -> str:
    """The directory of a bucket's data files, spelled as by Paimon's Java writers."""
    from pypaimon.utils.file_store_path_factory import canonical_data_file_path

    path: str = canonical_data_file_path(table, tuple(partition), bucket, "x")
    return path.rpartition("/")[0]
