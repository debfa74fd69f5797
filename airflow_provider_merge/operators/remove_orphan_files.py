"""``RemoveOrphanFilesOperator``: remove files that no snapshot, tag or branch needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from airflow_provider_merge.operators._shared.maintenance import RemovingOperator
from airflow_provider_merge.operators._shared.values import limit
from spark_jobs.contract.maintenance import RemoveOrphanFilesSpec


class RemoveOrphanFilesOperator(RemovingOperator):
    """Removes files of ``target`` that no snapshot, tag or branch needs.

    Killed jobs, lost races and rollbacks leave them behind. With ``use_spark``, Spark tasks search
    for them, for tables with very many files.

    :param older_than: a duration or a timestamp with an offset: remove only files stored before it.
        Younger files may belong to a write that has not committed yet.
    """

    template_fields: Sequence[str] = (*RemovingOperator.template_fields, "older_than")

    remedies: ClassVar[Mapping[str, str]] = {
        "older_than": "Write a duration such as '7 d', or a timestamp such as "
        "'2026-01-31T00:00:00+00:00', or leave it out in the DAG file."
    }

    def __init__(self, *, older_than: str = "1 d", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        limit("older_than", older_than)
        self.older_than = older_than
        self.check_parameters()

    def statement(self) -> RemoveOrphanFilesSpec:
        """The statement from rendered parameters."""
        return RemoveOrphanFilesSpec(limit("older_than", self.older_than) or "")
