"""The base of operators with a dry run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from airflow_provider_merge.operators._shared.table_operator import TableOperator
from airflow_provider_merge.operators._shared.values import flag
from airflow_provider_merge.templates import is_template


class DryRunOperator(TableOperator):
    """An operator with a dry run.

    :param dry_run: true: report what would change or be removed, with the status ``dry_run``; store
        nothing, and send no asset event
    """

    template_fields: Sequence[str] = (*TableOperator.template_fields, "dry_run")

    def __init__(self, *, dry_run: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # Takes the place of BaseOperator.dry_run(), which Airflow 3 never calls.
        self.dry_run = dry_run  # type: ignore[method-assign,assignment]
        if not is_template(dry_run):
            self.is_dry_run()

    def after_rendering(self) -> None:
        """A dry run has no outlet, whatever becomes of it, and so no output in lineage.

        Airflow sends an event for every outlet of a task that succeeds.
        """
        super().after_rendering()
        if self.is_dry_run():
            self.outlets = []

    def is_dry_run(self) -> bool:
        """``dry_run`` from rendered parameters."""
        return flag("dry_run", cast("bool | str", self.dry_run))
