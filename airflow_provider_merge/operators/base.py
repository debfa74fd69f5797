"""What all operators of this provider share: request → submit → result → XCom and asset event."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from airflow.providers.common.compat.sdk import AirflowException, BaseOperator
from airflow.sdk.log import mask_secret

from airflow_provider_merge import job_package
from airflow_provider_merge.assets import require_partition_keys, same_asset, table_asset
from airflow_provider_merge.exceptions import airflow_exception, invalid
from airflow_provider_merge.hooks.catalog import CatalogHook, catalog_hook
from airflow_provider_merge.links import (
    SPARK_PAGE,
    QuarantineLink,
    SnapshotLink,
    SparkApplicationLink,
)
from airflow_provider_merge.metadata.operations import require_warehouse
from airflow_provider_merge.operators.event_keys import partition_keys
from airflow_provider_merge.operators.operation_id import operation_id
from airflow_provider_merge.operators.outcome import give_up, job_outcome, settle_task
from airflow_provider_merge.operators.pages import pages_of_result
from airflow_provider_merge.operators.results import (
    asset_extra,
    result_table,
    with_phases,
    xcom_value,
)
from airflow_provider_merge.operators.spark_conf import spark_conf
from airflow_provider_merge.operators.task_end import task_end
from airflow_provider_merge.operators.templates import has_template, is_template
from airflow_provider_merge.operators.values import share, whole_number
from airflow_provider_merge.run_partition import run_partition
from airflow_provider_merge.submit.applications import SparkApplication
from airflow_provider_merge.submit.plain_python import PlainPythonSubmitter
from airflow_provider_merge.submit.spark_submit import SparkSubmitSubmitter
from airflow_provider_merge.submit.submitter import (
    SparkJob,
    SparkSettings,
    SubmissionError,
    Submitter,
)
from airflow_provider_merge.table_names import parse_table_name, quoted_name
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


class TableOperator(BaseOperator):
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
        "catalog_conn_id",
        "spark_conn_id",
        "session_time_zone",
        "target_file_size",
        "rewrite_share",
        "isolation",
        "spark_env",
        "conf",
        "driver_memory",
        "driver_cores",
        "executor_memory",
        "executor_cores",
        "num_executors",
        "yarn_queue",
        "archives",
        "deploy_mode",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"conf": "json"}
    ui_color = "#d7ecff"
    operator_extra_links = (SnapshotLink(), QuarantineLink(), SparkApplicationLink())

    emits_asset_event: ClassVar[bool] = True
    after_ended_try: str = "fail"

    def __init__(
        self,
        *,
        target: str | None,
        catalog_conn_id: str = "paimon_default",
        spark_conn_id: str = "spark_default",
        session_time_zone: str | None = None,
        target_file_size: int | str | None = None,
        rewrite_share: float | str | None = None,
        isolation: str | None = None,
        spark_env: str | None = None,
        conf: Mapping[str, Any] | None = None,
        driver_memory: str | None = None,
        driver_cores: int | str | None = None,
        executor_memory: str | None = None,
        executor_cores: int | str | None = None,
        num_executors: int | str | None = None,
        yarn_queue: str | None = None,
        archives: str | None = None,
        deploy_mode: str | None = None,
        emit_partition_keys: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        # Spark SQL text must stay text: native rendering turns 'x' into x, and 1 into a number.
        self.render_template_as_native_obj = False
        job_package.require_no_other_package()
        self.target = target
        self.catalog_conn_id = catalog_conn_id
        self.spark_conn_id = spark_conn_id
        self.session_time_zone = session_time_zone
        self.target_file_size = target_file_size
        self.rewrite_share = rewrite_share
        self.isolation = isolation
        self.spark_env = spark_env
        # Not copied: it may be the result of another task, which is known when the task runs.
        self.conf = {} if conf is None else conf
        self.driver_memory = driver_memory
        self.driver_cores = driver_cores
        self.executor_memory = executor_memory
        self.executor_cores = executor_cores
        self.num_executors = num_executors
        self.yarn_queue = yarn_queue
        self.archives = archives
        self.deploy_mode = deploy_mode
        self.emit_partition_keys = emit_partition_keys
        if emit_partition_keys:
            require_partition_keys()
        # By the XCom of the link that shows it.
        self.pages: dict[str, str] = {}
        self._submitter: Submitter | None = None
        self._result: JobResult | None = None
        self._killed = False
        if target is not None and not is_template(target):
            parse_table_name(target, "target")
        if not has_template([getattr(self, name) for name in TableOperator.template_fields]):
            self._options()
            self._settings()

    @abstractmethod
    def statement(self) -> Statement:
        """The statement, from parameters that are all rendered.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """

    def render_template(
        self, content: Any, context: Context, jinja_env: Any = None, seen_oids: Any = None
    ) -> Any:
        """As every operator does it; templates know ``run_partition`` too."""
        environment = jinja_env or self.get_template_env()
        environment.globals.setdefault("run_partition", run_partition)
        return super().render_template(content, context, environment, seen_oids)

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

    def needs_session(self) -> bool:
        """Whether the job needs a Spark session, from parameters that are all rendered."""
        return True

    def get_submitter(self) -> Submitter:
        """What starts the job; a subclass may start it in another way."""
        settings = self._settings()
        if self.needs_session():
            return SparkSubmitSubmitter(settings)
        return PlainPythonSubmitter(settings)

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the job and return its result; a retry finds what an earlier try committed."""
        started = time.monotonic()
        try:
            hook = catalog_hook(self.catalog_conn_id)
            request = self._request(context, hook)
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
        ended = "its processes were killed" if self._killed else task_end(context["ti"])
        settle_task(request, hook, ended)
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

    def on_kill(self) -> None:
        """End every process of the job before Airflow goes on."""
        self._killed = True
        if self._submitter is not None:
            self._submitter.kill()

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

    def _request(self, context: Context, hook: CatalogHook) -> JobRequest:
        ti = context["ti"]
        run = context["dag_run"]
        if run.start_date is None:
            raise invalid("dag_run.start_date", "the run has not started")
        map_index = -1 if ti.map_index is None else ti.map_index
        dry_run = self.is_dry_run()
        return JobRequest(
            operation_id=operation_id(
                dag_id=ti.dag_id,
                run_id=ti.run_id,
                run_start_date=run.start_date,
                task_id=ti.task_id,
                map_index=map_index,
                max_tries=ti.max_tries,
                dry_run=dry_run,
            ),
            target=self.target_table(),
            catalog=hook.catalog_spec(),
            statement=self.statement(),
            sources=self.request_sources(),
            options=self._options(),
            origin=Origin(
                dag_id=ti.dag_id,
                run_id=ti.run_id,
                task_id=ti.task_id,
                map_index=map_index,
                try_number=ti.try_number,
                retries=self.retries or 0,
            ),
            dry_run=dry_run,
            after_ended_try=cast("AfterEndedTry", self.after_ended_try),
        )

    def _run(
        self, request: JobRequest, hook: CatalogHook, context: Context, started: float
    ) -> JobResult:
        credentials = hook.credentials()
        for secret in credentials.values():
            mask_secret(secret)
        job = SparkJob(
            f"{self.dag_id}.{self.task_id}",
            request,
            credentials,
            announce=lambda application: self._link_application(context, application),
            ended=lambda: task_end(context["ti"]),
            give_up=lambda: give_up(request, hook),
        )
        require_warehouse(request, hook.storage_options())
        self.log.info("Operation %s on %s", request.operation_id, request.target)
        self._submitter = self.get_submitter()
        if self._killed:
            raise AirflowException("The task was ended before the job was started.")
        failure: SubmissionError | None = None
        prepared = time.monotonic()
        try:
            self._submitter.submit(job)
        except SubmissionError as error:
            failure = error
        result, read = job_outcome(request, hook, failure), time.monotonic()
        return with_phases(result, request, prepared - started, read - prepared)

    def _link_application(self, context: Context, application: SparkApplication) -> None:
        """The page while the job runs, at once; that of later when the task ends."""
        self.pages[SPARK_PAGE] = application.last_page
        try:
            context["ti"].xcom_push(SPARK_PAGE, application.page)
        except Exception as error:  # noqa: BLE001 - no task fails for want of a link
            self.log.warning("There is no link to the Spark application yet: %s", error)

    def _emit(self, context: Context, hook: CatalogHook, operation: str, result: JobResult) -> None:
        if not self.emits_asset_event:
            return
        table = self.target_table()
        asset = table_asset(self.catalog_conn_id, quoted_name(table))
        outlet = same_asset(self.outlets, asset)
        if outlet is not None:
            event = context["outlet_events"][outlet]
            event.extra = asset_extra(operation, result)
            if self.emit_partition_keys:
                event.add_partitions(partition_keys(hook, table, result))
        else:
            self.log.info(
                "No asset event: the target is a template. Add table_asset(%r, %r) to outlets.",
                self.catalog_conn_id,
                str(table),
            )

    def _options(self) -> JobOptions:
        options = JobOptions()
        size = whole_number("target_file_size", self.target_file_size)
        return JobOptions(
            session_time_zone=self.session_time_zone or options.session_time_zone,
            target_file_size=options.target_file_size if size is None else size,
            rewrite_share=share("rewrite_share", self.rewrite_share),
            isolation=cast("Isolation", self.isolation) if self.isolation else None,
        )

    def _settings(self) -> SparkSettings:
        return SparkSettings(
            spark_conn_id=self.spark_conn_id,
            conf=spark_conf(self.conf),
            driver_memory=self.driver_memory,
            driver_cores=whole_number("driver_cores", self.driver_cores),
            executor_memory=self.executor_memory,
            executor_cores=whole_number("executor_cores", self.executor_cores),
            num_executors=whole_number("num_executors", self.num_executors),
            yarn_queue=self.yarn_queue,
            archives=self.archives,
            deploy_mode=self.deploy_mode,
            spark_env=self.spark_env,
        )
