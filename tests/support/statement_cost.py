"""What a statement costs the driver: calls to the JVM, Spark's plans and jobs, and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest import mock

import py4j.clientserver
from py4j.protocol import MEMORY_COMMAND_NAME, MEMORY_DEL_SUBCOMMAND_NAME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_UNITS = ("B", "KiB", "MiB", "GiB")
_RELEASE = MEMORY_COMMAND_NAME + MEMORY_DEL_SUBCOMMAND_NAME


@dataclass
class Cost:
    """``calls``: those to the JVM, except for ``releases`` of objects, which come at some time.

    ``plans`` are the queries that Spark planned and ran, ``python_bytes`` what it sent to and took
    from Python workers, to about a hundredth.
    """

    calls: int = 0
    releases: int = 0
    jobs: int = 0
    plans: int = 0
    python_bytes: int = 0


@contextmanager
def counted(spark: SparkSession) -> Iterator[Cost]:
    """Count what happens in the block; the cost is complete after it."""
    cost = Cost()
    send = py4j.clientserver.JavaClient.send_command

    def counting(self: Any, command: str, *arguments: Any, **more: Any) -> Any:
        if command.startswith(_RELEASE):
            cost.releases += 1
        else:
            cost.calls += 1
        return send(self, command, *arguments, **more)

    jobs, newest = _jobs(spark), max(_plans(spark, after=-1, most=1), default=-1)
    with mock.patch.object(py4j.clientserver.JavaClient, "send_command", counting):
        yield cost
    cost.jobs = _jobs(spark) - jobs
    store, ran = spark._jsparkSession.sharedState().statusStore(), _plans(spark, after=newest)
    cost.plans = len(ran)
    cost.python_bytes = sum(_python_bytes(store, plan) for plan in ran.values())


def _jobs(spark: SparkSession) -> int:
    return int(spark._jsparkSession.sparkContext().dagScheduler().numTotalJobs())


def _plans(spark: SparkSession, after: int, most: int | None = None) -> dict[int, Any]:
    """The newest queries that Spark has run, by their numbers, which are above ``after``.

    A session remembers a thousand of them, and each question about one is a call to the JVM.
    """
    spark._jsparkSession.sparkContext().listenerBus().waitUntilEmpty()
    known = spark._jsparkSession.sharedState().statusStore().executionsList()
    found: dict[int, Any] = {}
    for index in reversed(range(known.size())):
        plan = known.apply(index)
        if plan.executionId() <= after or len(found) == most:
            break
        found[plan.executionId()] = plan
    return found


def _python_bytes(store: Any, execution: Any) -> int:
    values, metrics = store.executionMetrics(execution.executionId()), execution.metrics()
    total = 0
    for index in range(metrics.size()):
        metric = metrics.apply(index)
        value = values.get(metric.accumulatorId())
        if (
            "Python workers" in metric.name()
            and metric.metricType() == "size"
            and value.isDefined()
        ):
            total += _size(value.get())
    return total


def _size(text: str) -> int:
    """What Spark shows as ``total (min, med, max)``, a line, and ``64.0 KiB (…)``."""
    number, unit = text.splitlines()[-1].split()[:2]
    return round(float(number.replace(",", "")) * 1024 ** _UNITS.index(unit))
