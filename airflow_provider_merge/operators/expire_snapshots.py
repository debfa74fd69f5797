"""``ExpireSnapshotsOperator``: drop old snapshots and the files that nothing else needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_provider_merge.operators._shared.maintenance import RemovingOperator
from airflow_provider_merge.operators._shared.values import text, whole_number
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec


class ExpireSnapshotsOperator(RemovingOperator):
    """Drops the oldest snapshots of ``target``.

    What a snapshot that stays, a tag, a branch, a consumer or a running statement needs is kept.
    Limits that are left out are the table's options, else its format's defaults. The result and the
    log say how many more may go.

    :param retain_max: at most that many of the latest snapshots stay
    :param retain_min: at least that many of the latest snapshots stay
    :param older_than: a duration (``7 d``) or a timestamp with an offset: snapshots of which a
        later one was there by then may go
    :param max_deletes: at most that many snapshots go in one run; all that may, when left out
    """

    template_fields: Sequence[str] = (
        *RemovingOperator.template_fields,
        "retain_max",
        "retain_min",
        "older_than",
        "max_deletes",
    )

    def __init__(
        self,
        *,
        retain_max: int | str | None = None,
        retain_min: int | str | None = None,
        older_than: str | None = None,
        max_deletes: int | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.retain_max = retain_max
        self.retain_min = retain_min
        self.older_than = older_than
        self.max_deletes = max_deletes
        self.check_parameters()

    def statement(self) -> ExpireSnapshotsSpec:
        """The statement of the rendered parameters."""
        return ExpireSnapshotsSpec(
            retain_max=whole_number("retain_max", self.retain_max),
            retain_min=whole_number("retain_min", self.retain_min),
            older_than=text("older_than", self.older_than),
            max_deletes=whole_number("max_deletes", self.max_deletes),
        )
