"""What checks see has every value of every type as it is stored, under every plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from spark_jobs.contract.guards import Guards
from spark_jobs.contract.inserts import InsertOverwriteSpec
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.request import SqlSource, TableSource
from spark_jobs.contract.result import GuardReport, JobResult
from spark_jobs.contract.row_checks import RowCheck
from spark_jobs.contract.statements import DeleteSpec, MergeSpec, Statement
from spark_jobs.engine.changes.row_checking import RowChecking
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.behaviour import delete, insert_all, matched, not_matched, update
from tests.conformance.changing import STATEMENTS
from tests.conformance.check import request_of
from tests.conformance.conftest import MakeTable
from tests.conformance.connectors import PLANS
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import DEEP, EVENTS, NAMES, NESTED, VALUES, SeedTable
from tests.support.forced_plans import forced_plan

_SEEDS = {seed.name: seed for seed in (NAMES, NESTED, DEEP, VALUES, EVENTS)}
_KINDS = (
    "append-cow-prepared",
    "append-dv-located",
    "folder-moving",
    "iceberg-mor",
    "row-tracking",
)
_JSON = "to_json(struct(*), map('ignoreNullFields', 'false'))"
_OF = "to_json(c.{}, map('ignoreNullFields', 'false'))"
_OLD, _NEW = _OF.format("old"), _OF.format("new")
_CHECKS = (
    RowCheck(
        "old rows",
        f"SELECT {_OLD} FROM changes c WHERE old IS NOT NULL EXCEPT ALL SELECT {_JSON} FROM before",
    ),
    RowCheck(
        "the table",
        f"SELECT {_JSON} FROM target EXCEPT ALL (SELECT {_JSON} FROM before UNION ALL "
        f"SELECT {_NEW} FROM changes c WHERE new IS NOT NULL)",
    ),
    RowCheck(
        "no row is lost",
        f"SELECT {_JSON} FROM before EXCEPT ALL (SELECT {_JSON} FROM target UNION ALL "
        f"SELECT {_OLD} FROM changes c WHERE old IS NOT NULL)",
    ),
    RowCheck("new rows", f"SELECT {_JSON} FROM new_rows EXCEPT ALL SELECT {_JSON} FROM target"),
)
# Every third row goes, every other third gets an id, and all come once more.
_MERGE = MergeSpec(
    "s",
    "t.id = s.id",
    (
        matched(delete(), "t.id % 3 = 0"),
        matched(update(p="s.p"), "t.id % 3 = 1"),
        matched(update(id="s.id + 5000"), "t.p = 'y'"),
        not_matched(insert_all()),
    ),
    "t",
    "s",
)


@pytest.mark.slow
@pytest.mark.by_turns(25)
@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("seed", _SEEDS)
def test_values_are_those_that_are_stored(seed: str, kind: str, make_table: MakeTable) -> None:
    _compare(make_table(kind, _SEEDS[seed], partitioned=True), _SEEDS[seed], kind, _MERGE)


@pytest.mark.slow
@pytest.mark.by_turns(6)
@pytest.mark.parametrize("kind", ["iceberg-cow-older", "iceberg-mor-older", "append-dv"])
@pytest.mark.parametrize("mode", ["dynamic", "table"])
def test_values_of_overwrites(mode: Any, kind: str, make_table: MakeTable) -> None:
    harness = make_table(kind, NESTED, partitioned=True)
    _compare(harness, NESTED, kind, InsertOverwriteSpec("s", mode))


def _compare(harness: Harness, seed: SeedTable, kind: str, statement: Statement) -> None:
    names = [f"`{column.name}`" for column in seed.columns]
    added = ["id + 1000 AS id" if name == "`id`" else name for name in names]
    union = f"SELECT {', '.join(names)} FROM before UNION ALL SELECT {', '.join(added)} FROM before"
    seen: dict[str, list[str]] = {}
    first = _run(harness, statement, union, seen, kind)
    assert first.error is None, first.error
    assert [(each.name, each.seen) for each in first.metrics.guards] == [
        (each.name, "no rows") for each in _CHECKS
    ]
    will_be = seen["target"]
    second = _run(harness, DeleteSpec("t", "id = -99"), union, seen, kind)
    assert second.status == "unchanged"
    assert sorted(seen["target"]) == sorted(will_be)


def _run(
    harness: Harness, statement: Statement, query: str, seen: dict[str, list[str]], kind: str
) -> JobResult:
    request = replace(
        request_of(STATEMENTS[0], harness),
        operation_id=f"operation-{statement.kind}",
        statement=statement,
        sources=(TableSource("before", TARGET), SqlSource("s", query)),
        options=JobOptions(session_time_zone="America/New_York"),
        guards=Guards(checks=_CHECKS),
    )
    evaluated = RowChecking._evaluated

    def noted(checking: RowChecking, check: RowCheck) -> GuardReport:
        rows = checking.spark.sql(f"SELECT {_JSON} AS row FROM target").collect()
        seen["target"] = [row["row"] for row in rows]
        return evaluated(checking, check)

    with (
        mock.patch.object(RowChecking, "_evaluated", noted),
        forced_plan(PLANS.get(kind, "auto")),
    ):
        return Job(request, harness.spark, harness.open()).run()
