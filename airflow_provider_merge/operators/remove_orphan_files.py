"""``RemoveOrphanFilesOperator``: remove files that no snapshot, tag or branch knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_provider_merge.operators._shared.maintenance import RemovingOperator
from airflow_provider_merge.operators._shared.values import text
from spark_jobs.contract.maintenance import RemoveOrphanFilesSpec


class RemoveOrphanFilesOperator(RemovingOperator):
    """Removes what killed jobs, lost races and rollbacks left in the folder of ``target``.

    With ``use_spark``, Spark's tasks search for them: for tables of very many files.

    :param older_than: a duration or a timestamp with an offset: only files stored before it go.
        Younger ones may belong to a commit that is on its way.
    """

    template_fields: Sequence[str] = (*RemovingOperator.template_fields, "older_than")

    def __init__(self, *, older_than: str = "1 d", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.older_than = older_than
        self.check_parameters()

    def statement(self) -> RemoveOrphanFilesSpec:
        """The statement of the rendered parameters."""
        return RemoveOrphanFilesSpec(text("older_than", self.older_than) or "")
