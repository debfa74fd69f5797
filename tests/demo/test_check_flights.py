"""The check finds what it is there to find: it is tried on right and on wrong tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="the check runs in the Spark environment")

import pyarrow as pa

from dags_examples import check_flights

DAY, OTHER_DAY = "2013-01-02", "2013-01-03"
HEADER = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,"
    "flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour"
)
ROWS = 60
CANCELLED = 7
UNSCHEDULED = 50


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    """60 flights on each of two January days, number 7 cancelled, and one in February."""
    lines = [HEADER]
    for day in (2, 3):
        for flight in range(1, ROWS + 1):
            actual = ("NA",) * 5 if flight == CANCELLED else (517, 2, 830, 11, 227)
            lines.append(_line(1, day, flight, *actual))
    lines.append(_line(2, 2, 1, 517, 2, 830, 11, 227))
    path = tmp_path / "flights.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def _line(month: int, day: int, flight: int, *actual: Any) -> str:
    dep_time, dep_delay, arr_time, arr_delay, air_time = actual
    return (
        f"2013,{month},{day},{dep_time},515,{dep_delay},{arr_time},819,{arr_delay},UA,{flight},NA,"
        f"EWR,IAH,{air_time},1400,5,15,2013-0{month}-0{day}T10:00:00Z"
    )


def _flight(day: int, flight: int, *, merged: bool) -> dict[str, Any]:
    actual = {"dep_time": 517, "dep_delay": 2, "arr_time": 830, "arr_delay": 11, "air_time": 227}
    return {
        "flight_date": date(2013, 1, day),
        "carrier": "UA",
        "flight": flight,
        "origin": "EWR",
        "dest": "IAH",
        "tailnum": None,
        "scheduled_at": datetime(2013, 1, day, 10, 15, tzinfo=UTC),
        "sched_dep_time": 515,
        "sched_arr_time": 819,
        **(actual if merged else dict.fromkeys(actual)),
    }


SCHEMA = pa.schema(
    [
        ("flight_date", pa.date32()),
        ("carrier", pa.string()),
        ("flight", pa.int32()),
        ("origin", pa.string()),
        ("dest", pa.string()),
        ("tailnum", pa.string()),
        ("scheduled_at", pa.timestamp("us", "UTC")),
        *(
            (name, pa.int32())
            for name in [
                "sched_dep_time",
                "sched_arr_time",
                "dep_time",
                "dep_delay",
                "arr_time",
                "arr_delay",
                "air_time",
            ]
        ),
    ]
)


def _right_rows() -> list[dict[str, Any]]:
    flights = range(1, ROWS + 1)
    merged = [_flight(2, n, merged=True) for n in flights if n != CANCELLED]
    scheduled = [_flight(3, n, merged=False) for n in flights if n != UNSCHEDULED]
    return merged + scheduled


def _differences(csv: Path, rows: list[dict[str, Any]]) -> list[str]:
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    return check_flights.differences(check_flights.open_raw(csv, [DAY]), table)


def test_the_right_table_has_no_difference(csv: Path) -> None:
    assert _differences(csv, _right_rows()[::-1]) == []


@pytest.mark.parametrize(
    ("spoil", "missing", "found"),
    [
        (lambda rows: rows[0].update(dep_delay=3), 1, 1),
        (lambda rows: rows[0].update(dep_delay=None), 1, 1),
        (lambda rows: rows[-1].update(dep_time=517), 1, 1),
        (lambda rows: rows[0].update(scheduled_at=datetime(2013, 1, 2, 5, 15, tzinfo=UTC)), 1, 1),
        (lambda rows: rows.pop(), 1, 0),
        (lambda rows: rows.append(dict(rows[0])), 0, 1),
        (lambda rows: rows.append(_flight(2, CANCELLED, merged=False)), 0, 1),
        (lambda rows: rows.clear(), 118, 0),
    ],
    ids=[
        "value",
        "null-value",
        "early-actuals",
        "time-zone",
        "lost",
        "twice",
        "cancelled",
        "empty",
    ],
)
def test_a_wrong_table_is_told_by_the_rows_that_differ(
    csv: Path, spoil: Callable[[list[dict[str, Any]]], None], missing: int, found: int
) -> None:
    rows = _right_rows()
    spoil(rows)

    lines = _differences(csv, rows)

    titles = [line for line in lines if not line.startswith("  ")]
    expected = [(missing, "missing or wrong"), (found, "found instead")]
    assert titles == [f"{title}: {n} rows, of which" for n, title in expected if n]
    assert len(lines) <= 2 * (check_flights.SHOWN + 1)


def test_another_set_of_columns_is_a_difference(csv: Path) -> None:
    table = pa.Table.from_pylist(_right_rows(), schema=SCHEMA).drop_columns(["air_time"])

    lines = check_flights.differences(check_flights.open_raw(csv, [DAY]), table)

    assert len(lines) == 1
    assert lines[0].startswith("columns: expected")


def test_counts_are_those_of_load_and_merges(csv: Path) -> None:
    counts = check_flights.expected_counts(check_flights.open_raw(csv, [DAY]), [DAY])

    assert counts == [
        {"inserted": 118, "updated": 0, "deleted": 0},
        {"inserted": 1, "updated": 58, "deleted": 1},
    ]


def test_counts_that_differ_name_the_snapshot() -> None:
    wanted = [{"inserted": 1, "updated": 0, "deleted": 0}]
    timeline = [{"id": 4, "inserted": 2, "updated": 0, "deleted": 0}]

    assert check_flights.count_differences(wanted, [{**timeline[0], "inserted": 1}]) == []
    assert "snapshot 4" in check_flights.count_differences(wanted, timeline)[0]
    assert check_flights.count_differences(wanted, []) == ["snapshots: expected 1, found 0"]


def test_a_paimon_table_is_read_and_judged(
    csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = tmp_path / "warehouse"
    _write_paimon(warehouse, _right_rows())
    timeline = tmp_path / "timeline.json"
    arguments = ["--csv", str(csv), "--warehouse", str(warehouse), "--days", DAY]

    assert check_flights.main(arguments) == 0
    assert "118 rows of flights.flight equal" in capsys.readouterr().out

    timeline.write_text(json.dumps([]))
    assert check_flights.main([*arguments, "--timeline", str(timeline)]) == 1
    assert check_flights.main([*arguments, OTHER_DAY]) == 1
    assert "missing or wrong: 59 rows" in capsys.readouterr().out


def _write_paimon(warehouse: Path, rows: list[dict[str, Any]]) -> None:
    from pypaimon import CatalogFactory, Schema

    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database("flights", ignore_if_exists=True)
    schema = Schema.from_pyarrow_schema(SCHEMA, partition_keys=["flight_date"])
    catalog.create_table("flights.flight", schema, ignore_if_exists=False)
    builder = catalog.get_table("flights.flight").new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(pa.Table.from_pylist(rows, schema=SCHEMA))
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()
