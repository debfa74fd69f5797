"""The example DAGs that overwrite partitions, as they are: a month, a day, a dry repair.

DuckDB says what the summaries of the same flights are. tests/live does the repair by the form.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

# tests/live runs these DAGs too: the repair by the form, the days by backfills.
pytestmark = [pytest.mark.slow, pytest.mark.extended]

EXAMPLE = Path(__file__).resolve().parents[2] / "dags_examples" / "daily_summary.py"

# Run in the Spark environment.
_LAND = """
import datetime as dt, json, sys
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from tests.support import paimon_tables as tables
connector = open_connector(CatalogSpec("paimon", sys.argv[1]), {})
name = TableName("flights", "flight")
columns = {"flight_date": "DATE", "origin": "STRING"}
columns |= dict.fromkeys(("dep_time", "dep_delay", "arr_delay"), "INT")
rows = [dict(zip(columns, row)) for row in json.loads(sys.argv[2])]
for row in rows:
    row["flight_date"] = dt.date.fromisoformat(row["flight_date"])
spec = CreateTableSpec(columns=tuple(ColumnSpec(*column) for column in columns.items()))
connector.metadata.create_table(name, spec)
tables.append_with_pypaimon(connector.metadata.load_table(name), rows)
"""
_SUMMARY = """
import json, sys
import duckdb
flights = sys.argv[1]
found = duckdb.sql(f'''
    SELECT strftime(flight_date, '%Y-%m') AS month, flight_date, origin,
           count(*) AS flights, count(*) FILTER (dep_time IS NOT NULL) AS departed,
           avg(dep_delay) AS mean_dep_delay, avg(arr_delay) AS mean_arr_delay
    FROM read_json('{flights}', columns = {{
        flight_date: 'DATE', origin: 'VARCHAR', dep_time: 'INT', dep_delay: 'INT', arr_delay: 'INT'
    }})
    GROUP BY ALL
''')
rows = [dict(zip(found.columns, row)) for row in found.fetchall()]
print(json.dumps(rows, default=str))
"""
JANUARY = [
    ("2013-01-05", "JFK", 517, 2, 11),
    ("2013-01-05", "JFK", 1004, 5, -3),
    ("2013-01-05", "JFK", None, None, None),
    ("2013-01-05", "LGA", 533, 4, 20),
    ("2013-01-31", "EWR", 542, 2, 33),
    ("2013-01-31", "LGA", None, None, None),
]
FEBRUARY = [("2013-02-01", "EWR", 554, -6, 12), ("2013-02-02", "EWR", 555, -5, 19)]
LATE = [("2013-01-05", "JFK", 2359, 90, 75), ("2013-01-05", "EWR", 600, 0, 1)]


def summaries(lake, flights):
    names = ("flight_date", "origin", "dep_time", "dep_delay", "arr_delay")
    path = lake.folder / "flights.json"
    path.write_text(json.dumps([dict(zip(names, row, strict=True)) for row in flights]))
    return in_order(json.loads(lake.python(_SUMMARY, str(path))))


def in_order(rows):
    return sorted(rows, key=lambda row: (row["flight_date"], row["origin"]))


def land(lake, flights):
    lake.python(_LAND, str(lake.warehouse), json.dumps(flights))


def run(lake, dag_id, date, **conf):
    done = lake.airflow("dags", "test", dag_id, date, "--conf", json.dumps(conf))
    assert done.returncode == 0, done.stdout[-8000:]
    return done.stdout


def listing(folder):
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in folder.rglob("*")
    }


def test_a_month_a_day_and_a_dry_repair(lake):
    shutil.copyfile(EXAMPLE, lake.folder / "dags" / EXAMPLE.name)
    land(lake, [*JANUARY, *FEBRUARY])

    run(lake, "daily_summary", "2013-01-01")
    run(lake, "daily_summary_day", "2013-02-01")

    table = lake.read("flights.daily_summary")
    assert in_order(table["rows"]) == summaries(lake, [*JANUARY, FEBRUARY[0]])
    assert table["snapshots"] == [1, 2]

    land(lake, LATE)
    before = listing(lake.warehouse)
    dry = run(lake, "daily_summary_repair", "2020-01-01", month="2013-01-05")
    assert listing(lake.warehouse) == before
    assert "flights.daily_summary: dry_run, snapshot none" in dry
    assert "inserted 5 | updated 0 | deleted 4" in dry
    assert "flight_date=2013-01-05 | month=2013-01/flight_date=2013-01-31" in dry
