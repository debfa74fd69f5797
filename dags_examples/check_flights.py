"""Compares ``flights.flight`` row by row with the outcome that duckdb computes from the raw data.

Runs in the Spark environment (it needs pypaimon and duckdb), but uses neither Spark nor this
project: the expectation is written as one query over the raw file, not as a series of merges.

Exit code 0: equal. 1: different, with a small difference on standard output.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

SHOWN = 5
COUNTS = ("inserted", "updated", "deleted")

RAW = """
CREATE VIEW raw AS
SELECT make_date("year", "month", "day") AS flight_date, carrier, flight, origin, dest, tailnum,
       time_hour + to_minutes("minute") AS scheduled_at,
       sched_dep_time, sched_arr_time, dep_time, dep_delay, arr_time, arr_delay, air_time,
       rank() OVER (PARTITION BY "year", "month", "day" ORDER BY carrier, flight, origin) % 50 <> 0
           AS scheduled,
       list_contains($days, strftime(flight_date, '%Y-%m-%d')) AS merged
FROM read_csv($csv, header = true, nullstr = 'NA', columns = {
    'year': 'INT', 'month': 'INT', 'day': 'INT', 'dep_time': 'INT', 'sched_dep_time': 'INT',
    'dep_delay': 'INT', 'arr_time': 'INT', 'sched_arr_time': 'INT', 'arr_delay': 'INT',
    'carrier': 'VARCHAR', 'flight': 'INT', 'tailnum': 'VARCHAR', 'origin': 'VARCHAR',
    'dest': 'VARCHAR', 'air_time': 'INT', 'distance': 'INT', 'hour': 'INT', 'minute': 'INT',
    'time_hour': 'TIMESTAMPTZ'})
WHERE "year" = 2013 AND "month" = 1
"""

# Of a merged day all flights that took off are there, with their actuals; of another day the
# scheduled ones, without.
EXPECTED = """
CREATE TABLE expected AS
SELECT flight_date, carrier, flight, origin, dest, tailnum, scheduled_at,
       sched_dep_time, sched_arr_time,
       CASE WHEN merged THEN dep_time END AS dep_time,
       CASE WHEN merged THEN dep_delay END AS dep_delay,
       CASE WHEN merged THEN arr_time END AS arr_time,
       CASE WHEN merged THEN arr_delay END AS arr_delay,
       CASE WHEN merged THEN air_time END AS air_time
FROM raw
WHERE CASE WHEN merged THEN dep_time IS NOT NULL ELSE scheduled END
"""

EXPECTED_COUNTS = """
SELECT count(*) FILTER (NOT scheduled AND dep_time IS NOT NULL) AS inserted,
       count(*) FILTER (scheduled AND dep_time IS NOT NULL) AS updated,
       count(*) FILTER (scheduled AND dep_time IS NULL) AS deleted
FROM raw WHERE flight_date = CAST(? AS DATE)
"""


def open_raw(csv: Path, days: Sequence[str]) -> duckdb.DuckDBPyConnection:
    """A duckdb session with the view ``raw`` and the table ``expected``."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    literals = {
        "$csv": _literal(str(csv)),
        "$days": f"[{', '.join(map(_literal, days))}]::VARCHAR[]",
    }
    view = RAW
    for name, literal in literals.items():
        view = view.replace(name, literal)
    connection.execute(view)
    connection.execute(EXPECTED)
    return connection


def expected_counts(
    connection: duckdb.DuckDBPyConnection, days: Sequence[str]
) -> list[dict[str, int]]:
    """What the load and then each day's merge must have inserted, updated and deleted."""
    loaded = _row(connection, "SELECT count(*) FROM raw WHERE scheduled")[0]
    counts = [(loaded, 0, 0), *(_row(connection, EXPECTED_COUNTS, [day]) for day in days)]
    return [dict(zip(COUNTS, each, strict=True)) for each in counts]


def differences(connection: duckdb.DuckDBPyConnection, actual: pa.Table) -> list[str]:
    """One line for each kind of difference and example; empty when both hold the same rows."""
    expected = connection.sql("SELECT * FROM expected").columns
    if sorted(expected) != sorted(actual.column_names):
        return [f"columns: expected {sorted(expected)}, found {sorted(actual.column_names)}"]
    connection.register("actual", actual)
    names = ", ".join(expected)
    lines = []
    for title, one, other in (
        ("missing or wrong", "expected", "actual"),
        ("found instead", "actual", "expected"),
    ):
        query = f"SELECT {names} FROM {one} EXCEPT ALL SELECT {names} FROM {other}"
        count = _row(connection, f"SELECT count(*) FROM ({query})")[0]
        if count:
            lines.append(f"{title}: {count} rows, of which")
            texts = ", ".join(f"CAST({name} AS VARCHAR)" for name in expected)
            order = "flight_date, carrier, flight, origin"
            sample = f"SELECT {texts} FROM ({query}) ORDER BY {order} LIMIT {SHOWN}"
            for row in connection.execute(sample).fetchall():
                pairs = zip(expected, row, strict=True)
                lines.append("  " + " ".join(f"{name}={value}" for name, value in pairs))
    return lines


def count_differences(
    expected: Sequence[dict[str, int]], timeline: Sequence[dict[str, Any]]
) -> list[str]:
    """Where the snapshots' own counts differ from the expected ones, in order of the snapshots."""
    if len(expected) != len(timeline):
        return [f"snapshots: expected {len(expected)}, found {len(timeline)}"]
    return [
        f"snapshot {found['id']}: expected {wanted}, found { {k: found[k] for k in COUNTS} }"
        for wanted, found in zip(expected, timeline, strict=True)
        if any(found[name] != wanted[name] for name in COUNTS)
    ]


def read_table(warehouse: Path, name: str) -> pa.Table:
    """All rows of a Paimon table, read by pypaimon."""
    from pypaimon import CatalogFactory

    table = CatalogFactory.create({"warehouse": str(warehouse)}).get_table(name)
    builder = table.new_read_builder()
    rows: pa.Table = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return rows


def _row(connection: duckdb.DuckDBPyConnection, query: str, values: Sequence[Any] = ()) -> Any:
    return connection.execute(query, list(values)).fetchone()


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare and report; see the module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--csv", type=Path, required=True, help="the raw flights.csv")
    parser.add_argument("--warehouse", type=Path, required=True)
    parser.add_argument("--table", default="flights.flight")
    parser.add_argument("--days", nargs="*", default=[], help="merged days, as 2013-01-28")
    parser.add_argument("--timeline", type=Path, help="JSON list of the snapshots' counts")
    options = parser.parse_args(arguments)

    connection = open_raw(options.csv, options.days)
    actual = read_table(options.warehouse, options.table)
    problems = differences(connection, actual)
    if options.timeline:
        timeline = json.loads(options.timeline.read_text())
        problems += count_differences(expected_counts(connection, options.days), timeline)
    for problem in problems:
        print(problem)
    if not problems:
        print(f"{actual.num_rows:,} rows of {options.table} equal duckdb's, value by value.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
