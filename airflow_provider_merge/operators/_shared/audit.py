"""The parameter ``audit_table``: a row there for each row that a statement changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from airflow_provider_merge.operators._shared.approval import ApprovableOperator
from airflow_provider_merge.operators._shared.values import side_table
from airflow_provider_merge.templates import is_template
from spark_jobs.contract.guards import Guards

AUDIT_TABLE: Final = "audit_table"


class AuditedOperator(ApprovableOperator):
    """Keeps what a statement changes, row by row.

    :param audit_table: ``database.table`` on the same connection, which gets a row for each changed
        row: who changed it, and its old and new values
    """

    template_fields: Sequence[str] = (*ApprovableOperator.template_fields, AUDIT_TABLE)

    def __init__(self, *, audit_table: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.audit_table = audit_table
        if audit_table is not None and not is_template(audit_table):
            side_table(AUDIT_TABLE, audit_table)

    def guards(self) -> Guards | None:
        """With the audit table."""
        guards = super().guards()
        if self.audit_table is None:
            return guards
        return replace(guards or Guards(), audit_table=side_table(AUDIT_TABLE, self.audit_table))
