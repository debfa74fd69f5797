"""``RollbackOperator``: make an earlier snapshot the latest one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_provider_merge.operators._shared.maintenance import RemovingOperator
from airflow_provider_merge.operators._shared.values import flag, text, whole_number
from spark_jobs.contract.maintenance import RollbackSpec


class RollbackOperator(RemovingOperator):
    """Drops the snapshots of ``target`` after one, and the tags of them.

    :param snapshot_id: the snapshot that becomes the latest one
    :param tag: instead: the tag whose snapshot does
    :param force: also drop commits of other DAGs and engines, tags, and what consumers and running
        statements count on
    """

    template_fields: Sequence[str] = (
        *RemovingOperator.template_fields,
        "snapshot_id",
        "tag",
        "force",
    )

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

    def statement(self) -> RollbackSpec:
        """The statement of the rendered parameters."""
        return RollbackSpec(
            whole_number("snapshot_id", self.snapshot_id),
            text("tag", self.tag),
            flag("force", self.force),
        )
