"""The Spark application of a job, as the output of spark-submit tells it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from urllib.parse import quote

from airflow_provider_merge.links import is_page
from spark_jobs.contract.application_line import told_application

# What Spark's clients of YARN and Kubernetes say.
_TRACKING = re.compile(r"tracking URL: (\S+)")
_IDS = (
    re.compile(r"\b(application_\d+_\d+)\b"),
    re.compile(r"\bspark-app-selector -> (spark-[a-z0-9]+)\b"),
)


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

    def after(self, line: str) -> SparkApplication:
        """What is known after a line of the output; what was told first stays."""
        if driver := told_application(line):
            application_id, page = driver
            return self._told(application_id, running_page=page)
        if found := _TRACKING.search(line):
            return self._told(tracking_page=found[1])
        for pattern in _IDS:
            if found := pattern.search(line):
                return self._told(found[1])
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
    lines: Iterator[str], history: str, announce: Callable[[SparkApplication], None]
) -> Iterator[str]:
    """The same lines; ``announce`` hears of the application whenever more of it is known."""
    known = SparkApplication(history=history)
    for line in lines:
        told = known.after(line)
        if told != known:
            known = told
            announce(known)
        yield line
