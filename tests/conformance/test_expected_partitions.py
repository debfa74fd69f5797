"""Only the partitions that somebody expects change, and no column comes unannounced."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from spark_jobs.contract.guards import Guards, OutsidePartitions
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.request import SqlSource
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.behaviour import (
    Behaviour,
    delete_from,
    insert_all,
    matched,
    not_matched,
    update_all,
    update_set,
)
from tests.conformance.changing import KINDS
from tests.conformance.check import readable, request_of
from tests.conformance.conftest import MakeTable
from tests.conformance.harness import Harness
from tests.conformance.tables import ORDERS_WITHOUT_NULL

_ALL = "s(id, k, v, n, req, p)"
_ROWS = f"VALUES (100, 1, 'x', 9, 'r', 'a'), (500, 1, 'x', 1, 'r', 'late') AS {_ALL}"
# Each changes rows in the partition a, and in one that is not expected.
STATEMENTS = [
    Behaviour("merge", _ROWS, (matched(update_all()), not_matched(insert_all()))),
    update_set("update", {"v": "'y'"}, "id IN (100, 120)"),
    delete_from("delete", "id IN (100, 120)"),
    Behaviour("insert", _ROWS.replace("100", "700"), (), statement=InsertIntoSpec("s")),
]
_EXPECTED = ({"p": "'a'"},)


_ALWAYS = ("merge-iceberg-cow", "update-append-dv", "delete-iceberg-mor", "insert-append-cow")


def _cases() -> Iterator[object]:
    for behaviour, kind in itertools.product(STATEMENTS, KINDS):
        name = f"{behaviour}-{kind}"
        yield pytest.param(
            behaviour,
            kind,
            marks=() if name in _ALWAYS else pytest.mark.by_turns(20),
            id=name,
        )


@pytest.mark.slow
@pytest.mark.parametrize(("behaviour", "kind"), list(_cases()))
def test_a_partition_that_is_not_expected(
    behaviour: Behaviour, kind: str, make_table: MakeTable
) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    before = harness.state()

    failed = _run(behaviour, harness, None)

    assert failed.error is not None
    assert (failed.error.code, failed.error.retryable) == ("PARTITION_NOT_EXPECTED", False)
    wider = (*_EXPECTED, {"p": "'late'"}, {"p": "'b'"})
    held = _run(behaviour, harness, None, expected=wider, dry_run=True)
    assert [each.held for each in held.metrics.guards] == [True]
    after = harness.state()
    assert (after.snapshot_id, after.on_disk) == (before.snapshot_id, before.on_disk)
    kept = _run(behaviour, harness, "keep")
    assert kept.status == "committed"
    (report,) = kept.metrics.guards
    other = "p=late" if behaviour.name in ("merge", "insert") else "p=b"
    assert (report.name, report.seen) == ("expected_partitions", f"outside: {other}")


@pytest.mark.slow
def test_a_table_without_partitions_has_none_to_expect(make_table: MakeTable) -> None:
    harness = make_table("append-cow", ORDERS_WITHOUT_NULL, partitioned=False)

    failed = _run(STATEMENTS[2], harness, None)

    assert failed.error is not None
    assert failed.error.code == "COLUMN_NOT_FOUND"
    assert "expected_partitions[0]" in failed.error.message


@pytest.mark.slow
@pytest.mark.parametrize(
    "behaviour",
    [STATEMENTS[0], Behaviour("by name", _ROWS, (), statement=InsertIntoSpec("s", by_name=True))],
    ids=str,
)
def test_columns_that_the_table_does_not_have(behaviour: Behaviour, make_table: MakeTable) -> None:
    harness = make_table("iceberg-cow", ORDERS_WITHOUT_NULL, partitioned=True)
    rows = readable(harness.state().rows)
    wider = f"SELECT *, 1 AS extra FROM {_ROWS}"

    failed = _columns(behaviour, harness, wider)

    assert failed.error is not None
    assert failed.error.code == "SCHEMA_CHANGED"
    assert "extra" in failed.error.message
    typed = _columns(
        behaviour, harness, f"SELECT id, k, v, CAST(n AS BIGINT) AS n, req, p FROM {_ROWS}"
    )
    assert typed.error is not None
    assert (typed.error.code, "n" in typed.error.message) == ("SCHEMA_CHANGED", True)
    assert readable(harness.state().rows) == rows
    assert _columns(behaviour, harness, f"SELECT * FROM {_ROWS}").status == "committed"


def _columns(behaviour: Behaviour, harness: Harness, query: str) -> JobResult:
    request = request_of(behaviour, harness)
    sources = (*request.sources[:-1], SqlSource("s", query))
    guarded = replace(request, sources=sources, guards=Guards(same_columns=True))
    return Job(guarded, harness.spark, harness.open()).run()


def _run(
    behaviour: Behaviour,
    harness: Harness,
    outside: OutsidePartitions | None,
    expected: tuple[Mapping[str, str], ...] = _EXPECTED,
    **more: Any,
) -> JobResult:
    guards = Guards(expected_partitions=expected, outside_partitions=outside)
    request = replace(request_of(behaviour, harness), guards=guards, **more)
    return Job(request, harness.spark, harness.open()).run()
