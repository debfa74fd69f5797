"""DROP TABLE in a task of several statements, which has to allow it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_provider_merge.operators._shared.table_operator import TableOperator
from airflow_provider_merge.operators._shared.values import flag
from airflow_provider_merge.templates import has_template
from spark_jobs.contract.drop_table import DropTableSpec


class DropTableStatement(TableOperator):
    """Drops ``target``, a whole table.

    :param if_exists: true: no error if the table does not exist
    :param purge: true: files go, too, of formats that else leave them
    """

    template_fields: Sequence[str] = (*TableOperator.template_fields, "if_exists", "purge")
    emits_asset_event = False

    def __init__(
        self, *, if_exists: bool | str = False, purge: bool | str = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.if_exists = if_exists
        self.purge = purge
        if not has_template([self.target, if_exists, purge]):
            self.target_table()
            self.statement()

    def statement(self) -> DropTableSpec:
        """The statement of the rendered parameters."""
        return DropTableSpec(flag("if_exists", self.if_exists), flag("purge", self.purge))
