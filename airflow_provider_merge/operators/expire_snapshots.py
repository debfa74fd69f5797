"""``ExpireSnapshotsOperator``: drop old snapshots and the files that nothing else needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from airflow_provider_merge.operators._shared.maintenance import RemovingOperator
from airflow_provider_merge.operators._shared.values import flag, limit, whole_number
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec


class ExpireSnapshotsOperator(RemovingOperator):
    """Drops old snapshots of ``target`` and the files that only they need.

    It keeps what a retained snapshot, a tag, a branch, a consumer or a running statement needs.
    Limits default to the table's options, then to its format's defaults. The result and the log
    report how many more snapshots may expire.

    :param retain_max: keep at most this many of the latest snapshots
    :param retain_min: keep at least this many of the latest snapshots
    :param older_than: a duration (``7 d``) or a timestamp with an offset: a snapshot may expire if
        its successor is older than this
    :param max_deletes: expire at most this many snapshots in one run; default: unlimited
    :param clean_expired_metadata: true: schemas and partition specs go, too, if nothing reaches
        them; refused for formats without them
    """

    template_fields: Sequence[str] = (
        *RemovingOperator.template_fields,
        "retain_max",
        "retain_min",
        "older_than",
        "max_deletes",
        "clean_expired_metadata",
    )

    remedies: ClassVar[Mapping[str, str]] = {
        "older_than": "Write a duration such as '7 d', or a timestamp such as "
        "'2026-01-31T00:00:00+00:00', or leave it out in the DAG file."
    }

    def __init__(
        self,
        *,
        retain_max: int | str | None = None,
        retain_min: int | str | None = None,
        older_than: str | None = None,
        max_deletes: int | str | None = None,
        clean_expired_metadata: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.retain_max = retain_max
        self.retain_min = retain_min
        limit("older_than", older_than)
        self.older_than = older_than
        self.max_deletes = max_deletes
        self.clean_expired_metadata = clean_expired_metadata
        self.check_parameters()

    def statement(self) -> ExpireSnapshotsSpec:
        """The statement from rendered parameters."""
        return ExpireSnapshotsSpec(
            retain_max=whole_number("retain_max", self.retain_max),
            retain_min=whole_number("retain_min", self.retain_min),
            older_than=limit("older_than", self.older_than),
            max_deletes=whole_number("max_deletes", self.max_deletes),
            clean_expired_metadata=flag("clean_expired_metadata", self.clean_expired_metadata),
        )
