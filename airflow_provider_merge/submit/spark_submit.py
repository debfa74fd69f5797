"""The submitter over the Spark provider's ``SparkSubmitHook``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowNotFoundException,
    BaseHook,
)
from airflow.providers.common.compat.sdk import (
    conf as airflow_conf,
)

from airflow_provider_merge import job_package
from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.submit.job_files import JobFiles, job_files
from airflow_provider_merge.submit.processes import MARK, end_processes
from airflow_provider_merge.submit.spark_environment import SparkEnvironment
from airflow_provider_merge.submit.submitter import (
    SparkJob,
    SparkSettings,
    SubmissionError,
    check_deploy_mode,
)


class SparkSubmitSubmitter:
    """Runs a job with spark-submit on this machine, in client or cluster mode."""

    def __init__(self, settings: SparkSettings) -> None:
        self._settings = settings
        self._hook: SparkSubmitHook | None = None
        self._files: JobFiles | None = None
        self._operation_id: str | None = None
        self._cluster = False
        self._killed = False

    def submit(self, job: SparkJob) -> None:
        """Run the job and wait for its end.

        What an earlier try of the same operation left running on this machine, because its worker
        was killed, is ended first.
        """
        job_package.require_no_other_package()
        extra = _spark_connection(self._settings.spark_conn_id)
        self._cluster = _deploy_mode(self._settings, extra) == "cluster"
        environment = self._environment(extra)
        self._operation_id = job.request.operation_id
        end_processes(self._operation_id)
        with job_files(job) as files:
            hook = self._new_hook(job, files, environment)
            _check_master(hook)
            self._hook, self._files = hook, files
            if self._killed:
                raise SubmissionError("The task was ended before Spark was started.")
            self._run(hook, files, environment)

    def kill(self) -> None:
        """End the whole process tree, and what the hook started on a cluster.

        Called from a signal handler in the middle of ``submit``: a launcher that was just started
        may not be found yet, but without its files it can not do anything.
        """
        self._killed = True
        if self._files is not None:
            self._files.remove()
        try:
            if self._hook is not None and self._cluster:
                self._hook.on_kill()
        finally:
            if self._operation_id is not None:
                end_processes(self._operation_id)

    def _run(
        self, hook: SparkSubmitHook, files: JobFiles, environment: SparkEnvironment | None
    ) -> None:
        variables = {**os.environ, MARK: str(self._operation_id)}
        if environment is not None:
            # A SPARK_HOME of the worker would win over the launcher's own folder.
            variables["SPARK_HOME"] = str(environment.spark_home)
        try:
            hook.submit(str(files.main), env=variables)
        except AirflowException as error:
            # The launcher's end is not the driver's: from here on nothing may be committed.
            end_processes(str(self._operation_id))
            raise SubmissionError(str(error)) from error
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

    def _environment(self, extra: Mapping[str, Any]) -> SparkEnvironment | None:
        """Where pyspark is: the operator's setting, the Spark connection's, or Airflow's."""
        candidates = {
            "spark_env": self._settings.spark_env,
            f"connection {self._settings.spark_conn_id!r}, spark-env": extra.get("spark-env"),
            "[merge] spark_env": airflow_conf.get("merge", "spark_env", fallback=None),
        }
        for field, folder in candidates.items():
            if folder:
                return SparkEnvironment.at(str(folder), field)
        return None

    def _new_hook(
        self, job: SparkJob, files: JobFiles, environment: SparkEnvironment | None
    ) -> SparkSubmitHook:
        settings = self._settings
        cluster = self._cluster
        shipped = [files.request] + ([files.credentials] if files.credentials else [])
        arguments = ["--request", files.request.name if cluster else str(files.request)]
        if files.credentials is not None:
            name = files.credentials.name if cluster else str(files.credentials)
            arguments += ["--credentials", name]
        try:
            return SparkSubmitHook(
                conn_id=settings.spark_conn_id,
                name=job.name,
                conf=self._conf(None if cluster else environment),
                spark_binary=str(environment.spark_submit) if environment else None,
                py_files=str(files.package),
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

    def _conf(self, environment: SparkEnvironment | None) -> dict[str, str]:
        """The user's conf over what this provider sets by itself."""
        conf: dict[str, str] = {}
        if not self._cluster:
            conf["spark.log.level"] = "WARN"  # Airflow's log is for the job's own lines
        if environment is not None:
            conf["spark.pyspark.python"] = str(environment.python)
            conf["spark.pyspark.driver.python"] = str(environment.python)
        if self._settings.driver_cores is not None:
            conf["spark.driver.cores"] = str(self._settings.driver_cores)
        return {**conf, **self._settings.conf}


def _spark_connection(conn_id: str) -> Mapping[str, Any]:
    """The extra of the Spark connection, which must exist: the hook would quietly take YARN."""
    try:
        extra: Mapping[str, Any] = BaseHook.get_connection(conn_id).extra_dejson
    except AirflowNotFoundException:
        raise invalid(
            "spark_conn_id",
            f"there is no connection {conn_id!r}",
            "Create it with the type spark and the master as its host, such as local[*] or yarn.",
        ) from None
    return extra


def _deploy_mode(settings: SparkSettings, extra: Mapping[str, Any]) -> str:
    if settings.deploy_mode is not None:
        return settings.deploy_mode
    mode = str(extra.get("deploy-mode") or "client")
    check_deploy_mode(f"connection {settings.spark_conn_id!r}, deploy-mode", mode)
    return mode


def _close_output(hook: SparkSubmitHook) -> None:
    """Close the pipe that the hook reads the launcher's output from; it leaves that to chance."""
    process = hook._submit_sp  # noqa: SLF001
    if process is not None:
        process.stdout.close()


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
