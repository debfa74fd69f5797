"""Change events of any source: what a MERGE makes of them, and what it refuses by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from spark_jobs.contract.cdc import UNAVAILABLE, SequenceColumn
from spark_jobs.contract.request import SqlSource
from tests.conformance.harness import Harness
from tests.engine.cdc_cases import OPERATIONS, SOURCE, TABLE, events_of, rows_of, run

pytestmark = pytest.mark.slow


@pytest.fixture
def harness(make_table: Callable[..., Harness]) -> Harness:
    return make_table("append-cow", TABLE, partitioned=False)


def test_the_last_event_of_each_key_counts(harness: Harness) -> None:
    events = events_of(
        *("('u', 1L, 'old', 11L)", "('u', 1L, 'new', 12L)", "('u', 1L, 'new', 12L)"),
        *("('d', 2L, NULL, 19L)", "('d', 3L, NULL, 1L)", "('d', 4L, NULL, 2L)"),
        *("('c', 4L, 'four', 1L)", "('c', 5L, 'five', 1L)", "('m', NULL, NULL, NULL)"),
    )
    result = run(harness, SOURCE, events)

    assert result.error is None, result.error
    assert rows_of(harness) == [(1, "new", 12), (2, "two", 20), (5, "five", 1)]
    metrics = result.metrics
    assert (metrics.source_rows, metrics.inserted, metrics.updated, metrics.deleted) == (5, 1, 1, 1)
    again = run(harness, SOURCE, events, operation_id="again")
    assert (again.status, again.metrics.source_rows) == ("unchanged", 5)


@pytest.mark.parametrize(
    ("rows", "change", "code", "message"),
    [
        (["('x', 9L, 'v', 1L)"], {}, "CHANGE_EVENT_INVALID", "source s: op: the operation 'x' is"),
        (["(NULL, 9L, 'v', 1L)"], {}, "CHANGE_EVENT_INVALID", "the operation NULL is none of: c"),
        (["('t', 9L, 'v', 1L)"], {}, "CHANGE_EVENT_INVALID", "the table was emptied (truncate)"),
        (["('u', NULL, 'v', 1L)"], {}, "NOT_NULL_VIOLATION", "source s: id of the key is NULL"),
        (["('u', 1L, 'v', NULL)"], {}, "NOT_NULL_VIOLATION", "source s: lsn of the sequence is"),
        (
            ["('u', 1L, 'a', 30L)", "('u', 1L, 'b', 30L)"],
            {},
            "SOURCE_KEY_NOT_UNIQUE",
            'different events have the key {"id":1} and equal values of lsn',
        ),
        (
            [f"('u', 1L, '{UNAVAILABLE}', 30L)"],
            {},
            "CHANGE_EVENT_INVALID",
            f"source s: v holds '{UNAVAILABLE}'",
        ),
        (
            [f"('u', 9L, '{UNAVAILABLE}', 30L)"],
            {"unchanged": ("v",)},
            "CHANGE_EVENT_INVALID",
            "source s: v: an update leaves the value",
        ),
        (
            ["('d', 1L, 'v', 30L)", f"('u', 1L, '{UNAVAILABLE}', 31L)"],
            {"unchanged": ("v",)},
            "CHANGE_EVENT_INVALID",
            "source s: v: an update leaves the value",
        ),
        ([], {"operation": "kind"}, "COLUMN_NOT_FOUND", "source s: operation: kind is not a"),
        ([], {"keys": ("no",)}, "COLUMN_NOT_FOUND", "source s: keys: no is not a column"),
        ([], {"without": ("no",)}, "COLUMN_NOT_FOUND", "source s: without: no is not a column"),
        (
            [],
            {"sequence": (SequenceColumn("lsn", "scn"),)},
            "COLUMN_NOT_FOUND",
            "source s: sequence: scn is not a column",
        ),
        (
            [],
            {"sequence": (SequenceColumn("scn", "lsn"),)},
            "COLUMN_NOT_FOUND",
            "source s: sequence: db.target has no column scn",
        ),
        ([], {"unchanged": ("n",)}, "COLUMN_NOT_FOUND", "unchanged: n is not a column"),
    ],
)
def test_what_cannot_be_applied_is_named(
    harness: Harness, rows: list[str], change: dict[str, Any], code: str, message: str
) -> None:
    before = harness.state()

    result = run(harness, replace(SOURCE, **change), events_of("('u', 1L, 'v', 11L)", *rows))

    assert result.error is not None
    assert result.error.code == code, result.error
    assert message in result.error.message
    after = harness.state()
    assert (after.rows, after.files) == (before.rows, before.files)


def test_an_order_of_texts_is_not_that_of_numbers(harness: Harness) -> None:
    events = events_of("('u', 1L, 'v', '9')", columns="op, id, v, lsn")
    result = run(harness, SOURCE, events)
    assert result.error is not None
    assert result.error.code == "TYPE_MISMATCH"
    assert "source s: sequence: lsn is of the type string in events" in result.error.message


def test_columns_of_one_name(harness: Harness) -> None:
    events = events_of("('u', 1L, 'v', 11L, 'w')", columns="op, id, v, lsn, V")
    result = run(harness, SOURCE, events)
    assert result.error is not None
    assert result.error.code == "AMBIGUOUS_REFERENCE"
    assert "source s: its events have several columns v" in result.error.message


def test_a_target_that_keeps_no_order_takes_what_comes(harness: Harness) -> None:
    source = replace(SOURCE, late="apply")
    result = run(harness, source, events_of("('u', 1L, 'late', 1L)", "('d', 2L, NULL, 1L)"))
    assert result.error is None, result.error
    assert rows_of(harness) == [(1, "late", 1), (3, "before any event", None)]


def test_the_row_before_an_update_leaves_its_key(harness: Harness) -> None:
    values = replace(OPERATIONS, before=("b",))
    events = events_of("('b', 1L, 'one', 30L)", "('u', 8L, 'moved', 30L)", "('b', 2L, 'x', 31L)")
    more = events_of("('u', 2L, 'stays', 31L)")
    query = f"{events.query} UNION ALL {more.query}"
    result = run(harness, replace(SOURCE, values=values), SqlSource("events", query))
    assert result.error is None, result.error
    assert rows_of(harness) == [(2, "stays", 31), (3, "before any event", None), (8, "moved", 30)]


def test_new_columns_come_by_evolution_without_those_of_events(harness: Harness) -> None:
    columns, source = "op, id, v, lsn, city, partition", replace(SOURCE, without=("partition",))
    events = events_of("('u', 1L, 'a', 11L, 'Ulm', 0)", columns=columns)

    same = run(harness, source, events)
    grown = run(harness, source, events, schema_evolution=True, operation_id="grown")

    assert same.error is None, same.error
    assert grown.error is None, grown.error
    assert list(grown.schema_changes) == ["added city STRING"]
    again = events_of("('u', 1L, 'b', 12L, 'Bonn', 0)", columns=columns)
    assert run(harness, source, again, operation_id="again").error is None
    assert {row["id"]: row.get("city") for row in harness.read()} == {1: "Bonn", 2: None, 3: None}


@pytest.mark.parametrize(
    "shape", ["{}", "named_struct('m', {}, 'n', 1)", "array({}, NULL)", "map('k', struct({}))"]
)
def test_an_event_with_a_map_may_come_twice(harness: Harness, shape: str) -> None:
    columns = "op, id, v, lsn, m"
    pairs = ("map('a', 1, 'b', 2)", "map('b', 2, 'a', 1)", "map('a', 1, 'b', 3)")
    maps = map(shape.format, pairs)
    first, same, other = (f"('u', 1L, 'a', 11L, {each})" for each in maps)

    assert run(harness, SOURCE, events_of(first, same, columns=columns)).error is None
    result = run(harness, SOURCE, events_of(first, other, columns=columns), operation_id="other")
    assert result.error is not None
    assert result.error.code == "SOURCE_KEY_NOT_UNIQUE"
