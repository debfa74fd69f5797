"""Metrics of statements and sensors, through Airflow's own ``Stats``: StatsD or OpenTelemetry.

The one list of their names; docs/metrics.md and the example dashboard have the same. What tells
values apart most is the end of the name, because plain StatsD has no tags.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Thread
from typing import Any, Final, Literal

log = logging.getLogger(__name__)

# Seconds that a task waits for a backend at most: names that do not resolve take long.
PATIENCE: Final = 2.0

OUTCOMES: Final = ("committed", "unchanged", "dry_run", "found", "failed", "not_run")
# Those of docs/start-up.md; ``maintain`` is any table maintenance, ``other`` what a later release
# may have.
PHASES: Final = (
    *("prepare", "launcher", "jvm", "imports", "session", "catalog", "history", "analyze", "plan"),
    *("source", "prune", "write", "compact", "manifests", "create", "alter", "maintain", "commit"),
    *("clean", "end", "other"),
)


@dataclass(frozen=True, slots=True)
class Metric:
    """A family of metrics: ``name``, or ``name.<end>`` for each of ``ends``.

    Timers are in milliseconds. ``tags`` are the names of those that it has.
    """

    name: str
    kind: Literal["counter", "timer"]
    ends: tuple[str, ...] = ()
    tags: tuple[str, ...] = ("kind", "format")

    @property
    def names(self) -> tuple[str, ...]:
        """The full names, without the prefix that Airflow puts in front."""
        return tuple(f"{self.name}.{end}" for end in self.ends) or (self.name,)


STATEMENTS: Final = Metric("merge.statements", "counter", OUTCOMES, ("kind", "format", "code"))
ROWS: Final = Metric("merge.rows", "counter", ("inserted", "updated", "deleted", "copied", "read"))
FILES: Final = Metric("merge.files", "counter", ("added", "removed", "rewritten"))
BYTES: Final = Metric("merge.bytes", "counter", ("added", "removed", "read"))
SNAPSHOTS: Final = Metric("merge.snapshots", "counter", ("made", "expired"))
ATTEMPTS: Final = Metric("merge.attempts", "counter")
CONFLICTS: Final = Metric("merge.conflicts", "counter")
PUBLISH_ATTEMPTS: Final = Metric("merge.publish_attempts", "counter")
RETRIES: Final = Metric("merge.retries", "counter", ("found", "repeated"))
DURATION: Final = Metric("merge.duration", "timer")
PHASE: Final = Metric("merge.phase", "timer", PHASES)
SENSOR: Final = Metric(
    "merge.sensor", "counter", ("found", "timeout", "failed"), ("sensor", "code")
)
SENSOR_LAG: Final = Metric("merge.sensor.lag", "timer", (), ("sensor",))
METRICS: Final = (
    *(STATEMENTS, ROWS, FILES, BYTES, SNAPSHOTS, ATTEMPTS, CONFLICTS, PUBLISH_ATTEMPTS, RETRIES),
    *(DURATION, PHASE, SENSOR, SENSOR_LAG),
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a metric: a count, or seconds of a timer."""

    metric: Metric
    value: float
    end: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The full name, without the prefix that Airflow puts in front."""
        return f"{self.metric.name}.{self.end}" if self.end else self.metric.name


def send(samples: Iterable[Sample]) -> None:
    """Hand samples to Airflow's ``Stats``, those that count nothing left out.

    Raises nothing, and returns after ``PATIENCE`` seconds at the latest.
    """
    wanted = [each for each in samples if each.value > 0 or each.metric.kind == "timer"]
    if not wanted:
        return
    # A thread, because a backend may hang; a daemon, because then the task ends nevertheless.
    thread = Thread(target=_send, args=(wanted,), daemon=True, name="metrics")
    try:
        thread.start()
        thread.join(PATIENCE)
    except RuntimeError as error:
        log.warning("There are no metrics of this task: %s", error)
        return
    if thread.is_alive():
        log.warning("The metrics backend has not answered for %.0f seconds.", PATIENCE)


def table_tag(table: str) -> dict[str, str]:
    """The tag ``table``: only of the tables that ``[merge] metrics_tables`` names.

    All others are ``other``. Without the setting, there is no such tag.
    """
    from airflow.providers.common.compat.sdk import conf

    listed = conf.get("merge", "metrics_tables", fallback="") or ""
    names = {each.strip().lower() for each in listed.split(",") if each.strip()}
    if not names or not table:
        return {}
    return {"table": table if table.lower() in names else "other"}


def phase_end(name: str, kind: str) -> str:
    """The end of the name of a phase's timer; ``kind`` is that of the statement."""
    if name in PHASES:
        return name
    return "maintain" if name == kind else "other"


def _send(samples: Sequence[Sample]) -> None:
    try:
        stats: Any = _stats()
        for sample in samples:
            tags = {**sample.tags}
            if sample.metric.kind == "timer":
                stats.timing(sample.name, timedelta(seconds=max(0.0, sample.value)), tags=tags)
            else:
                stats.incr(sample.name, count=int(sample.value), tags=tags)
    except Exception as error:  # noqa: BLE001 - no task fails for want of a metric
        log.warning("There are no metrics of this task: %s: %s", type(error).__name__, error)


def _stats() -> Any:
    """What Airflow's own code counts with, in a task and in the triggerer."""
    from airflow.sdk.observability.stats import Stats

    return Stats
