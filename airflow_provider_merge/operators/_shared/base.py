"""What the operators share that run one statement: request, job, result, XCom and asset event."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from airflow_provider_merge.assets import require_partition_keys, same_asset, table_asset
from airflow_provider_merge.exceptions import airflow_exception
from airflow_provider_merge.hooks.catalog import CatalogHook, catalog_hook
from airflow_provider_merge.operators._shared.asset_events import TableChange, emit_event
from airflow_provider_merge.operators._shared.compilers_choice import note_for_next
from airflow_provider_merge.operators._shared.operation_id import task_operation_id
from airflow_provider_merge.operators._shared.outcome import job_outcome, settle_task
from airflow_provider_merge.operators._shared.pages import pages_of_result
from airflow_provider_merge.operators._shared.results import result_table, with_phases, xcom_value
from airflow_provider_merge.operators._shared.spark_job import SparkJobOperator
from airflow_provider_merge.operators._shared.values import share, whole_number
from airflow_provider_merge.table_names import parse_table_name, quoted_name
from airflow_provider_merge.templates import has_template, is_template
from spark_jobs.contract.request import (
    AfterEndedTry,
    CatalogSpec,
    Isolation,
    JobOptions,
    JobRequest,
    Origin,
    Source,
    TableName,
)
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import Statement
from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Context


class TableOperator(SparkJobOperator):
    """Runs one statement on ``target`` as a Spark job.

    :param target: the table, ``database.table``
    :param catalog_conn_id: connection to the catalog, such as one of the type ``paimon``
    :param spark_conn_id: connection of the type ``spark``; must exist
    :param session_time_zone: how Spark reads and writes timestamps without an offset
    :param target_file_size: bytes at which new data files roll
    :param rewrite_share: on a table with deletion vectors, the share of a file's rows (0 to 1)
        above which deleting them rewrites the file; else the table or the connector decides
    :param isolation: ``serializable`` (default): a commit of others in what the statement read is
        a conflict; ``snapshot``: only one in the files that it changes
    :param spark_env: folder of the Python environment that has pyspark; else the Spark
        connection's extra ``spark-env``, else ``[merge] spark_env`` of Airflow's configuration
    :param conf: Spark configuration; never put a secret there
    :param driver_memory: as for spark-submit, like the following ones
    :param emit_partition_keys: the asset event carries a partition key for each changed partition
        (at most 100; Airflow 3.3). Such events start partitioned DAGs only: a DAG with a plain
        asset schedule is not triggered by them
    """

    template_fields: Sequence[str] = (
        "target",
        *SparkJobOperator.template_fields,
        "session_time_zone",
        "target_file_size",
        "rewrite_share",
        "isolation",
    )

    emits_asset_event: ClassVar[bool] = True
    after_ended_try: str = "fail"

    def __init__(
        self,
        *,
        target: str | None,
        session_time_zone: str | None = None,
        target_file_size: int | str | None = None,
        rewrite_share: float | str | None = None,
        isolation: str | None = None,
        emit_partition_keys: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.target = target
        self.session_time_zone = session_time_zone
        self.target_file_size = target_file_size
        self.rewrite_share = rewrite_share
        self.isolation = isolation
        self.emit_partition_keys = emit_partition_keys
        if emit_partition_keys:
            require_partition_keys()
        self._result: JobResult | None = None
        if target is not None and not is_template(target):
            parse_table_name(target, "target")
        if not has_template([getattr(self, name) for name in TableOperator.template_fields]):
            self._options()

    @abstractmethod
    def statement(self) -> Statement:
        """The statement, from parameters that are all rendered.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """

    def target_table(self) -> TableName:
        """The table that the statement changes, from parameters that are all rendered.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
        return parse_table_name(self.target, "target")

    def request_sources(self) -> tuple[Source, ...]:
        """What the statement reads beside the target, in the order of the request."""
        return ()

    def is_dry_run(self) -> bool:
        """Whether nothing is to be committed, from parameters that are all rendered."""
        return False

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the job and return its result; a retry finds what an earlier try committed."""
        started = time.monotonic()
        try:
            hook = catalog_hook(self.catalog_conn_id)
            request = self.job_request(context, hook)
            result = self._run(request, hook, context, started)
            self._result = result
            self.pages |= pages_of_result(hook, self.target_table(), result)
        except JobError as error:
            raise airflow_exception(error) from None
        for warning in result.warnings:
            self.log.warning("%s", warning)
        self.log.info("%s", result_table(result))
        if request.dry_run:
            # Airflow sends an event for every outlet of a task that succeeds.
            self.outlets = []
        else:
            self._emit(context, hook, request.statement.kind, result)
        settle_task(request, hook, self.task_ended(context))
        return xcom_value(result)

    def check_request(self) -> None:
        """Check the request that would be sent, without the catalog and the run.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
        JobRequest(
            operation_id="unknown",
            target=self.target_table(),
            catalog=CatalogSpec("unknown", "/"),
            statement=self.statement(),
            sources=self.request_sources(),
            options=self._options(),
            dry_run=self.is_dry_run(),
            after_ended_try=cast("AfterEndedTry", self.after_ended_try),
        )

    def statement_text(self) -> str | None:
        """The statement as it was given, if it was given as text."""
        return None

    def get_openlineage_facets_on_start(self) -> OperatorLineage[Any, Any] | None:
        """Inputs and output for OpenLineage, from parameters that are all rendered."""
        from airflow_provider_merge.lineage.facets import task_lineage

        return task_lineage(self, None)

    def get_openlineage_facets_on_complete(
        self, task_instance: Any
    ) -> OperatorLineage[Any, Any] | None:
        """The same, and what the result tells: the snapshot, counts, where values come from."""
        from airflow_provider_merge.lineage.facets import task_lineage

        return task_lineage(self, self._result)

    def announce_target(self) -> None:
        """Make the target an outlet of the task, if the catalog is known by now."""
        table = self.target_table()
        if self.emits_asset_event and not is_template(self.catalog_conn_id):
            asset = table_asset(self.catalog_conn_id, quoted_name(table))
            if same_asset(self.outlets, asset) is None:
                self.outlets = [*self.outlets, asset]

    def job_request(self, context: Context, hook: CatalogHook, statement: str = "") -> JobRequest:
        """The request of the task, or of its ``statement`` of that name, all rendered.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
        ti = context["ti"]
        dry_run = self.is_dry_run()
        return JobRequest(
            operation_id=task_operation_id(context, statement=statement, dry_run=dry_run),
            target=self.target_table(),
            catalog=hook.catalog_spec(),
            statement=self.statement(),
            sources=self.request_sources(),
            options=self._options(),
            origin=Origin(
                dag_id=ti.dag_id,
                run_id=ti.run_id,
                task_id=ti.task_id,
                map_index=-1 if ti.map_index is None else ti.map_index,
                try_number=ti.try_number,
                retries=self.retries or 0,
                statement=statement,
            ),
            dry_run=dry_run,
            after_ended_try=cast("AfterEndedTry", self.after_ended_try),
        )

    def _run(
        self, request: JobRequest, hook: CatalogHook, context: Context, started: float
    ) -> JobResult:
        ended = self.submit(request, hook, context)
        result, read = job_outcome(request, hook, ended.failure), time.monotonic()
        if self.needs_session():
            note_for_next(context, ended.had_both_compilers, [result])
        return with_phases(result, request, ended.submitted - started, read - ended.submitted)

    def _emit(self, context: Context, hook: CatalogHook, operation: str, result: JobResult) -> None:
        if not self.emits_asset_event:
            return
        change = TableChange(self.target_table(), operation, result)
        keys = self.emit_partition_keys
        emit_event(self, context, hook, [change], with_partition_keys=keys)

    def _options(self) -> JobOptions:
        options = JobOptions()
        size = whole_number("target_file_size", self.target_file_size)
        return JobOptions(
            session_time_zone=self.session_time_zone or options.session_time_zone,
            target_file_size=options.target_file_size if size is None else size,
            rewrite_share=share("rewrite_share", self.rewrite_share),
            isolation=cast("Isolation", self.isolation) if self.isolation else None,
        )
