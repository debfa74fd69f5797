"""What a statement costs the driver: calls to the JVM, and Spark jobs."""

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

_RELEASE = MEMORY_COMMAND_NAME + MEMORY_DEL_SUBCOMMAND_NAME


@dataclass
class Cost:
    """``calls``: those to the JVM, except for ``releases`` of objects, which come at some time."""

    calls: int = 0
    releases: int = 0
    jobs: int = 0


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

    before = _jobs(spark)
    with mock.patch.object(py4j.clientserver.JavaClient, "send_command", counting):
        yield cost
    cost.jobs = _jobs(spark) - before


def _jobs(spark: SparkSession) -> int:
    return int(spark._jsparkSession.sparkContext().dagScheduler().numTotalJobs())
