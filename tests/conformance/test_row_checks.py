"""Checks of rows: what a check finds wrong is not published, and leaves no file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from spark_jobs.contract.guards import Guards
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.request import JobRequest, SqlSource
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.row_checks import RowCheck
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.write.recorder import Recorder, Recording
from tests.conformance.behaviour import (
    Behaviour,
    delete,
    delete_from,
    insert_all,
    matched,
    not_matched,
    update,
)
from tests.conformance.changing import MERGE, STATEMENTS, changing_cases, files_of
from tests.conformance.check import request_of
from tests.conformance.conftest import MakeTable
from tests.conformance.harness import Harness
from tests.conformance.tables import ORDERS_WITHOUT_NULL
from tests.support.forced_plans import Forced, forced_plan

# Of a row that each of the statements changes, by operation.
_FINDS = {
    "insert": "SELECT new.id FROM changes WHERE operation = 'insert'",
    "update": "SELECT old.v, new.v FROM changes WHERE operation = 'update'",
    "delete": "SELECT old.* FROM changes WHERE operation = 'delete'",
}
_HOLDS = (
    RowCheck("nothing else", "SELECT * FROM changes WHERE operation IS NULL"),
    RowCheck("both rows", "SELECT 1 FROM changes WHERE (old IS NULL) <> (operation = 'insert')"),
    RowCheck("new", "SELECT 1 FROM changes WHERE (new IS NULL) <> (operation = 'delete')"),
    RowCheck(
        "stored", "SELECT * FROM new_rows EXCEPT SELECT new.* FROM changes WHERE new IS NOT NULL"
    ),
    RowCheck("will be there", "SELECT * FROM new_rows EXCEPT SELECT * FROM target"),
)


@pytest.mark.slow
@pytest.mark.parametrize(("behaviour", "kind", "plan"), list(changing_cases(36)))
def test_a_check_that_finds_a_row_and_those_that_find_none(
    behaviour: Behaviour, kind: str, plan: Forced, make_table: MakeTable
) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    before = files_of(harness.warehouse)
    finding = [RowCheck(name, sql) for name, sql in _FINDS.items()]
    with forced_plan(plan):
        told = _run(behaviour, harness, *finding, *_HOLDS, dry_run=True)
    assert told.error is None
    counts = {each.name: each.seen for each in told.metrics.guards if not each.held}
    metrics = told.metrics
    numbers = {"insert": metrics.inserted, "update": metrics.updated, "delete": metrics.deleted}
    texts = {name: f"{n} row{'s' if n > 1 else ''}" for name, n in numbers.items() if n}
    assert counts == texts
    assert files_of(harness.warehouse) == before

    name = next(iter(counts))
    with forced_plan(plan):
        failed = _run(behaviour, harness, *_HOLDS, RowCheck(name, _FINDS[name]))
    assert failed.error is not None
    assert (failed.error.code, failed.error.retryable) == ("GUARD_FAILED", False)
    assert f"check {name}: expected no rows, found {texts[name]}; the first: {{" in (
        failed.error.message
    )
    assert files_of(harness.warehouse) == before
    with forced_plan(plan):
        done = _run(behaviour, harness, *_HOLDS)
    assert (done.status, done.error) == ("committed", None)
    assert [(each.name, each.held) for each in done.metrics.guards] == [
        (each.name, True) for each in _HOLDS
    ]


@pytest.mark.slow
def test_a_check_that_fails_to_compute_is_a_failed_check(make_table: MakeTable) -> None:
    harness = make_table("append-cow", ORDERS_WITHOUT_NULL, partitioned=True)
    before = files_of(harness.warehouse)
    raising = RowCheck("share", "SELECT 1 FROM changes WHERE 1 / (old.n - old.n) > 1")

    failed = _run(STATEMENTS[2], harness, raising)
    told = _run(STATEMENTS[2], harness, raising, dry_run=True)

    assert failed.error is not None
    assert failed.error.code == "GUARD_FAILED"
    assert "check share: it could not be evaluated: " in failed.error.message
    assert "DIVIDE_BY_ZERO" in failed.error.message
    assert [each.held for each in told.metrics.guards] == [False]
    assert files_of(harness.warehouse) == before


WRONG = {
    "column": ("SELECT old.nothing FROM changes", "COLUMN_NOT_FOUND"),
    "table": ("SELECT * FROM others", "TABLE_NOT_FOUND"),
    "syntax": ("SELECT * FROM (", "SYNTAX_ERROR"),
    "command": ("SET spark.sql.ansi.enabled = false", "NOT_SUPPORTED"),
    "chance": ("SELECT * FROM new_rows WHERE rand() < 1", "EXPRESSION_NOT_ALLOWED"),
    "chance in a subquery": (
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM new_rows WHERE id = uniform(1, 9))",
        "EXPRESSION_NOT_ALLOWED",
    ),
    "time": ("SELECT * FROM new_rows WHERE now() IS NULL", "EXPRESSION_NOT_ALLOWED"),
    "name of a time": (
        "SELECT * FROM new_rows WHERE CAST(v AS DATE) < 'today'",
        "EXPRESSION_NOT_ALLOWED",
    ),
    "name of a time below": (
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM changes WHERE timestamp('now') IS NULL)",
        "EXPRESSION_NOT_ALLOWED",
    ),
    "sample": ("SELECT * FROM new_rows TABLESAMPLE (5 PERCENT)", "EXPRESSION_NOT_ALLOWED"),
    "files": ("SELECT * FROM parquet.`/`", "SOURCE_UNREADABLE"),
}


@pytest.mark.slow
def test_wrong_checks_are_found_before_data_is_read(make_table: MakeTable) -> None:
    harness = make_table("append-cow", ORDERS_WITHOUT_NULL, partitioned=True)
    unread = Behaviour(
        "",
        "(SELECT raise_error('read') AS id)",
        (matched(delete()),),
        on="t.id = CAST(s.id AS INT)",
    )
    right = RowCheck("day", "SELECT * FROM new_rows WHERE v = 'today' OR '2026-01-31' < DATE(v)")
    taken = Job(_request(unread, harness, right), harness.spark, harness.open()).check()
    assert taken.error is None
    for name, (sql, code) in WRONG.items():
        request = _request(unread, harness, RowCheck(name, sql))
        result = Job(request, harness.spark, harness.open()).check()
        assert result.error is not None, name
        if name != "files":
            assert result.error.code == code, (name, result.error)
        assert f"check {name}" in result.error.message


@pytest.mark.slow
def test_checks_read_the_rows_of_the_source_that_the_statement_read(make_table: MakeTable) -> None:
    harness = make_table("append-cow", ORDERS_WITHOUT_NULL, partitioned=True)
    source = "(SELECT *, rand() AS r FROM VALUES (101, 'x'), (900, 'y') AS s(id, v))"
    merge = Behaviour("", source, (matched(update(v="s.v || CAST(s.r AS STRING)")),))
    joined = "FROM changes c JOIN s ON c.new.id = s.id"
    same = RowCheck("same", f"SELECT * {joined} WHERE c.new.v <> s.v || CAST(s.r AS STRING)")
    any_row = RowCheck("any", f"SELECT s.id {joined}")

    told = _run(merge, harness, same, any_row, dry_run=True)

    assert told.error is None
    assert [each.seen for each in told.metrics.guards] == ["no rows", "1 row"]
    insert = Behaviour("", f"{source} AS s", (), statement=InsertIntoSpec("s"))
    refused = _run(insert, harness, RowCheck("source", "SELECT * FROM s"), dry_run=True)
    assert refused.error is not None
    assert "s" in refused.error.message


@pytest.mark.slow
def test_an_insert_into_a_keyed_table_has_no_checks(make_table: MakeTable) -> None:
    harness = make_table("primary-key", ORDERS_WITHOUT_NULL, partitioned=True)
    before = files_of(harness.warehouse)

    refused = _run(STATEMENTS[4], harness, *_HOLDS)

    assert refused.error is not None
    assert refused.error.code == "NOT_SUPPORTED"
    assert "INSERT INTO" in refused.error.message
    assert files_of(harness.warehouse) == before


@pytest.mark.slow
def test_only_what_checks_read_is_recorded_and_nothing_without_them(make_table: MakeTable) -> None:
    harness = make_table("append-cow", ORDERS_WITHOUT_NULL, partitioned=True)
    statement = replace(MERGE, clauses=(matched(update(v="s.v")), not_matched(insert_all())))
    made: list[Recording] = []

    def noted(*parts: Any, **more: Any) -> Recording:
        made.append(Recording(*parts, **more))
        return made[-1]

    with mock.patch("spark_jobs.engine.changes.row_checking.Recording", noted):
        told = _run(
            statement, harness, RowCheck("n", "SELECT new.n FROM changes WHERE old.v = '1'")
        )
    assert told.error is None
    (recording,) = made
    assert set(recording.old) == {"v", "n"}
    assert set(recording.new) == {"n"}
    assert not recording.with_row_ids

    with mock.patch.object(Recorder, "__init__", side_effect=AssertionError):
        _run(delete_from("", "id = 101"), harness)


def _request(behaviour: Behaviour, harness: Harness, *checks: RowCheck, **more: Any) -> JobRequest:
    request = request_of(behaviour, harness)
    sources = tuple(each for each in request.sources if each.name != "target")
    assert all(isinstance(each, SqlSource) for each in sources)
    return replace(request, sources=sources, guards=Guards(checks=checks), **more)


def _run(behaviour: Behaviour, harness: Harness, *checks: RowCheck, **more: Any) -> JobResult:
    request = _request(behaviour, harness, *checks, **more)
    return Job(request, harness.spark, harness.open()).run()
