"""The submitter for jobs that need no Spark session: the Spark environment's Python, at once."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Callable

from airflow_provider_merge.submit.job_files import JobFiles
from airflow_provider_merge.submit.job_log import JobLog
from airflow_provider_merge.submit.local_submitter import LocalSubmitter
from airflow_provider_merge.submit.output_lines import LastLook, output_lines
from airflow_provider_merge.submit.phases import IMPORTS, without_phases
from airflow_provider_merge.submit.processes import process_failure
from airflow_provider_merge.submit.spark_environment import SparkEnvironment
from airflow_provider_merge.submit.spark_submit import SparkSubmitSubmitter
from airflow_provider_merge.submit.submitter import (
    SparkJob,
    SparkSettings,
    Submitter,
)
from airflow_provider_merge.submit.surroundings import (
    deploy_mode,
    environment_of,
    spark_connection,
)
from spark_jobs.contract.arguments import ANSWERS, CREDENTIALS, NO_SESSION, VERSIONS_TOLD

log = logging.getLogger(__name__)


class PlainPythonSubmitter(LocalSubmitter):
    """Runs a job in a Python process on this machine.

    With spark-submit where the deploy mode is cluster, and where no environment is configured, so
    that only spark-submit knows a Python that has the table library.
    """

    def __init__(self, settings: SparkSettings) -> None:
        super().__init__(settings)
        self._other: Submitter | None = None
        self._last_look: LastLook | None = None
        self._enter: Callable[[str], None] = lambda _: None

    def submit(self, job: SparkJob) -> None:
        """Run the job and wait for its end, after what an earlier try left running was ended."""
        extra = spark_connection(self._settings.spark_conn_id).extra
        without_python = environment_of(self._settings, extra) is None
        if without_python or deploy_mode(self._settings, extra) == "cluster":
            self._other = SparkSubmitSubmitter(self._settings)
            self._other.submit(job)
        else:
            super().submit(job)

    def _prepare(
        self, job: SparkJob, files: JobFiles, environment: SparkEnvironment | None
    ) -> None:
        self._last_look = LastLook(files.folder, job.ended)
        self._enter = job.enter

    def _end_elsewhere(self) -> None:
        if self._other is not None:
            self._other.kill()

    def _is_shipped(self) -> bool:
        return False

    def _run(self, files: JobFiles, environment: SparkEnvironment | None) -> None:
        assert environment is not None  # noqa: S101 - see submit
        assert self._last_look is not None  # noqa: S101 - see _prepare
        command = [str(environment.python), str(files.main), NO_SESSION]
        command += [files.option, str(files.work)]
        if files.credentials is not None:
            command += [CREDENTIALS, str(files.credentials)]
        command += [ANSWERS, str(files.folder)]
        command += [VERSIONS_TOLD] if self._versions_told else []
        variables = {**self._variables(), "PYTHONPATH": str(files.package)}
        self._enter(IMPORTS)
        process = subprocess.Popen(
            command,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="backslashreplace",
        )
        with process:
            try:
                assert process.stdout is not None  # noqa: S101
                job_log = JobLog(log)
                lines = output_lines(process.stdout, files.line_secret)
                lines = without_phases(self._last_look.answering(lines), self._enter)
                for line in lines:
                    job_log.info(line.text.rstrip())
                job_log.close()
                code = process.wait()
            except BaseException:
                # A timeout or an interrupt: nothing may be removed once the task has ended.
                self.kill()
                raise
        if code != 0:
            raise process_failure("The job's Python", code)
