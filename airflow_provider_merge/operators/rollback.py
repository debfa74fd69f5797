"""``RollbackOperator`` and ``SetCurrentSnapshotOperator``: make another snapshot the latest one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from airflow_provider_merge.operators._shared.maintenance import RemovingOperator
from airflow_provider_merge.operators._shared.values import flag, text, whole_number
from spark_jobs.contract.maintenance import RollbackSpec, SetCurrentSnapshotSpec


class _MoveOperator(RemovingOperator):
    template_fields: Sequence[str] = (
        *RemovingOperator.template_fields,
        "snapshot_id",
        "tag",
        "force",
    )
    _spec: ClassVar[type[RollbackSpec | SetCurrentSnapshotSpec]]

    def __init__(
        self,
        *,
        snapshot_id: int | str | None = None,
        tag: str | None = None,
        force: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.snapshot_id = snapshot_id
        self.tag = tag
        self.force = force
        self.check_parameters()

    def statement(self) -> RollbackSpec | SetCurrentSnapshotSpec:
        """The statement from rendered parameters."""
        return self._spec(
            whole_number("snapshot_id", self.snapshot_id),
            text("tag", self.tag),
            flag("force", self.force),
        )


class RollbackOperator(_MoveOperator):
    """Rolls ``target`` back to a snapshot: drops all later snapshots.

    :param snapshot_id: the snapshot that becomes the latest one
    :param tag: instead of ``snapshot_id``: the tag whose snapshot becomes the latest one
    :param force: also drop commits by other DAGs and engines, tags of dropped snapshots, and
        snapshots that consumers have read or running statements are based on
    """

    _spec = RollbackSpec


class SetCurrentSnapshotOperator(_MoveOperator):
    """Sets ``target``, a table or a branch of it, to any snapshot that the table has.

    To go back in the target's own history, use ``RollbackOperator``.

    :param snapshot_id: the snapshot that becomes the current one
    :param tag: instead of ``snapshot_id``: the tag whose snapshot becomes the current one
    :param force: also leave commits by other DAGs and engines behind
    """

    _spec = SetCurrentSnapshotSpec
