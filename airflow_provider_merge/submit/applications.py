"""The Spark application of a job, as the output of spark-submit tells it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

from airflow_provider_merge.links import is_page
from airflow_provider_merge.submit.output_lines import OutputLine
from spark_jobs.contract.job_lines import named_application

# What Spark's clients of YARN and Kubernetes say, by the loggers that say it.
_YARN: Final = frozenset({"Client", "YarnClientImpl", "YarnClientSchedulerBackend"})
_YARN_ID: Final = re.compile(
    r"(?:Submitting application|Submitted application|Application report for|Application) "
    r"(application_\d+_\d+)\b"
)
_TRACKING: Final = re.compile(r"\t tracking URL: (\S+)")
_KUBERNETES: Final = "LoggingPodStatusWatcherImpl"
_KUBERNETES_ID: Final = re.compile(r"\t labels: (?:.*, )?spark-app-selector -> (spark-[a-z0-9]+)\b")


@dataclass(frozen=True, slots=True)
class SparkApplication:
    """What is known of an application; texts are empty as long as nothing is.

    ``running_page`` is the driver's own and ends with it, ``tracking_page`` is the cluster's and
    stays. ``history`` is the address of a history server.
    """

    application_id: str = ""
    running_page: str = ""
    tracking_page: str = ""
    history: str = ""

    @property
    def page(self) -> str:
        """Where the application is seen while it runs."""
        return self.tracking_page or self.running_page or self.last_page

    @property
    def last_page(self) -> str:
        """Where it is seen once it has ended."""
        if self.history and self.application_id:
            return f"{self.history.rstrip('/')}/history/{quote(self.application_id)}/"
        return self.tracking_page

    def after(self, line: OutputLine) -> SparkApplication:
        """What is known after a line of the output; what was told first stays."""
        if line.is_own and (driver := named_application(line.text)):
            application_id, page = driver
            return self._told(application_id, running_page=page)
        if line.client in _YARN:
            if matched := _TRACKING.match(line.said):
                return self._told(tracking_page=matched[1])
            if matched := _YARN_ID.match(line.said):
                return self._told(matched[1])
        if line.client == _KUBERNETES and (matched := _KUBERNETES_ID.match(line.said)):
            return self._told(matched[1])
        return self

    def _told(
        self, application_id: str = "", *, running_page: str = "", tracking_page: str = ""
    ) -> SparkApplication:
        return replace(
            self,
            application_id=self.application_id or application_id,
            running_page=self.running_page or (running_page if is_page(running_page) else ""),
            tracking_page=self.tracking_page or (tracking_page if is_page(tracking_page) else ""),
        )


def announced(
    lines: Iterable[OutputLine], history: str, announce: Callable[[SparkApplication], None]
) -> Iterator[OutputLine]:
    """The same lines; ``announce`` hears of the application whenever more of it is known."""
    known = SparkApplication(history=history)
    for line in lines:
        after = known.after(line)
        if after != known:
            known = after
            announce(known)
        yield line
