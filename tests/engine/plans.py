"""The physical plan that a behaviour's statement gets, without running it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.merge.general_plan import GeneralPlan, PlanResult
from spark_jobs.engine.merge.physical_plan import PlanLimits
from spark_jobs.engine.write.change_writer import ChangeWriter
from tests.conformance.behaviour import Behaviour
from tests.conformance.check import request_of
from tests.conformance.harness import Harness


def planned(
    behaviour: Behaviour,
    harness: Harness,
    monkeypatch: pytest.MonkeyPatch,
    limits: PlanLimits | None = None,
) -> tuple[str, int]:
    """The general plan's change rows as Spark plans them, and the number of files to read."""
    plans: list[tuple[str, int]] = []

    def look(self: GeneralPlan, writer: ChangeWriter) -> PlanResult:
        del writer
        plan = self.changes()._jdf.queryExecution().executedPlan().toString()
        plans.append((plan, len(self.files)))
        return PlanResult([], 0)

    with monkeypatch.context() as patch:
        patch.setattr(GeneralPlan, "run", look)
        request = request_of(behaviour, harness)
        join = replace(limits or PlanLimits(), plan="join")
        result = Job(request, harness.spark, harness.open(), limits=join).run()
    assert result.error is None, result.error
    assert len(plans) == 1
    return plans[0]
