"""Change events of any source: what a MERGE makes of them, and what it refuses by name."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contract.cdc import UNAVAILABLE, VALUES, CdcSource, OperationValues, SequenceColumn
from spark_jobs.contract.event_clauses import event_cases, event_on
from spark_jobs.contract.request import FileSource, JobRequest, SqlSource
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import ColumnSpec, MergeSpec
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import SeedTable

pytestmark = pytest.mark.slow

_KEPT = ColumnSpec("lsn", "BIGINT")
_TABLE = SeedTable(
    "cdc",
    (ColumnSpec("id", "BIGINT"), ColumnSpec("v", "STRING"), _KEPT),
    (
        (
            {"id": 1, "v": "one", "lsn": 10},
            {"id": 2, "v": "two", "lsn": 20},
            {"id": 3, "v": "before any event", "lsn": None},
        ),
    ),
)
_OPERATIONS = OperationValues(("c",), ("u",), ("d",), truncate=("t",), ignore=("m",))
_SOURCE = CdcSource("s", "events", ("id",), _OPERATIONS, (SequenceColumn("lsn", "lsn"),))


def _request(harness: Harness, source: CdcSource, *inner: Any, **more: Any) -> JobRequest:
    evolves = more.pop("schema_evolution", False)
    cases, on = event_cases(source, "t", "s"), event_on(source, "t", "s")
    statement = MergeSpec("s", on, cases, "t", "s", schema_evolution=evolves)
    request = JobRequest("cdc", TARGET, harness.catalog, statement, (*inner, source))
    return replace(request, **more)


def _run(harness: Harness, source: CdcSource, *inner: Any, **more: Any) -> JobResult:
    request = _request(harness, source, *inner, **more)
    return Job(request, harness.spark, harness.open()).run()


def _events(*rows: str, columns: str = "op, id, v, lsn") -> SqlSource:
    return SqlSource("events", f"SELECT * FROM VALUES {', '.join(rows)} AS x ({columns})")


def _rows(harness: Harness) -> list[tuple[Any, ...]]:
    rows = [tuple(row.values()) for row in harness.read()]
    return sorted(rows, key=lambda row: (row[0], str(row)))


@pytest.fixture
def harness(make_table: Callable[..., Harness]) -> Harness:
    return make_table("append-cow", _TABLE, partitioned=False)


def test_the_last_event_of_each_key_counts(harness: Harness) -> None:
    events = _events(
        *("('u', 1L, 'old', 11L)", "('u', 1L, 'new', 12L)", "('u', 1L, 'new', 12L)"),
        *("('d', 2L, NULL, 19L)", "('d', 3L, NULL, 1L)", "('d', 4L, NULL, 2L)"),
        *("('c', 4L, 'four', 1L)", "('c', 5L, 'five', 1L)", "('m', NULL, NULL, NULL)"),
    )
    result = _run(harness, _SOURCE, events)

    assert result.error is None, result.error
    assert _rows(harness) == [(1, "new", 12), (2, "two", 20), (5, "five", 1)]
    metrics = result.metrics
    assert (metrics.source_rows, metrics.inserted, metrics.updated, metrics.deleted) == (5, 1, 1, 1)
    again = _run(harness, _SOURCE, events, operation_id="again")
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
            [f"('d', 1L, 'v', 30L)", f"('u', 1L, '{UNAVAILABLE}', 31L)"],
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

    result = _run(harness, replace(_SOURCE, **change), _events("('u', 1L, 'v', 11L)", *rows))

    assert result.error is not None
    assert result.error.code == code, result.error
    assert message in result.error.message
    after = harness.state()
    assert (after.rows, after.files) == (before.rows, before.files)


def test_an_order_of_texts_is_not_that_of_numbers(harness: Harness) -> None:
    events = _events("('u', 1L, 'v', '9')", columns="op, id, v, lsn")
    result = _run(harness, _SOURCE, events)
    assert result.error is not None
    assert result.error.code == "TYPE_MISMATCH"
    assert "source s: sequence: lsn is of the type string in events" in result.error.message


def test_columns_of_one_name(harness: Harness) -> None:
    events = _events("('u', 1L, 'v', 11L, 'w')", columns="op, id, v, lsn, V")
    result = _run(harness, _SOURCE, events)
    assert result.error is not None
    assert result.error.code == "AMBIGUOUS_REFERENCE"
    assert "source s: its events have several columns v" in result.error.message


def test_a_target_that_keeps_no_order_takes_what_comes(harness: Harness) -> None:
    source = replace(_SOURCE, late="apply")
    result = _run(harness, source, _events("('u', 1L, 'late', 1L)", "('d', 2L, NULL, 1L)"))
    assert result.error is None, result.error
    assert _rows(harness) == [(1, "late", 1), (3, "before any event", None)]


def test_the_row_before_an_update_leaves_its_key(harness: Harness) -> None:
    values = replace(_OPERATIONS, before=("b",))
    events = _events("('b', 1L, 'one', 30L)", "('u', 8L, 'moved', 30L)", "('b', 2L, 'x', 31L)")
    more = _events("('u', 2L, 'stays', 31L)")
    query = f"{events.query} UNION ALL {more.query}"
    result = _run(harness, replace(_SOURCE, values=values), SqlSource("events", query))
    assert result.error is None, result.error
    assert _rows(harness) == [(2, "stays", 31), (3, "before any event", None), (8, "moved", 30)]


def test_new_columns_come_by_evolution_without_those_of_events(harness: Harness) -> None:
    columns, source = "op, id, v, lsn, city, partition", replace(_SOURCE, without=("partition",))
    events = _events("('u', 1L, 'a', 11L, 'Ulm', 0)", columns=columns)

    same = _run(harness, source, events)
    grown = _run(harness, source, events, schema_evolution=True, operation_id="grown")

    assert same.error is None, same.error
    assert grown.error is None, grown.error
    assert list(grown.schema_changes) == ["added city STRING"]
    again = _events("('u', 1L, 'b', 12L, 'Bonn', 0)", columns=columns)
    assert _run(harness, source, again, operation_id="again").error is None
    assert {row["id"]: row.get("city") for row in harness.read()} == {1: "Bonn", 2: None, 3: None}


def _debezium(source: CdcSource) -> CdcSource:
    return replace(
        source,
        format="debezium",
        values=VALUES["debezium"],
        sequence=(SequenceColumn("lsn", "source.lsn"),),
        schema="id BIGINT, v STRING",
    )


def _file(folder: Path, source: CdcSource, *documents: Any) -> FileSource:
    path = folder / "events.json"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in documents))
    return FileSource("events", str(path), "json", schema=source.document_schema, missing="null")


def _event(operation: str, lsn: int, before: Any, after: Any, table: str = "t") -> dict[str, Any]:
    """An event as Debezium's PostgreSQL connector writes it."""
    source = {"version": "3.0.0.Final", "connector": "postgresql", "name": "shop", "lsn": lsn}
    source |= {"ts_ms": 1700000000000, "db": "shop", "schema": "public", "table": table, "txId": 7}
    return {
        "before": before,
        "after": after,
        "source": source,
        "op": operation,
        "ts_ms": 1700000000001,
        "transaction": None,
    }


@pytest.mark.parametrize("envelope", [False, True])
def test_events_of_debezium(harness: Harness, tmp_path: Path, envelope: bool) -> None:
    source = replace(_debezium(_SOURCE), unchanged=("v",), table="public.t")
    documents: list[Any] = [
        _event("r", 11, None, {"id": 7, "v": "read"}),
        _event("u", 12, None, {"id": 1, "v": UNAVAILABLE}),
        _event("d", 30, {"id": 2, "v": None}, None),
        {"before": None, "after": None, "op": None},
        _event("c", 31, None, {"id": 8, "v": "made"}),
        _event("m", 32, None, None),
        _event("c", 33, None, {"id": 9, "v": "of others"}, table="other"),
        _event("u", 34, {"id": 3, "v": "x"}, {"id": 4, "v": "moved"}),
    ]
    if envelope:
        documents = [{"schema": {"type": "struct"}, "payload": each} for each in documents]

    result = _run(harness, source, _file(tmp_path, source, *documents))

    assert result.error is None, result.error
    expected = [(1, "one", 12), (4, "moved", 34), (7, "read", 11), (8, "made", 31)]
    assert _rows(harness) == expected


def test_a_truncate_of_debezium_and_bad_documents_are_refused(
    harness: Harness, tmp_path: Path
) -> None:
    source = _debezium(_SOURCE)
    emptied = _run(harness, source, _file(tmp_path, source, _event("t", 9, None, None)))
    assert emptied.error is not None
    assert emptied.error.code == "CHANGE_EVENT_INVALID"
    path = tmp_path / "events.json"
    path.write_text(f"{json.dumps(_event('c', 1, None, {'id': 5, 'v': 'a'}))}\n{{no\n")
    files = FileSource("events", str(path), "json", schema=source.document_schema, missing="null")
    damaged = _run(harness, source, files, operation_id="damaged")
    assert damaged.error is not None
    assert "events.json, line 2, record 2 is not valid JSON" in damaged.error.message
    texts = _run(harness, source, _events("('u', 1L, 'v', 11L)"), operation_id="texts")
    assert texts.error is not None
    assert texts.error.code == "NOT_SUPPORTED"
    assert "from_json" in texts.error.remedy


def test_rows_of_maxwell(harness: Harness, tmp_path: Path) -> None:
    source = replace(
        _SOURCE,
        format="maxwell",
        operation="type",
        values=VALUES["maxwell"],
        sequence=(SequenceColumn("lsn", "xoffset"),),
        schema="id BIGINT, v STRING",
    )
    told = {"database": "shop", "table": "t", "ts": 1, "xid": 9}
    documents = [
        {**told, "type": "insert", "xoffset": 50, "data": {"id": 5, "v": "made"}},
        {**told, "type": "update", "xoffset": 51, "data": {"id": 1, "v": "u"}, "old": {"v": "one"}},
        {**told, "type": "update", "xoffset": 52, "data": {"id": 6, "v": "two"}, "old": {"id": 2}},
        {**told, "type": "delete", "commit": True, "data": {"id": 3, "v": "x"}},
        {**told, "type": "bootstrap-start", "data": {}},
    ]
    result = _run(harness, source, _file(tmp_path, source, *documents))
    assert result.error is None, result.error
    assert _rows(harness) == [(1, "u", 51), (5, "made", 50), (6, "two", 52)]


def test_rows_of_canal(harness: Harness, tmp_path: Path) -> None:
    source = replace(
        _SOURCE,
        format="canal",
        operation="type",
        values=VALUES["canal"],
        sequence=(SequenceColumn("lsn", "es"),),
        schema="id BIGINT, v STRING",
        table="shop.t",
    )
    told = {"database": "shop", "table": "t", "isDdl": False}
    moved = {"data": [{"id": "6", "v": "two"}], "old": [{"id": "2"}]}
    both = {"data": [{"id": "4", "v": "a"}, {"id": "5", "v": None}], "old": None}
    documents = [
        {**told, "type": "INSERT", "es": 50, **both},
        {**told, "type": "UPDATE", "es": 51, **moved},
        {**told, "type": "DELETE", "es": 52, "data": [{"id": "3", "v": "x"}], "old": None},
        {**told, "type": "ALTER", "es": 53, "isDdl": True, "data": None, "old": None},
        {**told, "table": "other", "type": "INSERT", "es": 54, **both},
    ]
    result = _run(harness, source, _file(tmp_path, source, *documents))
    assert result.error is None, result.error
    assert _rows(harness) == [(1, "one", 10), (4, "a", 50), (5, None, 50), (6, "two", 51)]


_EXACT = SeedTable(
    "cdc-exact",
    (
        *(ColumnSpec("id", "BIGINT"), ColumnSpec("lsn", "BIGINT"), ColumnSpec("day", "DATE")),
        *(ColumnSpec("ms", "TIMESTAMP_NTZ"), ColumnSpec("us", "TIMESTAMP_NTZ")),
        *(ColumnSpec("ns", "TIMESTAMP_NTZ"), ColumnSpec("zoned", "TIMESTAMP")),
        *(ColumnSpec("d", "DECIMAL(38, 4)"), ColumnSpec("var", "DECIMAL(12, 3)")),
        *(ColumnSpec("text", "DECIMAL(10, 2)"), ColumnSpec("b", "BINARY")),
    ),
)
_ENCODINGS = {
    "ms": "io.debezium.time.Timestamp",
    "us": "io.debezium.time.MicroTimestamp",
    "ns": "io.debezium.time.NanoTimestamp",
    "d": "org.apache.kafka.connect.data.Decimal",
    "var": "io.debezium.data.VariableScaleDecimal",
    "text": "string",
}


def _base64(number: int) -> str:
    """An unscaled decimal as Kafka Connect's JSON converter writes it."""
    size = (number.bit_length() + 8) // 8
    return b64encode(number.to_bytes(size, "big", signed=True)).decode()


def test_logical_types_of_debezium_are_exact(
    make_table: Callable[..., Harness], tmp_path: Path
) -> None:
    harness = make_table("append-cow", _EXACT, partitioned=False)
    columns = ", ".join(f"{e.name} {e.type}" for e in _EXACT.columns if e.name != "lsn")
    source = replace(_debezium(_SOURCE), schema=columns, encodings=_ENCODINGS)
    numbers = [0, 1, -1, 127, 128, -128, -129, 255, 256, 10**38 - 1, 1 - 10**38, 2**64, -(2**64)]
    start, expected, documents = datetime(1970, 1, 1), {}, []
    for at, number in enumerate(numbers):
        micros = (-1) ** at * (at * 86_400_000_000_123_456 // 70)
        var = number if abs(number) < 10**9 else 7
        row = {
            "id": at,
            "day": 19_000 - 3_000 * at,
            "ms": micros // 1000,
            "us": micros,
            "ns": micros * 1000,
            "zoned": f"2024-03-0{at % 9 + 1}T12:00:00.{at:06d}Z",
            "d": _base64(number),
            "var": {"scale": 5, "value": _base64(var * 100)},
            "text": f"{at}.25",
            "b": b64encode(bytes([at, 255])).decode(),
        }
        expected[at] = (
            date(1970, 1, 1) + timedelta(days=row["day"]),
            start + timedelta(milliseconds=micros // 1000),
            start + timedelta(microseconds=micros),
            start + timedelta(microseconds=micros),
            Decimal(number).scaleb(-4, Context(prec=60)),
            Decimal(var).scaleb(-3),
            Decimal(f"{at}.25"),
            bytes([at, 255]),
        )
        documents.append(_event("c", at + 1, None, row))
    documents.append(_event("c", 100, None, {"id": 100}))

    result = _run(harness, source, _file(tmp_path, source, *documents))

    assert result.error is None, result.error
    rows = {row["id"]: row for row in harness.read()}
    assert all(value is None for name, value in rows.pop(100).items() if name not in ("id", "lsn"))
    names = ("day", "ms", "us", "ns", "d", "var", "text", "b")
    assert {at: tuple(row[name] for name in names) for at, row in rows.items()} == expected
    assert rows[3]["zoned"].isoformat()[:26] == "2024-03-04T12:00:00.000003"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("ns", 1_001),
        ("var", {"scale": 5, "value": _base64(123_456)}),
        ("d", _base64(10**38)),
        ("text", "1.255"),
        ("day", "2024-01-01"),
    ],
)
def test_what_a_type_does_not_hold_exactly_is_refused(
    make_table: Callable[..., Harness], tmp_path: Path, column: str, value: Any
) -> None:
    harness = make_table("append-cow", _EXACT, partitioned=False)
    columns = ", ".join(f"{e.name} {e.type}" for e in _EXACT.columns if e.name != "lsn")
    source = replace(_debezium(_SOURCE), schema=columns, encodings=_ENCODINGS)
    event = _event("c", 1, None, {"id": 1, column: value})
    result = _run(harness, source, _file(tmp_path, source, event))
    assert result.error is not None
    assert result.error.code == "VALUE_NOT_STORABLE", result.error
    assert column in result.error.message
    assert harness.read() == []
