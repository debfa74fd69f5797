"""``UndoRunOperator``: take back what a run committed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar, cast

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.hooks.catalog import catalog_hook
from airflow_provider_merge.operators._shared.approval import APPROVED, NOTHING_APPROVED, ticket_in
from airflow_provider_merge.operators._shared.configured_limits import configured_limits
from airflow_provider_merge.operators._shared.measured import measuring
from airflow_provider_merge.operators._shared.operation_id import task_operation_id, task_origin
from airflow_provider_merge.operators._shared.outcome import job_outcome, settle_task
from airflow_provider_merge.operators._shared.results import result_table, xcom_value
from airflow_provider_merge.operators._shared.run_tables import (
    MOST_NAMED,
    WantedTables,
    tables_of_run,
)
from airflow_provider_merge.operators._shared.spark_job import SparkJobOperator
from airflow_provider_merge.operators._shared.timeouts import telling_timeouts
from airflow_provider_merge.operators._shared.values import flag, text
from airflow_provider_merge.task_errors import task_failure
from airflow_provider_merge.templates import has_template, when_rendered
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.undo import OnRefused, UndoRunSpec
from spark_jobs.errors import CatalogError, ErrorCode, JobError

if TYPE_CHECKING:
    from airflow.sdk import Context


class UndoRunOperator(SparkJobOperator):
    """Takes back everything that a run of a DAG committed, by one new snapshot of each table.

    Its tables are found by what their snapshots record. No table is changed if one of them cannot
    be undone. No asset event is sent. Guide: docs/operators/undo_run.md.

    :param undo_dag_id: the DAG whose run is taken back
    :param undo_run_id: that run
    :param tables: a table, or a list of them; patterns such as ``shop.*``; branches as
        ``shop.orders$branch_audit``; default: all tables of the catalog
    :param on_refused: ``fail`` (default): nothing is changed if a table cannot be undone; ``skip``:
        the other tables are undone
    :param dry_run: true: report what would be taken back, and what is in the way; store nothing
    :param approved: the XCom of the task with ``dry_run``: if what would be taken back is something
        else by now, the task ends with APPROVAL_STALE, and no table is changed
    :param use_spark: true: run the job through spark-submit
    """

    template_fields: Sequence[str] = (
        *SparkJobOperator.template_fields,
        "undo_dag_id",
        "undo_run_id",
        "tables",
        "on_refused",
        "dry_run",
        APPROVED,
        "use_spark",
    )
    document_parameters: ClassVar[frozenset[str]] = frozenset({APPROVED})
    remedies: ClassVar[Mapping[str, str]] = {APPROVED: NOTHING_APPROVED}

    def __init__(
        self,
        *,
        undo_dag_id: str,
        undo_run_id: str,
        tables: Sequence[str] | str | None = None,
        on_refused: str = "fail",
        dry_run: bool | str = False,
        approved: Mapping[str, Any] | str | None = None,
        use_spark: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.undo_dag_id = undo_dag_id
        self.undo_run_id = undo_run_id
        self.tables = tables
        self.on_refused = on_refused
        # Takes the place of BaseOperator.dry_run(), which Airflow 3 never calls.
        self.dry_run = dry_run  # type: ignore[method-assign,assignment]
        self.approved = approved
        self.use_spark = use_spark
        if not has_template([getattr(self, name) for name in self.template_fields]):
            self._check_parameters()

    def needs_session(self) -> bool:
        """``use_spark`` from rendered parameters."""
        return flag("use_spark", self.use_spark)

    def is_dry_run(self) -> bool:
        """``dry_run`` from rendered parameters."""
        return flag("dry_run", cast("bool | str", self.dry_run))

    @when_rendered
    @measuring
    @telling_timeouts
    def execute(self, context: Context) -> dict[str, Any]:
        """Find the run's tables, undo them, and return what became of each."""
        try:
            self._check_parameters()
            return self._undone(context)
        except JobError as error:
            raise task_failure(error, context) from None

    def _undone(self, context: Context) -> dict[str, Any]:
        hook, spec = catalog_hook(self.catalog_conn_id), self._spec(["-"])
        wanted = WantedTables.of("tables", self.tables)
        run_tables = tables_of_run(hook, spec.dag_id, spec.run_id, wanted)
        names = run_tables.names
        built_on = [asdict(each) for each in run_tables.built_on[:MOST_NAMED]]
        dry_run = self.is_dry_run()
        operation_id = task_operation_id(context, dry_run=dry_run)
        if not names:
            raise CatalogError(
                ErrorCode.SNAPSHOT_NOT_FOUND,
                f"no table that was looked at has a commit of run {spec.run_id} of {spec.dag_id}",
                "Copy both ids from the run's page; its snapshots may have expired.",
                ("undo_run_id",),
            )
        if run_tables.built_on:
            self.log.warning("Other tables %s", run_tables.told())
        request = JobRequest(
            operation_id=operation_id,
            target=names[0],
            catalog=hook.catalog_spec(),
            statement=self._spec([str(each) for each in names]),
            origin=task_origin(context, self.retries or 0),
            dry_run=dry_run,
            text_limits=configured_limits(),
            approved=ticket_in(self.approved),
        )
        ended = self.submit(request, hook, context)
        result = job_outcome(request, hook, ended.failure, self.measured.left)
        self.measured.left(request, result)
        self.log.info("%s", result_table(result))
        settle_task(request, hook, self.task_ended(context))
        return {**xcom_value(result), "built_on": built_on}

    def _spec(self, tables: Sequence[str]) -> UndoRunSpec:
        return UndoRunSpec(
            text("undo_dag_id", self.undo_dag_id) or "",
            text("undo_run_id", self.undo_run_id) or "",
            tuple(tables),
            cast("OnRefused", self.on_refused),
        )

    def _check_parameters(self) -> None:
        """Check what needs no catalog.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
        self._spec(["-"])
        WantedTables.of("tables", self.tables)
        self.needs_session()
        if ticket_in(self.approved) is not None and self.is_dry_run():
            problem = "a dry run does nothing that could be approved"
            raise invalid(APPROVED, problem, "Leave approved or dry_run out.")
        self.is_dry_run()
