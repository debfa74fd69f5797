"""The snapshots that a compaction has published, one for each group of partitions. Driver only.

Their commit user is the operation's id, as of statements; their commit identifiers are 2, 3, …, so
that none of them is taken for the commit of a whole operation (``commit.find_commit``).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.commit.guard import guard_of
from spark_jobs.connectors.paimon.commit.history import COMMIT_IDENTIFIER
from spark_jobs.connectors.paimon.library import stored_snapshots
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.storage.parallel import in_parallel

FIRST_GROUP: Final = COMMIT_IDENTIFIER + 1


def is_group_of(snapshot: Any, operation_id: str) -> bool:
    """Whether the operation published the snapshot for one of its groups."""
    return bool(snapshot.commit_user == operation_id and snapshot.commit_identifier >= FIRST_GROUP)


def group_snapshots(
    filesystem: pafs.FileSystem, table: PinnedTable, operation_id: str
) -> list[Any]:
    """The snapshots of the operation's groups that have not expired, oldest first.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    base = guard_of(filesystem, table, operation_id).base()
    if base is None:
        # No try of the operation publishes anything before it sets its guard.
        return []
    since = [each for each in stored_snapshots.snapshot_ids(table.table) if each >= base]
    found = in_parallel(partial(stored_snapshots.find_snapshot, table.table), since)
    return [each for each in found if each is not None and is_group_of(each, operation_id)]


def next_identifier(snapshots: Iterable[Any], operation_id: str) -> int:
    """The commit identifier of the next group, after the operation's groups in ``snapshots``."""
    used = (each.commit_identifier for each in snapshots if is_group_of(each, operation_id))
    return max(used, default=COMMIT_IDENTIFIER) + 1
