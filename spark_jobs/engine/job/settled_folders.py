"""Rows that were kept for other tables than a target, and that no later try inserts any more."""

from __future__ import annotations

import pyarrow.fs as pafs

from spark_jobs.contract.request import TableName
from spark_jobs.contract.side_outputs import recorded_side_outputs, side_operation
from spark_jobs.engine.changes.kept_rows import KeptRows, kept_rows, side_folders
from spark_jobs.engine.job.side_job import has_rows_of
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.errors import JobError
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle


def settled_folders(connector: Connector, catalog: str) -> list[str]:
    """The folders whose rows are in their tables, or were certainly never published.

    ``catalog`` is the mark of the connector's; others may have the same workspace.

    Where that is not certain, as the table or its history is gone, the rows are kept.

    Raises:
        OSError: the storage refused.
    """
    folders = side_folders(connector.storage, catalog)
    return [each for each in folders if _is_settled(connector, each)]


def _is_settled(connector: Connector, folder: str) -> bool:
    storage = connector.storage
    inside = pafs.FileSelector(f"{storage.root}/{folder}", allow_not_found=True)
    parts = [f"{folder}/{each.base_name}" for each in storage.filesystem.get_file_info(inside)]
    try:
        notes = [(part, kept_rows(storage, part)) for part in parts]
        # Without a note, the run was killed before it could publish.
        return all(_part_is_settled(connector, *each) for each in notes if each[1] is not None)
    except JobError:
        return False


def _part_is_settled(connector: Connector, part: str, kept: KeptRows | None) -> bool:
    assert kept is not None  # noqa: S101 - see above
    stored = OperationLog(connector.storage).read(kept.operation_id)
    if stored is not None and stored.error is None:
        return True
    target = connector.metadata.load_table(TableName.parse(kept.target))
    commit = connector.writes.find_commit(target, kept.operation_id)
    if commit is None:
        return _is_known_since(connector, target, kept.base)
    if part not in {each.folder for each in recorded_side_outputs(commit.properties)}:
        return True
    side = connector.metadata.load_table(TableName.parse(kept.table))
    return has_rows_of(connector, side, side_operation(kept.operation_id, kept.kind), part)


def _is_known_since(connector: Connector, target: TableHandle, base: int | None) -> bool:
    """Whether the table has every snapshot that was made on ``base``, or it was rolled back.

    Raises:
        CommitError: COMMIT_HISTORY_EXPIRED.
    """
    if base is None:
        return target.snapshot_id is None
    connector.writes.recall(target, base)
    return True
