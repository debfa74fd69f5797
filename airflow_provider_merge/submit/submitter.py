"""How a request reaches Spark: the seam between the operators and what starts the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from spark_jobs.contract.request import JobRequest


class SubmissionError(Exception):
    """The job's process ended with an error; what happened stands in the job's result, if any."""


@dataclass(frozen=True, slots=True)
class SparkJob:
    """One request, and the secrets that it needs and must not hold."""

    name: str
    request: JobRequest
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """What people tune; None leaves it to the Spark connection and the cluster.

    ``spark_env``: folder of a Python environment that has pyspark and the table library.
    ``archives``: as for spark-submit, comma-separated. Everything else goes into ``conf``.
    """

    spark_conn_id: str = "spark_default"
    conf: Mapping[str, str] = field(default_factory=dict)
    driver_memory: str | None = None
    driver_cores: int | None = None
    executor_memory: str | None = None
    executor_cores: int | None = None
    num_executors: int | None = None
    yarn_queue: str | None = None
    archives: str | None = None
    deploy_mode: str | None = None
    spark_env: str | None = None


class Submitter(Protocol):
    """Starts jobs; one object per try of a task."""

    def submit(self, job: SparkJob) -> None:
        """Run the job and wait for its end.

        Raises:
            RequestError: the settings can not work; nothing was started.
            SubmissionError: the job could not be started, or ended with an error.
        """
        ...

    def kill(self) -> None:
        """End the running job, and return when no process of it can write any more."""
        ...
