"""Only the partitions that somebody expects change, and no column comes unannounced."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from spark_jobs.contract.guards import Guards, OutsidePartitions
from spark_jobs.contract.inserts import InsertIntoSpec, InsertOverwriteSpec
from spark_jobs.contract.request import SqlSource
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.behaviour import (
    Behaviour,
    by_source,
    delete,
    delete_from,
    insert_all,
    matched,
    not_matched,
    update,
    update_set,
)
from tests.conformance.changing import KINDS, PLANNED, files_of
from tests.conformance.check import request_of
from tests.conformance.conftest import MakeTable
from tests.conformance.harness import Harness
from tests.conformance.tables import ORDERS_WITHOUT_NULL
from tests.support.forced_plans import Forced, forced_plan

_ALL = "s(id, k, v, n, req, p)"
_ROWS = f"VALUES (100, 1, 'x', 9, 'r', 'a'), (500, 1, 'x', 1, 'r', 'late') AS {_ALL}"
_NEW = _ROWS.replace("100", "700")
# Each changes rows in the partition a, and in one that is not expected.
STATEMENTS = [
    Behaviour("merge", _ROWS, (matched(update(v="s.v")), not_matched(insert_all()))),
    update_set("update", {"v": "'y'"}, "id IN (100, 120)"),
    delete_from("delete", "id IN (100, 120)"),
    Behaviour("insert", _NEW, (), statement=InsertIntoSpec("s")),
    Behaviour(
        "replace where",
        _NEW,
        (by_source(delete(), "t.id = 100"), not_matched(insert_all())),
        on="FALSE",
    ),
    Behaviour(
        "delete and insert",
        "VALUES (100, NULL, NULL, NULL, NULL, NULL, NULL), (NULL, 500, 1, 'x', 1, 'r', 'late') "
        "AS s(replaced, id, k, v, n, req, p)",
        (matched(delete()), not_matched(insert_all(), "s.replaced IS NULL")),
        on="t.id = s.replaced",
    ),
]
_EXPECTED = ({"p": "'a'"},)


_ALWAYS = ("merge-iceberg-cow", "update-append-dv")


def _cases(behaviours: list[Behaviour], parts: int) -> Iterator[object]:
    for behaviour, kind in itertools.product(behaviours, KINDS):
        name = f"{behaviour}-{kind}"
        marks = () if name in _ALWAYS else pytest.mark.by_turns(parts)
        yield pytest.param(behaviour, kind, "auto", marks=marks, id=name)
    for kind, plan in PLANNED:
        marks, name = pytest.mark.by_turns(2 * parts), f"merge-{kind}-{plan}"
        yield pytest.param(STATEMENTS[0], kind, plan, marks=marks, id=name)


@pytest.mark.slow
@pytest.mark.parametrize(("behaviour", "kind", "plan"), list(_cases(STATEMENTS, 24)))
def test_a_partition_that_is_not_expected(
    behaviour: Behaviour, kind: str, plan: Forced, make_table: MakeTable
) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    before = files_of(harness.warehouse)

    with forced_plan(plan):
        failed = _run(behaviour, harness, None)

    assert failed.error is not None
    assert (failed.error.code, failed.error.retryable) == ("PARTITION_NOT_EXPECTED", False)
    assert files_of(harness.warehouse) == before
    other = "b" if behaviour.name in ("update", "delete") else "late"
    kept = _run(behaviour, harness, "keep", dry_run=True)
    assert [each.seen for each in kept.metrics.guards] == [f"outside: p={other}"]
    assert files_of(harness.warehouse) == before
    with forced_plan(plan) as tally:
        done = _run(behaviour, harness, None, expected=(*_EXPECTED, {"p": f"'{other}'"}))
    assert (done.status, done.error) == ("committed", None)
    assert plan == "auto" or tally.ran == 1
    assert [(each.seen, each.held) for each in done.metrics.guards] == [("none outside", True)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["append-dv", "iceberg-cow", "primary-key"])
@pytest.mark.by_turns(3)
def test_changes_elsewhere_that_are_kept(kind: str, make_table: MakeTable) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)

    kept = _run(STATEMENTS[0], harness, "keep")

    assert kept.status == "committed"
    (report,) = kept.metrics.guards
    assert (report.name, report.seen) == ("expected_partitions", "outside: p=late")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["dynamic", "static", "table"])
@pytest.mark.by_turns(18)
def test_an_overwrite_of_a_partition_that_is_not_expected(
    mode: Any, kind: str, make_table: MakeTable
) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    before = files_of(harness.warehouse)
    only_late = f"(SELECT * FROM {_ROWS} WHERE p = 'late') AS s"
    partition = {"p": "'late'"} if mode == "static" else {}
    overwrite = InsertOverwriteSpec("s", mode, partition=partition, expected_partitions=_EXPECTED)
    source = only_late if mode == "static" else _ROWS

    failed = _run(Behaviour("", source, (), statement=overwrite), harness, None, expected=None)

    assert failed.error is not None
    assert failed.error.code == "PARTITION_NOT_EXPECTED"
    assert files_of(harness.warehouse) == before
    wider = tuple({"p": f"'{each}'"} for each in ("a", "b", "c", "late"))
    held = replace(overwrite, expected_partitions=wider[3:] if mode == "static" else wider)
    done = _run(Behaviour("", source, (), statement=held), harness, None, expected=None)
    assert (done.status, done.error) == ("committed", None)


@pytest.mark.slow
def test_a_table_without_partitions_has_none_to_expect(make_table: MakeTable) -> None:
    harness = make_table("append-cow", ORDERS_WITHOUT_NULL, partitioned=False)

    failed = _run(STATEMENTS[2], harness, None)

    assert failed.error is not None
    assert failed.error.code == "COLUMN_NOT_FOUND"
    assert "expected_partitions[0]" in failed.error.message


STORING = [
    STATEMENTS[0],
    Behaviour("by name", _NEW, (), statement=InsertIntoSpec("s", by_name=True)),
    Behaviour("dynamic", _NEW, (), statement=InsertOverwriteSpec("s", "dynamic", by_name=True)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("behaviour", "kind", "plan"), list(_cases(STORING, 24)))
def test_columns_that_the_table_does_not_have(
    behaviour: Behaviour, kind: str, plan: Forced, make_table: MakeTable
) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    before, rows = files_of(harness.warehouse), behaviour.source
    wider = f"SELECT *, 1 AS extra FROM {rows}"

    with forced_plan(plan):
        failed = _columns(behaviour, harness, wider)

        assert failed.error is not None
        assert failed.error.code == "SCHEMA_CHANGED"
        assert "extra" in failed.error.message
        typed = _columns(
            behaviour, harness, f"SELECT id, k, v, CAST(n AS BIGINT) AS n, req, p FROM {rows}"
        )
        assert typed.error is not None
        assert (typed.error.code, "n" in typed.error.message) == ("SCHEMA_CHANGED", True)
        assert files_of(harness.warehouse) == before
        same = _columns(behaviour, harness, f"SELECT * FROM {rows}")
    assert same.status == "committed"


def _columns(behaviour: Behaviour, harness: Harness, query: str) -> JobResult:
    request = request_of(behaviour, harness)
    sources = (*request.sources[:-1], SqlSource("s", query))
    guarded = replace(request, sources=sources, guards=Guards(same_columns=True))
    return Job(guarded, harness.spark, harness.open()).run()


def _run(
    behaviour: Behaviour,
    harness: Harness,
    outside: OutsidePartitions | None,
    expected: tuple[Mapping[str, str], ...] | None = _EXPECTED,
    **more: Any,
) -> JobResult:
    guards = Guards(expected_partitions=expected, outside_partitions=outside)
    request = replace(request_of(behaviour, harness), guards=guards, **more)
    return Job(request, harness.spark, harness.open()).run()
