"""The base of operators that run one statement: job, result, XCom, asset event and lineage."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from airflow_provider_merge.assets import same_asset, table_asset
from airflow_provider_merge.checks.plain_texts import require_plain
from airflow_provider_merge.checks.requests import MetadataCheck
from airflow_provider_merge.hooks.catalog import CatalogHook, catalog_hook
from airflow_provider_merge.links import TABLE_PAGE
from airflow_provider_merge.metadata.operations import read_result
from airflow_provider_merge.operators._shared.asset_events import (
    TableChange,
    emit_event,
    keep_written,
)
from airflow_provider_merge.operators._shared.compilers_choice import note_for_next
from airflow_provider_merge.operators._shared.measured import measuring
from airflow_provider_merge.operators._shared.outcome import job_outcome, settle_task
from airflow_provider_merge.operators._shared.pages import pages_of_result
from airflow_provider_merge.operators._shared.results import result_table, with_phases, xcom_value
from airflow_provider_merge.operators._shared.table_request import TableRequestOperator
from airflow_provider_merge.operators._shared.timeouts import telling_timeouts
from airflow_provider_merge.submit.surroundings import shares_local_files
from airflow_provider_merge.table_names import quoted_name
from airflow_provider_merge.table_pages import (
    DRY_RUN_ERROR,
    page_before,
    page_of_preview,
    page_of_result,
)
from airflow_provider_merge.task_errors import task_failure
from airflow_provider_merge.templates import is_template, when_rendered
from spark_jobs.contract import codec
from spark_jobs.contract.alter_table import AlterTableSpec
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.guards import Guards
from spark_jobs.contract.inserts import PartitionStatement
from spark_jobs.contract.maintenance import BranchStatement
from spark_jobs.contract.request import JobRequest, TableName
from spark_jobs.contract.result import ErrorInfo, JobResult
from spark_jobs.contract.statements import CreateTableSpec, RowStatement, redefines
from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Context


class TableOperator(TableRequestOperator):
    """Runs one statement on ``target`` as a Spark job."""

    emits_asset_event: bool = True
    emit_partition_keys: bool = False
    # Where the text of the statement stands, if it was given as a file.
    sql_file: str = ""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._result: JobResult | None = None

    @when_rendered
    @measuring
    @telling_timeouts
    def execute(self, context: Context) -> dict[str, Any]:
        """Run the job and return its result; a retry finds what an earlier try committed."""
        started = time.monotonic()
        table = ""
        try:
            hook = catalog_hook(self.catalog_conn_id)
            request = self.job_request(context, hook)
            table = str(request.table)
            self.measured.expect(request)
            self.pages[TABLE_PAGE] = page_before(self.catalog_conn_id, request.table)
            try:
                result = self._run(request, hook, context, started)
            except JobError as error:
                if request.dry_run:
                    self._show_failure(request, error, context)
                raise
            self._result = result
            self.pages |= pages_of_result(hook, self.target_table(), result)
            self.pages[TABLE_PAGE] = page_of_result(self.catalog_conn_id, request, result)
        except JobError as error:
            raise task_failure(error, context, self.sql_file, table) from None
        for warning in result.warnings:
            self.log.warning("%s", warning)
        self.log.info("%s", result_table(result))
        if not request.dry_run:
            self._emit(context, hook, request.statement.kind, result)
        settle_task(request, hook, self.task_ended(context))
        return xcom_value(result)

    def statement_text(self) -> str | None:
        """The statement as it was given, if it was given as text."""
        return None

    @when_rendered
    def get_openlineage_facets_on_start(self) -> OperatorLineage[Any, Any] | None:
        """Inputs and output for OpenLineage, from rendered parameters."""
        from airflow_provider_merge.lineage.facets import task_lineage

        return task_lineage(self, None)

    @when_rendered
    def get_openlineage_facets_on_complete(
        self, task_instance: Any
    ) -> OperatorLineage[Any, Any] | None:
        """The same, with what the result adds: the snapshot, counts and column lineage."""
        from airflow_provider_merge.lineage.facets import task_lineage

        return task_lineage(self, self._result)

    def announce_target(self, table: TableName) -> None:
        """Make the target an outlet of the task, if the catalog is known by now."""
        if self.emits_asset_event and not is_template(self.catalog_conn_id):
            asset = table_asset(self.catalog_conn_id, quoted_name(table))
            if same_asset(self.outlets, asset) is None:
                self.outlets = [*self.outlets, asset]

    def require_valid(self, request: JobRequest, check: MetadataCheck) -> None:
        """Check the statement's texts, and what metadata tells of it.

        An earlier try may have committed it: then the job decides.

        Raises:
            JobError: naming the parameter or the line.
        """
        if isinstance(request.statement, CreateTableSpec | AlterTableSpec | BranchStatement):
            check.hook.refuse_statement(request.statement)
        if not isinstance(request.statement, RowStatement | PartitionStatement | CompactSpec):
            return
        try:
            if request.approved is not None:
                request.approved.require_same(request.part_digests(), str(request.table))
            require_plain(request)
            widens = bool(request.options.type_widening)
            guards = request.guards or Guards()
            check.require_valid(
                request.table,
                request.statement,
                request.sources,
                widens=widens,
                checks=guards.checks,
                expected=guards.expected_partitions,
            )
            source = getattr(request.statement, "source", None)
            check.require_side_tables(guards, request.sources, source)
        except JobError as error:
            if not _may_be_done(request, check.hook):
                raise self.located(error) from None
            self.log.warning("An earlier try may have committed. Else this is an error: %s", error)

    def located(self, error: JobError) -> JobError:
        """An error of the statement's parts, with their place where it is known."""
        return error

    def _run(
        self, request: JobRequest, hook: CatalogHook, context: Context, started: float
    ) -> JobResult:
        made = [request.table] if redefines(request.statement) else []
        check = MetadataCheck(hook, shares_local_files(self.spark_settings()), made)
        self.require_valid(request, check)
        ended = self.submit(request, hook, context)
        result = job_outcome(request, hook, ended.failure, self.measured.left)
        read = time.monotonic()
        if self.needs_session():
            note_for_next(context, ended.had_both_compilers, [result])
        result = with_phases(result, request, ended.submitted - started, read - ended.submitted)
        self.measured.left(request, result)
        return result

    def _show_failure(self, request: JobRequest, error: JobError, context: Context) -> None:
        """Let the page of a dry run tell why it failed, as the real run would."""
        self.pages[TABLE_PAGE] = page_of_preview(request)
        try:
            context["ti"].xcom_push(DRY_RUN_ERROR, codec.encode(ErrorInfo.of(error)))
        except Exception as problem:  # noqa: BLE001 - the error itself matters more
            self.log.warning("The page of the dry run cannot tell its error: %s", problem)

    def _emit(self, context: Context, hook: CatalogHook, operation: str, result: JobResult) -> None:
        if not self.emits_asset_event:
            return
        change = TableChange(self.target_table(), operation, result)
        keys = self.emit_partition_keys
        keep_written(self, context, [change.table])
        emit_event(self, context, hook, [change], with_partition_keys=keys)


def _may_be_done(request: JobRequest, hook: CatalogHook) -> bool:
    """Whether an earlier try has done the work, or cannot be asked."""
    if request.dry_run or request.origin.try_number <= 1:
        return False
    try:
        known = read_result(request, hook.workspace_options())
        return (known or hook.recorded_result(request.table, request.operation_id)) is not None
    except (JobError, OSError):
        return True
