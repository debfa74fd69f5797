"""How a request reaches Spark: the seam between the operators and what starts the job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.submit.applications import SparkApplication
from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.checks import not_among
from spark_jobs.contract.request import JobRequest

_DEPLOY_MODES = ("client", "cluster")


class SubmissionError(Exception):
    """The job's process ended with an error; what happened stands in the job's result, if any.

    ``remedy`` says what the reader can do where the end itself tells that.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class SparkJob:
    """A request or several, and the secrets that they need and must not hold.

    ``announce`` hears of the Spark application as soon as anything of it is known, ``enter`` of the
    phase that begins. ``ended`` tells
    what became of the job's task, empty as long as it goes on; it is asked before anything is
    published. ``note`` notes the work in the workspace, for a driver that may begin after its task
    has ended; ``give_up`` lets nothing be published any more by what cannot be ended for certain.
    ``require_rights`` checks what a driver that runs here, as this process's user, may write.
    ``both_compilers``: Java's second compiler pays. Within ``follow``, a job whose driver's log is
    elsewhere is told of in the task's.
    """

    name: str
    work: JobRequest | JobBatch
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    announce: Callable[[SparkApplication], None] = field(default=lambda _: None, repr=False)
    enter: Callable[[str], None] = field(default=lambda _: None, repr=False)
    ended: Callable[[], str] = field(default=lambda: "", repr=False)
    note: Callable[[], None] = field(default=lambda: None, repr=False)
    give_up: Callable[[], None] = field(default=lambda: None, repr=False)
    require_rights: Callable[[], None] = field(default=lambda: None, repr=False)
    follow: Callable[[], AbstractContextManager[None]] = field(default=nullcontext, repr=False)
    both_compilers: bool = False

    @property
    def requests(self) -> tuple[JobRequest, ...]:
        """The work, in its order."""
        return self.work.requests if isinstance(self.work, JobBatch) else (self.work,)


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

    def __post_init__(self) -> None:
        if self.deploy_mode is not None:
            check_deploy_mode("deploy_mode", self.deploy_mode)
        if self.spark_env and not Path(self.spark_env).is_absolute():
            raise invalid("spark_env", f"{self.spark_env!r} is not an absolute path")


def check_deploy_mode(field: str, mode: str) -> None:
    """Check a mode that the Spark provider would pass on as it is.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``.
    """
    if mode not in _DEPLOY_MODES:
        raise not_among(field, mode, _DEPLOY_MODES)


class Submitter(Protocol):
    """Starts jobs; one object per try of a task."""

    def submit(self, job: SparkJob) -> None:
        """Run the job and wait for its end.

        Raises:
            RequestError: the settings cannot work; nothing was started.
            CatalogError: LIBRARY_MISSING, JAVA_NOT_FOUND, LOCALE_MISSING, USER_MISSING, or what
                ``require_rights`` raises; nothing was started.
            SubmissionError: the job could not be started, or ended with an error.
        """
        ...

    def kill(self) -> None:
        """End the running job, and return when no process of it can write any more."""
        ...
