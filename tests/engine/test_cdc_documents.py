"""Change events as Debezium, Maxwell and Canal write them: rows and values, exactly or refused."""

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

from spark_jobs.contract.cdc import UNAVAILABLE, VALUES, CdcSource, SequenceColumn
from spark_jobs.contract.request import FileSource
from spark_jobs.contract.statements import ColumnSpec
from tests.conformance.harness import Harness
from tests.conformance.tables import SeedTable
from tests.engine.cdc_cases import SOURCE, TABLE, events_of, rows_of, run

pytestmark = pytest.mark.slow


@pytest.fixture
def harness(make_table: Callable[..., Harness]) -> Harness:
    return make_table("append-cow", TABLE, partitioned=False)


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
    source = replace(_debezium(SOURCE), unchanged=("v",), table="public.t")
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

    result = run(harness, source, _file(tmp_path, source, *documents))

    assert result.error is None, result.error
    expected = [(1, "one", 12), (4, "moved", 34), (7, "read", 11), (8, "made", 31)]
    assert rows_of(harness) == expected


def test_a_truncate_of_debezium_and_bad_documents_are_refused(
    harness: Harness, tmp_path: Path
) -> None:
    source = _debezium(SOURCE)
    emptied = run(harness, source, _file(tmp_path, source, _event("t", 9, None, None)))
    assert emptied.error is not None
    assert emptied.error.code == "CHANGE_EVENT_INVALID"
    path = tmp_path / "events.json"
    path.write_text(f"{json.dumps(_event('c', 1, None, {'id': 5, 'v': 'a'}))}\n{{no\n")
    files = FileSource("events", str(path), "json", schema=source.document_schema, missing="null")
    damaged = run(harness, source, files, operation_id="damaged")
    assert damaged.error is not None
    assert "events.json, line 2, record 2 is not valid JSON" in damaged.error.message
    texts = run(harness, source, events_of("('u', 1L, 'v', 11L)"), operation_id="texts")
    assert texts.error is not None
    assert texts.error.code == "NOT_SUPPORTED"
    assert "from_json" in texts.error.remedy


def test_rows_of_maxwell(harness: Harness, tmp_path: Path) -> None:
    source = replace(
        SOURCE,
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
    result = run(harness, source, _file(tmp_path, source, *documents))
    assert result.error is None, result.error
    assert rows_of(harness) == [(1, "u", 51), (5, "made", 50), (6, "two", 52)]


def test_rows_of_canal(harness: Harness, tmp_path: Path) -> None:
    source = replace(
        SOURCE,
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
    result = run(harness, source, _file(tmp_path, source, *documents))
    assert result.error is None, result.error
    assert rows_of(harness) == [(1, "one", 10), (4, "a", 50), (5, None, 50), (6, "two", 51)]


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
    source = replace(_debezium(SOURCE), schema=columns, encodings=_ENCODINGS)
    numbers = [0, 1, -1, 127, 128, -128, -129, 255, 256, 10**38 - 1, 1 - 10**38, 2**64, -(2**64)]
    start, expected, documents = datetime(1970, 1, 1), {}, []  # noqa: DTZ001 - a local time
    for at, number in enumerate(numbers):
        micros = (-1) ** at * (at * 86_400_000_000_123_456 // 70)
        var = number if abs(number) < 10**9 else 7
        row = {
            "id": at,
            "day": 19_000 - 3_000 * at,
            "ms": micros // 1000,
            "us": micros,
            "ns": micros // 10 * 1000,
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
            start + timedelta(microseconds=micros // 10),
            Decimal(number).scaleb(-4, Context(prec=60)),
            Decimal(var).scaleb(-3),
            Decimal(f"{at}.25"),
            bytes([at, 255]),
        )
        documents.append(_event("c", at + 1, None, row))
    documents.append(_event("c", 100, None, {"id": 100}))

    result = run(harness, source, _file(tmp_path, source, *documents))

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
        ("day", 2**31 - 1),
        ("us", 9_223_372_036_825_200_000),  # infinity
        ("ms", -(10**15)),
    ],
)
def test_what_a_type_does_not_hold_exactly_is_refused(
    make_table: Callable[..., Harness], tmp_path: Path, column: str, value: Any
) -> None:
    harness = make_table("append-cow", _EXACT, partitioned=False)
    columns = ", ".join(f"{e.name} {e.type}" for e in _EXACT.columns if e.name != "lsn")
    source = replace(_debezium(SOURCE), schema=columns, encodings=_ENCODINGS)
    event = _event("c", 1, None, {"id": 1, column: value})
    result = run(harness, source, _file(tmp_path, source, event))
    assert result.error is not None
    assert result.error.code == "VALUE_NOT_STORABLE", result.error
    assert column in result.error.message
    assert harness.read() == []


def test_skipped_events_are_counted_and_wrong_tables_are_seen(
    harness: Harness, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "airflow_provider_merge.job")
    source = replace(_debezium(SOURCE), table="public.t")
    others = [_event("c", n, None, {"id": n, "v": "a"}, table="other") for n in (31, 32)]
    mine = _event("c", 33, None, {"id": 9, "v": "mine"})
    nothing = [{"before": None, "after": None, "op": None}, _event("m", 34, None, None)]

    some = run(harness, source, _file(tmp_path, source, *others, *nothing, mine))
    none = run(harness, source, _file(tmp_path, source, *others), operation_id="none")

    assert (some.error, none.error, none.status) == (None, None, "unchanged")
    assert some.metrics.sources["events"].skipped_events == 4
    assert none.metrics.sources["events"].skipped_events == 2
    told = "of 5 events, skipped: tombstones 1, of other tables 2, ignored operations 1"
    assert told in caplog.text
    assert "none is of public.t. Their tables: public.other" in caplog.text
    misspelt = replace(source, table="public.OTHER")
    refused = run(harness, misspelt, _file(tmp_path, misspelt, *others), operation_id="misspelt")
    assert refused.error is not None
    assert refused.error.code == "CHANGE_EVENT_INVALID"
    assert "none of its events is of public.OTHER, but some are of public.other" in (
        refused.error.message
    )
