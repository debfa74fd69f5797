"""Rows of partitions that nobody expects are set aside in a table of their own, once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spark_jobs.contract.guards import Guards
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.request import JobRequest, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.behaviour import (
    Behaviour,
    by_source,
    delete,
    insert,
    insert_all,
    matched,
    not_matched,
    update_all,
)
from tests.conformance.changing import KINDS, files_of
from tests.conformance.check import readable, request_of
from tests.conformance.conftest import MakeTable
from tests.conformance.harness import Harness
from tests.conformance.tables import ORDERS_WITHOUT_NULL
from tests.support.audits import AUDIT, make_audit_table, table_rows
from tests.support.killed_jobs import Steps, dying

_ALL = "s(id, k, v, n, req, p)"
_ON_TIME = "(100, 1, 'x', 9, 'r', 'a'), (501, 1, 'x', 1, 'r', 'a')"
_LATE = "(500, 1, 'x', 1, 'r', 'late'), (120, 1, 'x', 1, 'r', 'b')"
_ROWS = f"VALUES {_ON_TIME}, {_LATE} AS {_ALL}"
_MERGE = Behaviour("merge", _ROWS, (matched(update_all()), not_matched(insert_all())))
_INSERT = Behaviour("insert", _ROWS.replace("100", "700"), (), statement=InsertIntoSpec("s"))
_TABLE_OF_LATE = TableName("db", "late")
_GUARDS = Guards(
    expected_partitions=({"p": "'a'"},),
    outside_partitions="quarantine",
    quarantine_table=str(_TABLE_OF_LATE),
)
_COLUMNS = tuple(
    ColumnSpec(name, "STRING" if name in ("v", "req", "p") else "INT")
    for name in ("id", "k", "v", "n", "req", "p")
)
# Before the first step, and behind the last one.
_STEPS = 22


def _harness(make_table: MakeTable, kind: str) -> Harness:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    harness.connector.metadata.create_table(_TABLE_OF_LATE, CreateTableSpec(_COLUMNS))
    return harness


def _request(behaviour: Behaviour, harness: Harness, **more: Any) -> JobRequest:
    return replace(request_of(behaviour, harness), guards=replace(_GUARDS, **more))


def _run(behaviour: Behaviour, harness: Harness, **more: Any) -> JobResult:
    return Job(_request(behaviour, harness, **more), harness.spark, harness.open()).run()


def _late(harness: Harness) -> list[int]:
    return sorted(row["id"] for row in table_rows(harness.spark, harness.open(), _TABLE_OF_LATE))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        pytest.param(
            behaviour,
            kind,
            marks=() if (behaviour, kind) == (_MERGE, "append-cow") else pytest.mark.by_turns(12),
        )
        for behaviour in (_MERGE, _INSERT)
        for kind in KINDS
    ],
    ids=str,
)
def test_late_rows_are_set_aside(behaviour: Behaviour, kind: str, make_table: MakeTable) -> None:
    harness = _harness(make_table, kind)
    before = {row["id"]: row for row in harness.read()}

    told = Job(
        replace(_request(behaviour, harness), dry_run=True), harness.spark, harness.open()
    ).run()
    assert (told.status, told.error, _late(harness)) == ("dry_run", None, [])
    done = _run(behaviour, harness)

    assert (done.status, done.error) == ("committed", None)
    for result in (told, done):
        assert [(each.name, each.seen, each.held) for each in result.metrics.guards] == [
            ("outside_partitions", "2 rows for db.late", True),
            ("expected_partitions", "none outside", True),
        ]
    after = {row["id"]: row for row in harness.read()}
    first = 700 if behaviour is _INSERT else 100
    assert {i: row for i, row in after.items() if i not in (first, 501)} == {
        i: row for i, row in before.items() if i != first
    }
    assert (after[first]["v"], after[501]["v"]) == ("x", "x")
    assert _late(harness) == [120, 500]
    assert done.partitions == ("p=a",)
    assert not list(harness.warehouse.glob("_operations/*.rows"))


@pytest.mark.slow
@pytest.mark.by_turns(6)
@pytest.mark.parametrize("kind", KINDS)
def test_others_that_change_elsewhere_are_not_set_aside(kind: str, make_table: MakeTable) -> None:
    harness = _harness(make_table, kind)
    # Its row of the target is in the partition b.
    source = _ROWS.replace("(120, 1, 'x', 1, 'r', 'b')", "(120, 1, 'x', 7, 'r', 'a')")
    clauses = (matched(delete(), "s.n = 7"), not_matched(insert_all()))
    before = files_of(harness.warehouse)

    failed = _run(Behaviour("", source, clauses), harness)

    assert failed.error is not None
    assert failed.error.code == "PARTITION_NOT_EXPECTED"
    assert files_of(harness.warehouse) == before


@pytest.mark.slow
def test_all_rows_are_late(make_table: MakeTable) -> None:
    """The table gets no snapshot; a retry whose first try died does not set them aside again."""
    harness = _harness(make_table, "append-cow")
    behaviour = replace(_MERGE, source=f"VALUES {_LATE} AS {_ALL}")
    before = harness.state()
    request = _request(behaviour, harness)
    steps = Steps(999)
    with dying(harness.open(), steps) as connector:
        done = Job(request, harness.spark, connector).run()
    assert (done.status, done.new_snapshot_id, done.error) == ("unchanged", None, None)
    assert _late(harness) == [120, 500]
    (harness.warehouse / f"_operations/{request.operation_id}.json").unlink()

    retry = replace(request, origin=replace(request.origin, try_number=2))
    again = Job(retry, harness.spark, harness.open()).run()

    assert (again.status, again.new_snapshot_id, again.error) == ("unchanged", None, None)
    assert _late(harness) == [120, 500]
    assert readable(harness.state().rows) == readable(before.rows)


@pytest.mark.slow
@pytest.mark.by_turns(22)
@pytest.mark.parametrize("last", range(1, 31))
@pytest.mark.parametrize("all_late", [False, True])
def test_a_kill_at_each_step(last: int, all_late: bool, make_table: MakeTable) -> None:
    harness = _harness(make_table, "append-cow")
    make_audit_table(harness.connector)
    behaviour = replace(_MERGE, source=f"VALUES {_LATE} AS {_ALL}") if all_late else _MERGE
    request = _request(behaviour, harness, audit_table=str(AUDIT))
    steps = Steps(last, behind=True)
    with dying(harness.open(), steps) as connector:
        Job(request, harness.spark, connector).run()

    retry = replace(request, origin=replace(request.origin, try_number=2, retries=0))
    if steps.is_dead:
        done = Job(retry, harness.spark, harness.open()).run()
        assert done.error is None
        assert done.status == ("unchanged" if all_late else "committed")
    assert _late(harness) == [120, 500]
    audit = table_rows(harness.spark, harness.open(), AUDIT)
    assert sorted(row["operation"] for row in audit) == ([] if all_late else ["insert", "update"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clauses", "problem"),
    [
        ((matched(update_all()),), "without WHEN NOT MATCHED THEN INSERT"),
        (
            (not_matched(insert_all()), by_source(delete(), "t.p = 'a'")),
            "WHEN NOT MATCHED BY SOURCE",
        ),
        (
            (
                not_matched(insert(id="s.id", req="s.req", p="'a'"), "s.n = 1"),
                not_matched(insert_all()),
            ),
            "have different values for p",
        ),
    ],
)
def test_a_merge_that_does_not_tell_the_partition(
    clauses: Any, problem: str, make_table: MakeTable
) -> None:
    harness = _harness(make_table, "append-cow")
    refused = _run(replace(_MERGE, clauses=clauses), harness)
    assert refused.error is not None
    assert refused.error.code == "NOT_SUPPORTED"
    assert problem in refused.error.message


@pytest.mark.slow
def test_the_table_of_late_rows_has_to_fit(make_table: MakeTable) -> None:
    harness = make_table("append-cow", ORDERS_WITHOUT_NULL, partitioned=True)

    def refused() -> tuple[str, str]:
        error = _run(_MERGE, harness).error
        assert error is not None
        return error.code, f"{error.message} {error.remedy}"

    code, text = refused()
    assert code == "TABLE_NOT_FOUND"
    assert "CREATE TABLE db.late (`id` int, `k` int, `v` string" in text
    for columns, expected in (
        (_COLUMNS[:-1], "COLUMN_NOT_FOUND"),
        ((ColumnSpec("id", "TINYINT"), *_COLUMNS[1:]), "TYPE_MISMATCH"),
        ((*_COLUMNS, ColumnSpec("more", "INT", nullable=False)), "EXPRESSION_INVALID"),
    ):
        name = TableName("db", expected.lower())
        harness.connector.metadata.create_table(name, CreateTableSpec(columns))
        error = _run(_MERGE, harness, quarantine_table=str(name)).error
        assert error is not None
        assert error.code == expected
