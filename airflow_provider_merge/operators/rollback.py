"""``RollbackOperator`` and ``SetCurrentSnapshotOperator``: make another snapshot the latest one."""

from __future__ import annotations

from airflow_provider_merge.operators._shared.maintenance import MoveOperator
from spark_jobs.contract.maintenance import RollbackSpec, SetCurrentSnapshotSpec


class RollbackOperator(MoveOperator):
    """Rolls ``target`` back to a snapshot: drops all later snapshots.

    :param snapshot_id: the snapshot that becomes the latest one
    :param tag: instead of ``snapshot_id``: the tag whose snapshot becomes the latest one
    :param force: also drop commits by other DAGs and engines, tags of dropped snapshots, and
        snapshots that consumers have read or running statements are based on
    """

    _spec = RollbackSpec


class SetCurrentSnapshotOperator(MoveOperator):
    """Sets ``target``, a table or a branch of it, to any snapshot that the table has.

    To go back in the target's own history, use ``RollbackOperator``.

    :param snapshot_id: the snapshot that becomes the current one
    :param tag: instead of ``snapshot_id``: the tag whose snapshot becomes the current one
    :param force: also leave commits by other DAGs and engines behind
    """

    _spec = SetCurrentSnapshotSpec
