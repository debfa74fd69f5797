"""The base of operators that start a Spark job: where it runs, how it ends, its links."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.common.compat.sdk import AirflowException

from airflow_provider_merge import job_package
from airflow_provider_merge.hooks.catalog import CatalogHook
from airflow_provider_merge.hooks.source_connections import source_credentials
from airflow_provider_merge.links import (
    SPARK_PAGE,
    QuarantineLink,
    SnapshotLink,
    SparkApplicationLink,
    TableLink,
)
from airflow_provider_merge.metadata.operations import require_workspace
from airflow_provider_merge.operators._shared.compilers_choice import wants_both
from airflow_provider_merge.operators._shared.followed import following
from airflow_provider_merge.operators._shared.measured import Measured
from airflow_provider_merge.operators._shared.outcome import give_up, note_work
from airflow_provider_merge.operators._shared.rights import require_rights
from airflow_provider_merge.operators._shared.spark_conf import spark_conf
from airflow_provider_merge.operators._shared.task_end import task_end
from airflow_provider_merge.operators._shared.values import whole_number
from airflow_provider_merge.parameters import ParameterOperator
from airflow_provider_merge.submit.applications import SparkApplication
from airflow_provider_merge.submit.phases import END, Phases
from airflow_provider_merge.submit.plain_python import PlainPythonSubmitter
from airflow_provider_merge.submit.spark_submit import SparkSubmitSubmitter
from airflow_provider_merge.submit.submitter import (
    SparkJob,
    SparkSettings,
    SubmissionError,
    Submitter,
)
from airflow_provider_merge.templates import has_template
from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.request import JobRequest

if TYPE_CHECKING:
    from airflow.sdk import BaseOperatorLink, Context


@dataclass(frozen=True, slots=True)
class EndedJob:
    """How the job's process failed, if it did, and when it was submitted, of ``time.monotonic``.

    ``had_both_compilers``: of Java.
    """

    failure: SubmissionError | None
    submitted: float
    had_both_compilers: bool


class SparkJobOperator(ParameterOperator):
    """Starts one Spark job on tables of a catalog.

    :param catalog_conn_id: connection to the catalog, for example of the type ``paimon``
    :param spark_conn_id: connection of the type ``spark``; must exist
    :param spark_env: folder of the Python environment with pyspark; default: ``spark-env`` in the
        Spark connection's extra, then ``[merge] spark_env`` in Airflow's configuration
    :param conf: Spark configuration; never put a secret there
    :param driver_memory: as for spark-submit; so are the parameters that follow
    """

    template_fields: Sequence[str] = (
        "catalog_conn_id",
        "spark_conn_id",
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
    operator_extra_links: Collection[BaseOperatorLink] = (
        TableLink(),
        SnapshotLink(),
        QuarantineLink(),
        SparkApplicationLink(),
    )

    def __init__(
        self,
        *,
        catalog_conn_id: str = "paimon_default",
        spark_conn_id: str = "spark_default",
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
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        job_package.require_no_other_package()
        self.catalog_conn_id = catalog_conn_id
        self.spark_conn_id = spark_conn_id
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
        # By the XCom of the link that shows it.
        self.pages: dict[str, str] = {}
        self.phases = Phases()
        self.measured = Measured()
        self._submitter: Submitter | None = None
        self._killed = False
        if not has_template([getattr(self, name) for name in SparkJobOperator.template_fields]):
            self.spark_settings()

    @abstractmethod
    def execute(self, context: Context) -> Any:
        """Run the job; a retry finds what an earlier try committed."""

    def needs_session(self) -> bool:
        """Whether the job needs a Spark session, from parameters that are all rendered."""
        return True

    def get_submitter(self) -> Submitter:
        """What starts the job; a subclass may start it in another way."""
        settings = self.spark_settings()
        if self.needs_session():
            return SparkSubmitSubmitter(settings)
        return PlainPythonSubmitter(settings)

    def spark_settings(self) -> SparkSettings:
        """Where and how the job runs, from parameters that are all rendered.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
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

    def require_rights(self, asked: Sequence[tuple[JobRequest, CatalogHook]]) -> None:
        """Check what a driver that runs here, as this process's user, may write.

        Raises:
            JobError: names the folder.
        """
        require_rights(asked)

    def submit(
        self,
        work: JobRequest | JobBatch,
        hooks: CatalogHook | Sequence[CatalogHook],
        context: Context,
    ) -> EndedJob:
        """Run the job to its end; ``hooks``: that of all requests, or one for each.

        Raises:
            JobError: nothing was started.
            AirflowException: the task was ended before.
        """
        requests = work.requests if isinstance(work, JobBatch) else (work,)
        of_each = hooks if isinstance(hooks, Sequence) else [hooks] * len(requests)
        asked = list(zip(requests, of_each, strict=True))
        by_place = {each.catalog.workspace_location: (each, hook) for each, hook in asked}
        credentials = _credentials(work, asked)
        both_compilers = self.needs_session() and wants_both(context)
        job = SparkJob(
            f"{self.dag_id}.{self.task_id}",
            work,
            credentials,
            announce=lambda application: self._link_application(context, application),
            enter=self.phases.enter,
            ended=lambda: task_end(context["ti"]),
            note=lambda: note_work(asked),
            give_up=lambda: give_up(asked),
            require_rights=lambda: self.require_rights(asked),
            follow=lambda: following(asked, self.log),
            both_compilers=both_compilers,
        )
        for request, hook in by_place.values():
            require_workspace(request, hook.workspace_options())
        for request in requests:
            self.measured.expect(request)
            place = f" on {request.target}" if request.target else ""
            self.log.info("Operation %s%s", request.operation_id, place)
        self._submitter = self.get_submitter()
        if self._killed:
            raise AirflowException("The task was ended before the job was started.")
        submitted = time.monotonic()
        failure = None
        try:
            self._submitter.submit(job)
        except SubmissionError as error:
            failure = error
        self.phases.enter(END)
        return EndedJob(failure, submitted, both_compilers)

    def task_ended(self, context: Context) -> str:
        """What became of the task while its job was at work; empty as long as it goes on."""
        return "its processes were killed" if self._killed else task_end(context["ti"])

    def on_kill(self) -> None:
        """End every process of the job before Airflow goes on."""
        self._killed = True
        if self._submitter is not None:
            self._submitter.kill()

    def _link_application(self, context: Context, application: SparkApplication) -> None:
        """The page while the job runs, at once; that of later when the task ends."""
        self.pages[SPARK_PAGE] = application.last_page
        try:
            context["ti"].xcom_push(SPARK_PAGE, application.page)
        except Exception as error:  # noqa: BLE001 - no task fails for want of a link
            self.log.warning("There is no link to the Spark application yet: %s", error)


def _credentials(
    work: JobRequest | JobBatch, asked: Sequence[tuple[JobRequest, CatalogHook]]
) -> Mapping[str, str]:
    """The secrets of all catalogs of the job, and of the connections of its sources."""
    of_sources: dict[str, str] = {}
    for request, _ in asked:
        of_sources |= source_credentials(request)
    if not isinstance(work, JobBatch):
        return {**asked[0][1].credentials(), **of_sources}
    hooks = [
        next(hook for request, hook in asked if request.catalog == each) for each in work.catalogs
    ]
    return {**work.all_credentials(each.credentials() for each in hooks), **of_sources}
