"""The request of one statement on one table, from an operator's parameters."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_merge.hooks.catalog import CatalogHook
from airflow_provider_merge.hooks.source_connections import of_connection
from airflow_provider_merge.operators._shared.configured_limits import configured_limits, limited
from airflow_provider_merge.operators._shared.on_branch import OnBranch
from airflow_provider_merge.operators._shared.operation_id import task_operation_id, task_origin
from airflow_provider_merge.operators._shared.spark_job import SparkJobOperator
from airflow_provider_merge.table_names import parse_table_name
from airflow_provider_merge.templates import is_template
from spark_jobs.contract.approval import Ticket
from spark_jobs.contract.guards import Guards
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.request import (
    AfterEndedTry,
    CatalogSpec,
    JobRequest,
    Origin,
    Source,
    TableName,
    TableSource,
)
from spark_jobs.contract.statements import Statement, created_table

if TYPE_CHECKING:
    from airflow.sdk import Context


class TableRequestOperator(SparkJobOperator):
    """Has the parameters of one statement on ``target``.

    :param target: the table, ``database.table``
    """

    template_fields: Sequence[str] = ("target", *SparkJobOperator.template_fields)
    after_ended_try: str = "fail"
    # Where a statement of a group that publishes later reads and writes instead.
    on_branch: OnBranch | None = None

    def __init__(self, *, target: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target = target
        if target is not None and not is_template(target):
            parse_table_name(target, "target")

    @abstractmethod
    def statement(self) -> Statement:
        """The statement, from rendered parameters.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """

    def target_table(self) -> TableName:
        """The table that the statement changes, from rendered parameters.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
        return parse_table_name(self.target, "target")

    def request_sources(self) -> tuple[Source, ...]:
        """What the statement reads besides the target, in the order of the request."""
        return ()

    def is_dry_run(self) -> bool:
        """Whether the task must commit nothing, from rendered parameters."""
        return False

    def plans_only(self) -> bool:
        """Whether the dry run ends with a plan, from rendered parameters."""
        return False

    def foretold_task(self) -> str:
        """The task whose marks a dry run goes by, from rendered parameters; empty: its own."""
        return ""

    def check_request(self) -> None:
        """Check the request that would be sent, without the catalog and the run.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
        statement = self.statement()
        # Whether the catalog has the format that is asked for, its connection tells.
        made = created_table(statement)
        JobRequest(
            operation_id="unknown",
            target=self.target_table(),
            catalog=CatalogSpec((made and made.format) or "unknown", "/"),
            statement=statement,
            sources=tuple(map(self._in_own_catalog, self.request_sources())),
            options=self.job_options(),
            origin=Origin(dry_run_of=self.foretold_task()),
            dry_run=self.is_dry_run(),
            plan_only=self.plans_only(),
            after_ended_try=cast("AfterEndedTry", self.after_ended_try),
            guards=self.guards(),
            approved=self.approval(),
        )

    def _in_own_catalog(self, source: Source) -> Source:
        """``source`` without the name of the connection that the statement has, too."""
        if isinstance(source, TableSource) and source.connection == self.catalog_conn_id:
            return replace(source, connection=None)
        return source

    def job_request(self, context: Context, hook: CatalogHook, statement: str = "") -> JobRequest:
        """The request of the task, or of its ``statement`` of that name, all rendered.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
        dry_run, foretold = self.is_dry_run(), self.foretold_task()
        request = JobRequest(
            operation_id=task_operation_id(context, statement=statement, dry_run=dry_run),
            target=self.target_table(),
            catalog=hook.catalog_spec(),
            statement=self.statement(),
            sources=self.request_sources(),
            options=limited(self.job_options()),
            origin=task_origin(context, self.retries or 0, statement, foretold),
            dry_run=dry_run,
            plan_only=self.plans_only(),
            after_ended_try=cast("AfterEndedTry", self.after_ended_try),
            text_limits=configured_limits(),
            guards=self.guards(),
            approved=self.approval(),
        )
        asked = of_connection(request, hook)
        return asked if self.on_branch is None else self.on_branch.changed(asked)

    def guards(self) -> Guards | None:
        """What must hold of the changes, from rendered parameters; None: nothing in particular.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
        return None

    def approval(self) -> Ticket | None:
        """The dry run that somebody has approved, from rendered parameters; None: none is needed.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
        return None

    def job_options(self) -> JobOptions:
        """The options of the request, from rendered parameters.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
        return JobOptions()
