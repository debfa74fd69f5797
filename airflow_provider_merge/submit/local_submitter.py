"""The life of a submission whose files, and at least whose launcher, are on this machine."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from airflow_provider_merge import job_package
from airflow_provider_merge.submit.job_files import JobFiles, job_files
from airflow_provider_merge.submit.locales import utf8_variables
from airflow_provider_merge.submit.processes import OPERATION, SUBMISSION, end_processes
from airflow_provider_merge.submit.spark_environment import SparkEnvironment, check_libraries
from airflow_provider_merge.submit.submitter import SparkJob, SparkSettings, SubmissionError
from airflow_provider_merge.submit.surroundings import (
    deploy_mode,
    environment_of,
    environment_of_jobs,
    spark_connection,
)


class LocalSubmitter(ABC):
    """Implements ``Submitter`` but for the process that is started."""

    def __init__(self, settings: SparkSettings) -> None:
        self._settings = settings
        self._extra: Mapping[str, Any] = {}
        self._cluster = False
        self._has_local_master = False
        # The marks of its own processes: another try may have started the operation anew.
        self._marks: dict[str, str] = {}
        self._files: JobFiles | None = None
        self._killed = False
        self._versions_told = False

    def submit(self, job: SparkJob) -> None:
        """Run the job and wait for its end.

        What an earlier try of the same operation left running on this machine, because its worker
        was killed, is ended first.
        """
        job_package.require_no_other_package()
        connection = spark_connection(self._settings.spark_conn_id)
        self._extra, self._has_local_master = connection.extra, connection.has_local_master
        self._cluster = deploy_mode(self._settings, self._extra) == "cluster"
        environment = environment_of(self._settings, self._extra)
        if not self._cluster:
            job.require_rights()
            self._check_libraries(job, environment)
        operation = {OPERATION: job.work.operation_id}
        end_processes(operation)
        self._marks = {**operation, SUBMISSION: uuid.uuid4().hex}
        with job_files(job, is_shipped=self._is_shipped()) as files:
            self._prepare(job, files, environment)
            self._files = files
            if self._killed:
                raise SubmissionError("The task was ended before the job was started.")
            self._run(files, environment)

    def kill(self) -> None:
        """End the whole process tree, and what it started on a cluster.

        Called from a signal handler in the middle of ``submit``: a launcher that was just started
        may not be found yet, but without its files it cannot do anything.
        """
        self._killed = True
        if self._files is not None:
            self._files.remove()
        try:
            self._end_elsewhere()
        finally:
            self._end_processes()

    def _check_libraries(self, job: SparkJob, environment: SparkEnvironment | None) -> None:
        if environment is not None:
            connectors = {each.connector for request in job.requests for each in request.catalogs}
            conf, variables = self._settings.conf, self._variables()
            self._versions_told = check_libraries(environment, connectors, conf, variables)

    def _prepare(  # noqa: B027 - there may be nothing more to check
        self, job: SparkJob, files: JobFiles, environment: SparkEnvironment | None
    ) -> None:
        """Check the settings; nothing is started.

        Raises:
            RequestError: REQUEST_INVALID.
            CatalogError: LOCALE_MISSING, JAVA_NOT_FOUND.
        """

    @abstractmethod
    def _run(self, files: JobFiles, environment: SparkEnvironment | None) -> None:
        """Start the process, with ``_variables``, and wait for its end; kill it when that fails."""

    def _end_elsewhere(self) -> None:  # noqa: B027 - most have nothing there
        """End what runs on other machines."""

    def _is_shipped(self) -> bool:
        """Whether other machines need the package."""
        return not self._has_local_master

    def _variables(self) -> dict[str, str]:
        """The process's environment; the marks in it let ``kill`` find what it starts."""
        variables = environment_of_jobs()
        return {**variables, **(utf8_variables(variables) or {}), **self._marks}

    def _end_processes(self) -> None:
        if self._marks:
            end_processes(self._marks)
