"""The submitter over the Spark provider's ``SparkSubmitHook``."""

from __future__ import annotations

import logging
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, Final

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.common.compat.sdk import AirflowException

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.submit.applications import SparkApplication, announced
from airflow_provider_merge.submit.background_archive import leave_maker
from airflow_provider_merge.submit.cancellation import cancel_application
from airflow_provider_merge.submit.class_archive import (
    CLASS_PATH,
    OPTIONS,
    ClassArchive,
    MissingArchiveError,
    NoArchiveError,
    launcher_options,
    usable_archive,
)
from airflow_provider_merge.submit.compilers import compiler_options
from airflow_provider_merge.submit.java import java_variables
from airflow_provider_merge.submit.job_files import JobFiles
from airflow_provider_merge.submit.job_log import JobLog
from airflow_provider_merge.submit.local_master import local_conf, local_variables
from airflow_provider_merge.submit.local_submitter import LocalSubmitter
from airflow_provider_merge.submit.locales import cluster_conf, require_utf8
from airflow_provider_merge.submit.output_lines import LastLook, OutputLine, output_lines
from airflow_provider_merge.submit.phases import CLUSTER, START, without_phases
from airflow_provider_merge.submit.processes import process_failure
from airflow_provider_merge.submit.spark_environment import SparkEnvironment
from airflow_provider_merge.submit.submitter import SparkJob, SparkSettings, SubmissionError
from airflow_provider_merge.submit.surroundings import (
    class_archive_folder,
    history_server,
    makes_class_archives,
)
from airflow_provider_merge.submit.user_names import user_variables
from spark_jobs.contract.arguments import ANSWERS, CREDENTIALS, LAUNCHED, VERSIONS_TOLD
from spark_jobs.contract.batch import JobBatch

log = logging.getLogger(__name__)

# Where the hook keeps what it has read of ids.
_IDS: Final = ("_yarn_application_id", "_kubernetes_driver_pod", "_kubernetes_application_id")
# Seconds: it asks for the application's state each second, and Airflow gives a task five to end.
_LAUNCHER_PATIENCE: Final = 3.0


class _ReadingHook(SparkSubmitHook):
    """Tells of the Spark application, and answers the job, while it reads the launcher's output."""

    announce: Callable[[SparkApplication], None]
    enter: Callable[[str], None]
    history: str
    last_look: LastLook
    line_secret: str
    _job_log: JobLog | None = None

    @property
    def log(self) -> Any:
        """While it reads the launcher's output, what logs each line at its level."""
        return self._job_log or super().log

    def _process_spark_submit_log(self, itr: Iterator[Any]) -> None:
        lines = self.last_look.answering(output_lines(itr, self.line_secret))
        lines = announced(without_phases(lines, self.enter), self.history, self.announce)
        self._job_log = job_log = JobLog(super().log)
        try:
            super()._process_spark_submit_log(self._texts(lines))
        finally:
            job_log.close()
            self._job_log = None

    def _texts(self, lines: Iterable[OutputLine]) -> Iterator[str]:
        """The lines for the hook, which takes whatever looks like an id for that of the job.

        It kills what has that id. The first one is what the client said right after submitting.
        """
        first: dict[str, Any] = {}
        for line in lines:
            yield line.text
            found = {name: getattr(self, name, None) for name in _IDS}
            first = {**{name: each for name, each in found.items() if each}, **first}
            for name, each in first.items():
                setattr(self, name, each)


class SparkSubmitSubmitter(LocalSubmitter):
    """Runs a job with spark-submit on this machine, in client or cluster mode."""

    def __init__(self, settings: SparkSettings) -> None:
        super().__init__(settings)
        self._hook: SparkSubmitHook | None = None
        self._job: SparkJob | None = None
        self._application = SparkApplication()
        self._has_ended_elsewhere = False
        self._archive: ClassArchive | None = None
        self._makes_archive_in: Path | None = None
        self._java: dict[str, str] = {}

    def _prepare(
        self, job: SparkJob, files: JobFiles, environment: SparkEnvironment | None
    ) -> None:
        variables = self._variables()
        if environment is not None:
            self._java = java_variables(environment, variables)
            variables.update(self._java)
        if not self._cluster:
            require_utf8(variables)
        if environment is not None and not self._cluster:
            self._find_archive(environment, variables)
        hook = self._new_hook(job, files, environment)
        hook.announce, hook.enter = self._announce, job.enter
        hook.history = history_server(self._settings, self._extra)
        hook.last_look, hook.line_secret = LastLook(files.folder, job.ended), files.line_secret
        _check_master(hook)
        if self._cluster:
            job.note()
        self._hook, self._job = hook, job

    def _find_archive(self, environment: SparkEnvironment, variables: Mapping[str, str]) -> None:
        folder = class_archive_folder()
        if folder is None:
            return
        try:
            self._archive = usable_archive(folder, environment, self._settings.conf, variables)
        except NoArchiveError as error:
            log.info("Java starts without an archive of Spark's classes: %s", error)
            if isinstance(error, MissingArchiveError) and makes_class_archives():
                self._makes_archive_in = folder

    def _end_elsewhere(self) -> None:
        if self._has_ended_elsewhere:
            return
        if self._hook is not None and self._job is not None and self._cluster:
            self._has_ended_elsewhere = True
            # The cluster may be slow to end the driver, or not hear of it.
            self._job.give_up()
            if cancel_application(self._hook, self._application.application_id, self._extra):
                _let_launcher_tidy(self._hook)

    def _run(self, files: JobFiles, environment: SparkEnvironment | None) -> None:
        hook, job, variables = self._hook, self._job, self._variables()
        assert hook is not None  # noqa: S101 - see _prepare
        assert job is not None  # noqa: S101
        variables.update(self._java)
        variables.update(user_variables(files.folder, variables))
        if environment is not None:
            # A SPARK_HOME of the worker would win over the launcher's own folder.
            variables["SPARK_HOME"] = str(environment.spark_home)
        if self._has_local_master:
            variables.update(local_variables(files.package, variables))
        if not self._cluster:
            variables[OPTIONS] = compiler_options(variables, both=job.both_compilers)
        if self._archive is not None and environment is not None:
            variables[OPTIONS] = launcher_options(self._archive, variables)
            variables.setdefault("SPARK_CONF_DIR", str(environment.spark_home / "conf"))
            variables["SPARK_HOME"] = str(self._archive.spark_home)
        job.enter(CLUSTER if self._cluster else START)
        try:
            with job.follow() if self._cluster else nullcontext():
                hook.submit(str(files.main), env=variables)
        except AirflowException as error:
            # The launcher's end is not the driver's: from here on nothing may be committed.
            self.kill()
            raise self._failure(hook, error) from error
        except FileNotFoundError as error:
            raise invalid(
                "spark_env",
                f"there is no {error.filename} on this worker",
                "Set spark_env, or [merge] spark_env in Airflow's configuration, to a Python "
                "environment that has pyspark, or put spark-submit on the PATH.",
            ) from None
        except BaseException:
            # A timeout or an interrupt: nothing may write any more once the task has ended.
            self.kill()
            raise
        finally:
            _close_output(hook)
        if self._makes_archive_in is not None and environment is not None:
            leave_maker(self._makes_archive_in, environment, variables)

    def _announce(self, application: SparkApplication) -> None:
        self._application = application
        if self._job is not None:
            self._job.announce(application)

    def _failure(self, hook: SparkSubmitHook, error: AirflowException) -> SubmissionError:
        """The launcher's end and its last lines; the hook's own text has the whole command too."""
        process = hook._submit_sp  # noqa: SLF001
        if process is None or not process.returncode:
            return SubmissionError(str(error))
        what = "spark-submit" if self._cluster else "The driver"
        # Older versions of the Spark provider keep none.
        lines = getattr(hook, "_submit_log_tail", "")
        memory = self._settings.driver_memory or "Spark's default, 1g"
        return process_failure(
            what, process.returncode, memory=f"driver_memory is {memory}", last_lines=lines
        )

    def _new_hook(
        self, job: SparkJob, files: JobFiles, environment: SparkEnvironment | None
    ) -> _ReadingHook:
        settings = self._settings
        cluster = self._cluster
        shipped = [files.work] + ([files.credentials] if files.credentials else [])
        arguments = [files.option, files.work.name if cluster else str(files.work)]
        if files.credentials is not None:
            name = files.credentials.name if cluster else str(files.credentials)
            arguments += [CREDENTIALS, name]
        if not cluster:
            # What a driver on a cluster prints is not read here.
            arguments += [ANSWERS, str(files.folder), LAUNCHED, f"{time.time():.3f}"]
            arguments += [VERSIONS_TOLD] if self._versions_told else []
        try:
            return _ReadingHook(
                conn_id=settings.spark_conn_id,
                name=job.name,
                conf=self._conf(job, files, None if cluster else environment),
                spark_binary=str(environment.spark_submit) if environment else None,
                py_files=str(files.package) if self._is_shipped() else None,
                files=",".join(str(path) for path in shipped) if cluster else None,
                archives=settings.archives,
                driver_memory=settings.driver_memory,
                executor_memory=settings.executor_memory,
                executor_cores=settings.executor_cores,
                num_executors=settings.num_executors,
                yarn_queue=settings.yarn_queue,
                deploy_mode=settings.deploy_mode,
                application_args=arguments,
            )
        except NameError:  # how the hook says that its Kubernetes client could not be imported
            raise invalid(
                "spark_conn_id",
                f"connection {settings.spark_conn_id!r} names a Kubernetes master",
                "Install apache-airflow-providers-cncf-kubernetes beside Airflow.",
            ) from None

    def _conf(
        self, job: SparkJob, files: JobFiles, environment: SparkEnvironment | None
    ) -> dict[str, str]:
        """The user's conf over what this provider sets by itself."""
        conf: dict[str, str] = {}
        if not self._cluster:
            conf["spark.log.level"] = "WARN"  # Airflow's log is for the job's own lines
        else:
            # Tries are Airflow's: YARN would start the driver again under the same number.
            conf["spark.yarn.maxAppAttempts"] = "1"
        if self._has_local_master:
            conf.update(local_conf(files.folder))
        else:
            conf.update(cluster_conf(cluster_mode=self._cluster))
        if isinstance(job.work, JobBatch) and job.work.max_parallel > 1:
            conf["spark.scheduler.mode"] = "FAIR"
        if environment is not None:
            conf["spark.pyspark.python"] = str(environment.python)
            conf["spark.pyspark.driver.python"] = str(environment.python)
            if self._archive is not None:
                conf[CLASS_PATH] = self._archive.class_path
        if self._settings.driver_cores is not None:
            conf["spark.driver.cores"] = str(self._settings.driver_cores)
        return {**conf, **self._settings.conf}


def _close_output(hook: SparkSubmitHook) -> None:
    """Close the pipe that the hook reads the launcher's output from, and take note of its end.

    The hook leaves both to chance.
    """
    process = hook._submit_sp  # noqa: SLF001
    if process is not None:
        process.stdout.close()
        process.poll()


def _let_launcher_tidy(hook: SparkSubmitHook) -> None:
    """Wait for the launcher's own end.

    Of an application that was never started, or never submitted, nobody else removes the staging
    area, which has the job's credentials.
    """
    process = hook._submit_sp  # noqa: SLF001
    if process is not None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LAUNCHER_PATIENCE)


def _check_master(hook: SparkSubmitHook) -> None:
    # The hook alone knows how it reads host, port and type of the connection into a master.
    connection = hook._connection  # noqa: SLF001
    master = str(connection["master"])
    if connection["deploy_mode"] == "cluster" and not master.startswith(("yarn", "k8s")):
        raise invalid(
            "deploy_mode",
            f"Spark runs no Python application in cluster mode on the master {master}",
            "Use deploy_mode='client', or a YARN or Kubernetes master.",
        )
