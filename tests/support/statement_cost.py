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

    before, known = _jobs(spark), _plans(spark)
    with mock.patch.object(py4j.clientserver.JavaClient, "send_command", counting):
        yield cost
    cost.jobs = _jobs(spark) - before
    ran = {number: sent for number, sent in _plans(spark).items() if number not in known}
    cost.plans, cost.python_bytes = len(ran), sum(ran.values())


def _jobs(spark: SparkSession) -> int:
    return int(spark._jsparkSession.sparkContext().dagScheduler().numTotalJobs())


def _plans(spark: SparkSession) -> dict[int, int]:
    """The bytes between Spark and Python workers in each query that Spark has run, by number."""
    spark._jsparkSession.sparkContext().listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    found = store.executionsList()
    return {
        found.apply(index).executionId(): _python_bytes(store, found.apply(index))
        for index in range(found.size())
    }


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
