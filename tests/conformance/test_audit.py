"""Audit tables: exactly the changes of each snapshot, of every statement and kind of table."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from spark_jobs.contract.guards import Guards
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.behaviour import Behaviour
from tests.conformance.changing import changing_cases
from tests.conformance.check import request_of
from tests.conformance.conftest import MakeTable
from tests.conformance.harness import Harness
from tests.conformance.tables import ORDERS_WITHOUT_NULL
from tests.support.audits import AUDIT, make_audit_table, replayed, table_rows
from tests.support.forced_plans import Forced, forced_plan


@pytest.mark.slow
@pytest.mark.parametrize(("behaviour", "kind", "plan"), list(changing_cases(36)))
def test_the_audit_has_each_changed_row_once(
    behaviour: Behaviour, kind: str, plan: Forced, make_table: MakeTable
) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    make_audit_table(harness.connector)
    before = harness.read()

    told = _run(behaviour, harness, dry_run=True)
    assert (told.status, told.error) == ("dry_run", None)
    assert table_rows(harness.spark, harness.connector) == []
    with forced_plan(plan):
        done = _run(behaviour, harness)

    assert (done.status, done.error) == ("committed", None)
    audit = table_rows(harness.spark, harness.open())
    counts = Counter(row["operation"] for row in audit)
    metrics = done.metrics
    numbers = {"insert": metrics.inserted, "update": metrics.updated, "delete": metrics.deleted}
    assert counts == {name: n for name, n in numbers.items() if n}
    assert {(row["table_name"], row["snapshot_id"], row["operation_id"]) for row in audit} == {
        ("db.target", done.new_snapshot_id, done.operation_id)
    }
    key = ("p", "id") if kind == "primary-key" else ()
    audit.sort(key=lambda row: str(row["operation"]))
    assert replayed(before, audit, key) == replayed(harness.read(), [])
    assert not list(harness.warehouse.glob("_operations/*.rows"))
    assert [each.table for each in done.side_outputs] == [str(AUDIT)]


def _run(behaviour: Behaviour, harness: Harness, *, dry_run: bool = False) -> JobResult:
    request = request_of(behaviour, harness)
    request = replace(request, guards=Guards(audit_table=str(AUDIT)), dry_run=dry_run)
    return Job(request, harness.spark, harness.open()).run()
