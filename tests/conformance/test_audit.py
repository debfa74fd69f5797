"""Audit tables: exactly the changes of each snapshot, of every statement and kind of table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from spark_jobs.contract.guards import Guards
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.behaviour import Behaviour
from tests.conformance.check import request_of
from tests.conformance.conftest import MakeTable
from tests.conformance.connectors import PLANS
from tests.conformance.harness import Harness
from tests.conformance.tables import ORDERS, SeedTable
from tests.conformance.test_guards import STATEMENTS
from tests.support.audits import AUDIT, make_audit_table, replayed, table_rows
from tests.support.forced_plans import forced_plan

_TABLE = SeedTable("orders_without_null", ORDERS.columns, ORDERS.files[:-1])
_KINDS = ("append-cow", "append-dv", "row-tracking", "primary-key", "iceberg-cow", "iceberg-mor")
_PLANNED = ("append-cow-join", "append-dv-located", "append-cow-prepared")


def _cases() -> Iterator[object]:
    for behaviour in STATEMENTS:
        for place, kind in enumerate(_KINDS):
            if kind == "primary-key" and isinstance(behaviour.statement, InsertIntoSpec):
                continue
            marks = pytest.mark.by_turns(27)
            yield pytest.param(behaviour, kind, marks=marks, id=f"{behaviour}-{kind}-{place}")
    for plan in _PLANNED:
        yield pytest.param(STATEMENTS[0], plan, marks=pytest.mark.by_turns(3), id=f"merge-{plan}")


@pytest.mark.slow
@pytest.mark.parametrize(("behaviour", "kind"), list(_cases()))
def test_the_audit_has_each_changed_row_once(
    behaviour: Behaviour, kind: str, make_table: MakeTable
) -> None:
    harness = make_table(kind, _TABLE, partitioned=True)
    make_audit_table(harness.connector)
    before = harness.read()

    told = _run(behaviour, harness, dry_run=True)
    assert (told.status, told.error) == ("dry_run", None)
    assert table_rows(harness.spark, harness.connector) == []
    with forced_plan(PLANS.get(kind, "auto")):
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
