"""What a statement does under forced plans."""

from __future__ import annotations

import shutil
from typing import Any

from spark_jobs.contract.result import JobResult
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.merge.physical_plan import Plan, PlanLimits
from tests.conformance.behaviour import Behaviour
from tests.conformance.check import readable, request_of
from tests.conformance.conftest import MakeTable
from tests.conformance.harness import Harness


def run(behaviour: Behaviour, harness: Harness, limits: PlanLimits) -> JobResult:
    """Run the behaviour's statement."""
    request = request_of(behaviour, harness)
    return Job(request, harness.spark, harness.open(), limits=limits).run()


def outcome(result: JobResult, harness: Harness) -> tuple[Any, ...]:
    """All that users see of a statement: status, error, counts and rows."""
    metrics, error = result.metrics, result.error
    counts = (metrics.matched, metrics.inserted, metrics.updated, metrics.deleted)
    told = error and (error.code, error.message)
    return result.status, told, counts, readable(harness.state().rows)


def same_outcome(
    behaviour: Behaviour, kind: str, make_table: MakeTable, *plans: Plan
) -> tuple[str, list[str]]:
    """Require that the behaviour has one outcome under all ``plans``.

    Returns:
        The status of its result, and the plan that its metrics tell for each of ``plans``.
    """
    found, ran = [], []
    for plan in plans:
        harness = make_table(kind, behaviour.table, partitioned=True)
        result = run(behaviour, harness, PlanLimits(plan=plan))
        found.append(outcome(result, harness))
        ran.append(result.metrics.plan or "")
        shutil.rmtree(harness.warehouse)
    assert all(each == found[0] for each in found[1:]), found
    return str(found[0][0]), ran
