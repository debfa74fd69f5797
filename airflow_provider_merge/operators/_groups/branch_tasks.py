"""The tasks of ``WriteAuditPublish`` that write to a branch, check it, and publish it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_merge.hooks.catalog import CatalogHook
from airflow_provider_merge.operators._shared.on_branch import OnBranch
from airflow_provider_merge.operators._shared.query_checks import check_rows
from airflow_provider_merge.operators._shared.table_operator import TableOperator
from airflow_provider_merge.operators.branches import FastForwardOperator
from airflow_provider_merge.operators.query import QueryOperator
from airflow_provider_merge.operators.statements import StatementsOperator
from airflow_provider_merge.table_names import quoted_name
from airflow_provider_merge.templates import is_template
from spark_jobs.contract.query import QueryReport
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult
from spark_jobs.errors import JobError, error_of

if TYPE_CHECKING:
    from airflow.sdk import Context


class BranchStatementsOperator(StatementsOperator):
    """Runs statements on a branch of the tables that they change. No asset event is sent.

    :param branch: the name of the branch, which all ``targets`` have
    :param targets: the tables that the statements change; where a statement reads one of them, it
        reads the branch
    """

    template_fields: Sequence[str] = (*StatementsOperator.template_fields, "branch", "targets")

    def __init__(self, *, branch: str, targets: Sequence[str], **kwargs: Any) -> None:
        self.branch = branch
        self.targets = targets
        super().__init__(**kwargs)

    def _operator(self, statement: Any) -> TableOperator | None:
        operator = super()._operator(statement)
        if operator is None:
            return None
        operator.outlets = []
        operator.emits_asset_event = False
        if not is_template(self.branch):
            operator.on_branch = OnBranch.of(self.branch, self.targets)
        return operator


class BranchQueryOperator(QueryOperator):
    """Checks a branch by a query, which names the tables as if there were none.

    :param branch: the name of the branch
    :param targets: the tables that are read on the branch
    """

    template_fields: Sequence[str] = (*QueryOperator.template_fields, "branch", "targets")

    def __init__(self, *, branch: str, targets: Sequence[str], **kwargs: Any) -> None:
        self.branch = branch
        self.targets = targets
        super().__init__(**kwargs)

    def require_rows(self, report: QueryReport) -> None:
        """Check what the query found; an error names the branch where the rows are."""
        try:
            check_rows(self._check(), report)
        except JobError as error:
            branch = self._on_branch()
            names = ", ".join(quoted_name(branch.table(each)) for each in branch.tables)
            where = f"Nothing was published. The rows are on the branch: {names}."
            raise error_of(error.code, f"{error.message}. {where}", error.remedy) from None

    def _request(self, context: Context, hook: CatalogHook) -> JobRequest:
        request = super()._request(context, hook)
        return replace(request, sources=self._on_branch().read(request.sources))

    def _on_branch(self) -> OnBranch:
        return OnBranch.of(self.branch, self.targets)


class PublishOperator(FastForwardOperator):
    """Publishes a branch on its table, and tells the consumers of the table's asset."""

    emits_asset_event = True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not is_template(self.target):
            self.announce_target(self.target_table())

    def _emit(self, context: Context, hook: CatalogHook, operation: str, result: JobResult) -> None:
        report = result.maintenance
        published = None if report is None else report.snapshot_id
        super()._emit(context, hook, operation, replace(result, new_snapshot_id=published))
