"""Versions (SCD2) of a dimension from change events (``cdc_source``)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.cdc import UNAVAILABLE, VALUES, CdcSource, OperationValues, SequenceColumn
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.request import FileSource, SqlSource
from spark_jobs.contract.result import JobResult
from spark_jobs.errors import RequestError
from tests.conformance.harness import Harness
from tests.engine.dimensions import COLUMNS, at, dimension, history, run, spec
from tests.engine.event_dimensions import KINDS, run_chain
from tests.support.turns import EVERYTHING

pytestmark = pytest.mark.slow

DEBEZIUM = CdcSource(
    name="events",
    source="rows",
    keys=("id",),
    format="debezium",
    values=VALUES["debezium"],
    sequence=(SequenceColumn("lsn", "source.lsn"), SequenceColumn("happened", "source.ts_ms")),
    schema="id BIGINT, v STRING, n DECIMAL(6,2), u STRING",
    encodings={"n": "string"},
    unchanged=("v",),
    net=False,
)
_PLAIN = replace(
    DEBEZIUM,
    format="columns",
    schema=None,
    encodings={},
    unchanged=(),
    sequence=(SequenceColumn("lsn", "lsn"),),
)
_NAMES = ("id", "v", "valid_from", "valid_to", "is_current", "is_deleted")


def _event(operation: str, lsn: int, hour: int, before: Any, after: Any) -> dict[str, Any]:
    """An event as Debezium's PostgreSQL connector writes it."""
    millis = int((at(hour) - at(0)).total_seconds() + 1767225600) * 1000
    source = {"lsn": lsn, "ts_ms": millis, "db": "crm", "schema": "public", "table": "t"}
    return {"before": before, "after": after, "source": source, "op": operation, "ts_ms": millis}


def _row(key: int, v: str | None) -> dict[str, Any]:
    return {"id": key, "v": v, "n": "1.50", "u": "u"}


def _run(
    harness: Harness, folder: Path, *documents: Any, events: CdcSource = DEBEZIUM, **given: Any
) -> JobResult:
    path = folder / f"{len(list(folder.glob('*.json')))}.json"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in documents))
    schema = events.document_schema
    files = FileSource("rows", str(path), "json", schema=schema, missing="null")
    usual = {"late": "fail", "effective": "happened", "delete_marker": None, "source": "events"}
    versions = spec(**{**usual, "of_events": True, **given})
    return run(harness, versions, files, events, options=JobOptions(session_time_zone="UTC"))


@pytest.mark.by_turns(len(KINDS))
@pytest.mark.parametrize("kind", KINDS)
def test_events_of_debezium_become_versions(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    harness = dimension(spark, tmp_path / "w", kind)
    first = [
        _event("r", 1, 1, None, _row(1, "long")),
        _event("u", 2, 2, None, {**_row(1, UNAVAILABLE), "n": "2.50"}),
        _event("c", 3, 3, None, _row(2, "b")),
        _event("u", 4, 4, _row(2, "b"), _row(3, "b")),
        _event("c", 5, 5, None, _row(4, "d")),
        _event("u", 6, 5, None, _row(4, "e")),
        _event("d", 7, 6, _row(4, None), None),
        {"before": None, "after": None, "op": None},
    ]
    later = [first[1], _event("u", 8, 8, None, {**_row(1, UNAVAILABLE), "n": "3.50"}), first[6]]

    result = _run(harness, tmp_path, *first)
    second = _run(harness, tmp_path, *later)

    assert (result.error, second.error) == (None, None)
    assert history(harness, _NAMES) == [
        (1, "long", 1, 2, False, False),
        (1, "long", 2, 8, False, False),
        (1, "long", 8, None, True, False),
        (2, "b", 3, 4, False, False),
        (3, "b", 4, None, True, False),
        (4, "e", 5, 6, False, False),
    ]
    assert second.metrics.inserted == 1


def test_values_that_nobody_told_are_an_error(spark: SparkSession, tmp_path: Path) -> None:
    harness = dimension(spark, tmp_path / "w", "append-cow")
    unknown = _run(harness, tmp_path, _event("u", 1, 1, None, _row(1, UNAVAILABLE)))
    assert unknown.error is not None
    assert unknown.error.code == "CHANGE_EVENT_INVALID"
    gone = [_event("c", 1, 1, None, _row(1, "a")), _event("d", 2, 2, _row(1, None), None)]
    assert _run(harness, tmp_path, *gone).error is None
    behind = _run(harness, tmp_path, _event("u", 3, 3, None, _row(1, UNAVAILABLE)))
    assert behind.error is not None
    assert "v: an update leaves the value of a row as it was" in behind.error.message


def test_another_event_of_a_stored_time_needs_a_decision(
    spark: SparkSession, tmp_path: Path
) -> None:
    harness = dimension(spark, tmp_path / "w", "append-cow")
    assert _run(harness, tmp_path, _event("c", 1, 1, None, _row(1, "a"))).error is None
    other = _event("u", 2, 1, None, _row(1, "b"))
    refused = _run(harness, tmp_path, other)
    assert refused.error is not None
    assert refused.error.code == "VERSION_DIFFERS"
    assert _run(harness, tmp_path, other, corrections="overwrite").error is None
    assert history(harness, _NAMES) == [(1, "b", 1, None, True, False)]


def test_different_events_of_one_sequence_are_a_tie(spark: SparkSession, tmp_path: Path) -> None:
    harness = dimension(spark, tmp_path / "w", "append-cow")
    events = [_event("c", 1, 1, None, _row(1, v)) for v in "ab"]
    tie = _run(harness, tmp_path, *events)
    assert tie.error is not None
    assert tie.error.code == "SOURCE_KEY_NOT_UNIQUE"
    assert '{"id":1,"at":"2026-01-01T01:00' in tie.error.message


def test_what_orders_events_is_not_tracked(spark: SparkSession, tmp_path: Path) -> None:
    columns = [*COLUMNS[:4], replace(COLUMNS[0], name="lsn", nullable=True), *COLUMNS[4:]]
    harness = dimension(spark, tmp_path / "w", "append-cow", columns)
    first = _run(harness, tmp_path, _event("c", 1, 1, None, _row(1, "a")), tracked=None)
    same = _run(harness, tmp_path, _event("u", 2, 2, None, _row(1, "a")), tracked=None)
    assert (first.error, same.error, same.status) == (None, None, "unchanged")
    assert [row["lsn"] for row in harness.read()] == [1]


def test_the_last_event_of_a_day_counts_where_versions_have_days(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = [
        replace(each, type="DATE") if each.name.startswith("valid") else each for each in COLUMNS
    ]
    harness = dimension(spark, tmp_path / "w", "append-cow", columns)
    query = "SELECT * FROM VALUES ('c', 1L, 'a', DATE'2026-01-02', 1L), "
    query += "('u', 1L, 'b', DATE'2026-01-02', 2L) AS x (op, id, v, day, lsn)"
    rows = SqlSource("rows", f"SELECT *, 1.5 AS n, 'u' AS u FROM ({query})")
    versions = spec(source="events", effective="day", delete_marker=None, of_events=True)
    result = run(harness, versions, rows, _PLAIN)
    assert result.error is None, result.error
    assert [(row["v"], str(row["valid_from"])) for row in harness.read()] == [("b", "2026-01-02")]


def _plain_run(
    harness: Harness, values: str, events: CdcSource = _PLAIN, **given: Any
) -> JobResult:
    rows = f"SELECT *, 1.5 AS n, 'u' AS u FROM VALUES {values} AS x (op, id, v, at, lsn)"
    versions = spec(source="events", delete_marker=None, of_events=True, **given)
    return run(harness, versions, SqlSource("rows", rows), events)


@pytest.mark.parametrize("kind", ["BIGINT", "CHAR(3)"])
def test_keys_that_are_stored_as_one_are_one(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    columns = [replace(COLUMNS[0], type=kind), *COLUMNS[1:]]
    harness = dimension(spark, tmp_path / "w", "append-cow", columns)
    time, other = "TIMESTAMP_NTZ'2026-01-01 01:00:00'", "01" if kind == "BIGINT" else "1  "
    done = _plain_run(harness, f"('c', '1', 'a', {time}, 1L), ('u', '{other}', 'b', {time}, 2L)")
    assert done.error is None, done.error
    assert [row["v"] for row in harness.read()] == ["b"]


def test_keys_that_would_be_rounded_to_one_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    harness = dimension(spark, tmp_path / "w", "append-cow")
    time = "TIMESTAMP_NTZ'2026-01-01 0{}:00:00'"
    values = f"('c', 1.2, 'a', {time.format(1)}, 1L), ('c', 1.4, 'b', {time.format(2)}, 2L)"
    refused = _plain_run(harness, values)
    assert refused.error is not None
    assert refused.error.code == "TYPE_MISMATCH"


def test_an_insert_takes_over_nothing(spark: SparkSession, tmp_path: Path) -> None:
    harness = dimension(spark, tmp_path / "w", "append-cow")
    deleted = _event("d", 2, 2, _row(1, None), None)
    first = _event("c", 1, 1, None, _row(1, "old"))
    assert _run(harness, tmp_path, first, deleted, hard_deletes="ignore").error is None
    moved = _event("c", 3, 3, None, _row(1, UNAVAILABLE))
    refused = _run(harness, tmp_path, moved, hard_deletes="ignore")
    assert refused.error is not None
    assert refused.error.code == "CHANGE_EVENT_INVALID"


def test_a_row_with_another_key_takes_over_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Its new key may have been another row's, whose delete was ignored."""
    harness = dimension(spark, tmp_path / "w", "append-cow")
    first = [_event("c", 1, 1, None, _row(1, "old")), _event("c", 2, 1, None, _row(2, "other"))]
    gone = _event("d", 3, 2, _row(2, None), None)
    assert _run(harness, tmp_path, *first, gone, hard_deletes="ignore").error is None
    moved = _event("u", 4, 3, _row(1, "old"), _row(2, UNAVAILABLE))
    columns = replace(
        DEBEZIUM,
        format="columns",
        schema=None,
        encodings={},
        values=OperationValues(update=("u",), before=("b",)),
        sequence=(SequenceColumn("lsn", "lsn"),),
    )
    time, told = "TIMESTAMP_NTZ'2026-01-01 03:00:00'", f"'{UNAVAILABLE}'"
    values = f"('b', 1L, 'old', {time}, 4L), ('u', 2L, {told}, {time}, 4L)"

    for refused in (
        _run(harness, tmp_path, moved, hard_deletes="ignore"),
        _plain_run(harness, values, columns, hard_deletes="ignore", late="fail"),
    ):
        assert refused.error is not None
        assert refused.error.code == "CHANGE_EVENT_INVALID"
    whole = values.replace(told, "'told'")
    assert _plain_run(harness, whole, columns, hard_deletes="ignore", late="fail").error is None
    own = f"('b', 2L, 'told', {time}, 5L), ('u', 2L, {told}, {time}, 5L)".replace("03:", "05:")
    assert _plain_run(harness, own, columns, hard_deletes="ignore", late="fail").error is None


_BY_NANOS = replace(DEBEZIUM, sequence=(SequenceColumn("happened", "source.ts_ns"),), unchanged=())


def test_events_of_one_microsecond_are_in_the_order_of_their_nanoseconds(
    spark: SparkSession, tmp_path: Path
) -> None:
    harness = dimension(spark, tmp_path / "w", "append-cow")
    events = [_event("u", 1, 1, None, _row(1, v)) for v in "ba"]
    for nanos, each in zip((999, 1), events, strict=True):
        each["source"]["ts_ns"] = each["ts_ms"] * 1_000_000 + nanos
    assert _run(harness, tmp_path, *events, events=_BY_NANOS).error is None
    assert history(harness, _NAMES) == [(1, "b", 1, None, True, False)]
    events[0]["source"]["ts_ns"] = events[1]["source"]["ts_ns"]
    tie = _run(harness, tmp_path, *events, events=_BY_NANOS)
    assert tie.error is not None
    assert (tie.error.code, "values of happened" in tie.error.message) == (
        "SOURCE_KEY_NOT_UNIQUE",
        True,
    )


@pytest.mark.parametrize("number", [10**17, -(10**14)])
def test_a_number_that_is_no_time_is_named(
    spark: SparkSession, tmp_path: Path, number: int
) -> None:
    harness = dimension(spark, tmp_path / "w", "append-cow")
    event = _event("c", 1, 1, None, _row(1, "a"))
    event["source"]["ts_ms"] = number
    refused = _run(harness, tmp_path, event)
    assert refused.error is not None
    assert refused.error.code == "VALUE_NOT_STORABLE"
    assert f"happened: source.ts_ms of an event is {number}" in refused.error.message


def test_values_of_deletes_need_not_fit(spark: SparkSession, tmp_path: Path) -> None:
    columns = [replace(e, type="VARCHAR(5)") if e.name == "v" else e for e in COLUMNS]
    harness = dimension(spark, tmp_path / "w", "append-cow", columns)
    events = [
        _event("c", 1, 1, None, _row(1, "a")),
        _event("d", 2, 2, _row(1, UNAVAILABLE), None),
    ]
    assert _run(harness, tmp_path, *events).error is None
    assert history(harness, _NAMES) == [(1, "a", 1, 2, False, False)]


def test_versions_have_the_keys_of_their_events(spark: SparkSession, tmp_path: Path) -> None:
    harness = dimension(spark, tmp_path / "w", "append-cow")
    with pytest.raises(RequestError, match="are not the keys of the change events: u"):
        _run(harness, tmp_path, events=replace(DEBEZIUM, keys=("u",)))


@pytest.mark.extended  # a quarter of a minute each
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4) if EVERYTHING else [0])
def test_random_logs(spark: SparkSession, tmp_path: Path, kind: str, seed: int) -> None:
    assert run_chain(spark, tmp_path, kind, seed, logs=30) == 30
