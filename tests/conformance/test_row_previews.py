"""Some of the rows that a dry run would change are kept for its page, and only if it asks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from spark_jobs.contract.guards import Guards
from spark_jobs.contract.operation_files import preview_path
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.row_checks import RowCheck
from spark_jobs.contract.row_preview import RowPreview
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.write.recorder import Recorder
from spark_jobs.errors import RequestError
from tests.conformance.behaviour import Behaviour, update_set
from tests.conformance.changing import MERGE, STATEMENTS, changing_cases, files_of
from tests.conformance.check import request_of
from tests.conformance.conftest import MakeTable
from tests.conformance.harness import Harness
from tests.conformance.tables import NAMES, ORDERS_WITHOUT_NULL, VALUES, SeedTable
from tests.support.forced_plans import Forced, forced_plan
from tests.support.recorded_changes import READING_ALL, seen_by_checks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behaviour", "kind", "plan"), list(changing_cases(36, ("merge-iceberg-mor",)))
)
def test_the_first_rows_of_each_operation(
    behaviour: Behaviour, kind: str, plan: Forced, make_table: MakeTable
) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    before = files_of(harness.warehouse)
    with forced_plan(plan):
        told = _run(behaviour, harness, 3, dry_run=True)
    assert (told.status, told.error, told.row_preview) == ("dry_run", None, True)
    found = _preview(harness, told)
    with forced_plan(plan), seen_by_checks() as seen:
        both = _run(behaviour, harness, 100, dry_run=True, guards=READING_ALL)
    assert both.error is None
    metrics, names = told.metrics, found.columns
    counts = {"insert": metrics.inserted, "update": metrics.updated, "delete": metrics.deleted}
    of_changes = sorted(map(str, _changes(seen.views["changes"], names)))
    assert sorted(map(str, _rows(_preview(harness, both)))) == of_changes
    for operation, count in counts.items():
        rows = [each for each in found.rows if each.operation == operation]
        assert len(rows) == min(count, 3)
        assert all((row.old is None) == (operation == "insert") for row in rows)
        assert all((row.new is None) == (operation == "delete") for row in rows)
    assert {str(row) for row in _rows(found)} <= set(of_changes)
    for row in found.rows:
        if row.old is not None and row.new is not None:
            pairs = enumerate(zip(row.old, row.new, strict=True))
            assert row.differs == tuple(i for i, (old, new) in pairs if old != new)
    for each in (told, both):
        _path(harness, each).unlink()
    assert files_of(harness.warehouse) == before


@pytest.mark.slow
def test_long_values_are_cut_and_still_differ(make_table: MakeTable) -> None:
    harness = make_table("append-cow", ORDERS_WITHOUT_NULL, partitioned=True)
    assert _run(update_set("", {"v": "repeat('x', 300)"}, "id = 101"), harness, None).error is None
    longer = update_set("", {"v": "repeat('x', 301)", "n": "NULL"}, "id = 101")

    told = _run(longer, harness, 5, dry_run=True)

    found = _preview(harness, told)
    (row,) = found.rows
    old, new = (dict(zip(found.columns, each or (), strict=True)) for each in (row.old, row.new))
    assert old["v"] == new["v"] == "x" * 200 + "…"
    assert (old["n"], new["n"]) == ("1", None)
    assert [found.columns[each] for each in row.differs] == ["v", "n"]


@pytest.mark.slow
@pytest.mark.by_turns(2)
@pytest.mark.parametrize(("seed", "kind"), [(NAMES, "append-dv"), (VALUES, "iceberg-cow")])
def test_odd_names_and_values_of_all_types(
    seed: SeedTable, kind: str, make_table: MakeTable
) -> None:
    harness = make_table(kind, seed, partitioned=False)
    told = _run(update_set("", {"p": "'q'"}, "id IS NOT NULL"), harness, 100, dry_run=True)
    assert told.error is None
    found = _preview(harness, told)
    assert {*found.columns, *found.left_out} == {column.name for column in seed.columns}
    place = found.columns.index("p")
    assert len(found.rows) == told.metrics.updated > 0
    assert {row.new[place] for row in found.rows if row.new} == {"q"}
    assert {row.differs for row in found.rows} == {(place,)}


@pytest.mark.slow
@pytest.mark.by_turns(4)
def test_nothing_is_kept_unless_a_dry_run_asks(make_table: MakeTable) -> None:
    harness = make_table("append-cow", ORDERS_WITHOUT_NULL, partitioned=True)
    with mock.patch.object(Recorder, "__init__", side_effect=AssertionError):
        dry = _run(MERGE, harness, None, dry_run=True)
        plan = _run(MERGE, harness, 3, dry_run=True, plan_only=True)
        real = _run(MERGE, harness, 3, operation_id="operation-real")
    assert [each.error for each in (dry, plan, real)] == [None] * 3
    assert not any(each.row_preview for each in (dry, plan, real))
    assert not list(harness.warehouse.rglob("*.preview"))


@pytest.mark.slow
@pytest.mark.by_turns(4)
def test_an_approval_does_not_ask_what_was_shown(make_table: MakeTable) -> None:
    harness = make_table("append-cow", ORDERS_WITHOUT_NULL, partitioned=True)
    told = _run(MERGE, harness, 3, dry_run=True)
    done = _run(MERGE, harness, None, operation_id="operation-real", approved=told.ticket)
    assert (done.status, done.error) == ("committed", None)


@pytest.mark.slow
@pytest.mark.by_turns(4)
def test_an_insert_into_a_keyed_table_has_no_preview(make_table: MakeTable) -> None:
    harness = make_table("primary-key", ORDERS_WITHOUT_NULL, partitioned=True)
    refused = _run(STATEMENTS[4], harness, 3, dry_run=True)
    assert refused.error is not None
    assert refused.error.code == "NOT_SUPPORTED"
    assert refused.error.message.startswith("preview_rows: an INSERT INTO")


@pytest.mark.parametrize("rows", [0, -1, 101])
def test_the_number_of_rows_is_limited(rows: int) -> None:
    with pytest.raises(RequestError, match="preview_rows"):
        JobOptions(preview_rows=rows)


def _changes(seen: list[dict[str, Any]], names: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    for each in seen:
        old, new = (_texts(each[side], names) for side in ("old", "new"))
        yield each["operation"], each["clause"], old, new


def _texts(row: dict[str, Any] | None, names: tuple[str, ...]) -> tuple[str | None, ...] | None:
    if row is None:
        return None
    return tuple(None if row[name] is None else str(row[name]) for name in names)


def _rows(found: RowPreview) -> Iterator[tuple[Any, ...]]:
    for each in found.rows:
        yield each.operation, each.clause, each.old, each.new


def _path(harness: Harness, result: JobResult) -> Any:
    return harness.warehouse / preview_path(result.operation_id)


def _preview(harness: Harness, result: JobResult) -> RowPreview:
    return RowPreview.from_json(_path(harness, result).read_text())


def _run(
    behaviour: Behaviour,
    harness: Harness,
    rows: int | None,
    guards: Guards | None = None,
    **more: Any,
) -> JobResult:
    request = request_of(behaviour, harness)
    sources = tuple(each for each in request.sources if each.name != "target")
    options = replace(request.options, preview_rows=rows)
    checks: tuple[RowCheck, ...] = guards.checks if guards else ()
    more["operation_id"] = more.get("operation_id", f"operation-{rows}-{len(checks)}")
    request = replace(request, sources=sources, options=options, guards=guards, **more)
    return Job(request, harness.spark, harness.open()).run()
