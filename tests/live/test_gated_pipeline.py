"""The example ``gated_pipeline`` as it is, on the demo's flights: events, gates, reports.

The file that is ingested has January's flights of one airport; those of the other two, and all of
the next day, come later, from another writer. While the report's DAG is paused an event of that day
is sent, so that its only run is for both days. DuckDB says what the reports of whole days are.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from dags_examples.demo import find_places, unpack_data
from tests.live.server import Server
from tests.live.spark_python import ROOT, SparkPython
from tests.live.table import Table
from tests.support.waiting import wait_for

DAY, NEXT_DAY = "2013-01-28", "2013-01-29"
FLIGHTS = "lakehouse://paimon_default/gated/flights"

# Run in the Spark environment.
_LAND = """
import duckdb
duckdb.sql('''
    COPY (FROM read_csv({csv!r}, all_varchar = true) WHERE origin = 'EWR' AND month = '1')
    TO {part!r} (HEADER)
''')
"""
_OTHERS = """
import duckdb
rows = duckdb.sql('''
    SELECT carrier, flight, origin, dest, dep_delay, DATE '{day}' AS flight_date
    FROM read_csv({csv!r}, nullstr = 'NA')
    WHERE make_date(year, month, day) = DATE '{day}' AND origin <> '{ingested}'
''').to_arrow_table().to_pylist()
name = TableName.parse("gated.flights")
tables.append_with_pypaimon(connector.metadata.load_table(name), rows)
print(len(rows))
"""
_REPORT = """
import duckdb, json
name = TableName.parse("gated.daily_delays")
expected = duckdb.sql('''
    SELECT origin, count(*) AS flights, count(dep_delay) AS departed, avg(dep_delay) AS mean_delay,
           make_date(year, month, day) AS flight_date
    FROM read_csv({csv!r}, nullstr = 'NA') WHERE flight_date IN {days}
    GROUP BY origin, flight_date
''')
expected = [dict(zip(expected.columns, row)) for row in expected.fetchall()]
found = tables.read(connector, name)
ordered = lambda rows: sorted(rows, key=lambda row: (row["flight_date"], row["origin"]))
print(json.dumps([ordered(found), ordered(expected)], default=str))
"""


# Its gates are those of test_gates, its DAG runs with a fake submitter in tests/airflow.
@pytest.mark.extended
def test_a_report_waits_for_each_whole_day(
    server: Server, spark_python: SparkPython, tmp_path: Path
) -> None:
    flights = find_places(tmp_path)
    unpack_data(flights)
    part = tmp_path / "part.csv"
    table = Table(server, server.folder / "warehouse", spark_python, "gated")
    csv = str(flights.csv)
    table.python(_LAND.format(csv=csv, part=str(part)))
    client = server.client
    client.call("POST", "/variables", {"key": "flights_csv", "value": str(part)})
    shutil.copyfile(ROOT / "dags_examples" / "gated_pipeline.py", server.dags / "gated.py")
    server.start_dags("gated_ingest")
    for partitions in ([f"flight_date={NEXT_DAY}"], []):
        client.send_asset_event(FLIGHTS, {"partitions": partitions})
    client.pause("gated_report", paused=False)

    client.trigger("gated_ingest", "night", conf={"day": DAY})
    assert client.ended("gated_ingest", "night") == "success", table.story("gated_ingest")
    (run_id,) = wait_for("the report's run", lambda: client.runs("gated_report"))
    gate = ("gated_report", run_id, "each_day.day_is_whole")

    def states(task_id: str) -> list[str]:
        tasks = client.tasks("gated_report", run_id)
        found = {each["map_index"]: each["state"] for each in tasks if each["task_id"] == task_id}
        return [found[index] for index in sorted(found)]

    wait_for("the gates", lambda: states(gate[2]) == ["deferred", "deferred"])
    logs = [client.log(*gate, 1, index) for index in (0, 1)]
    assert re.search(rf"flight_date={DAY} has [0-9,]+ rows, expected at least 600", logs[0])
    assert f"partition flight_date={NEXT_DAY} does not exist, expected at least" in logs[1]
    report = table.warehouse / "gated.db" / "daily_delays"
    assert not (report / "snapshot").exists()

    table.python(_OTHERS.format(csv=csv, day=NEXT_DAY, ingested=""))

    wait_for("the report", lambda: states("each_day.report")[1:] == ["success"])
    assert states(gate[2]) == ["deferred", "success"], table.story("gated_report")
    others = int(table.python(_OTHERS.format(csv=csv, day=DAY, ingested="EWR")).splitlines()[-1])

    assert client.ended("gated_report", run_id) == "success", table.story("gated_report")
    assert client.runs("gated_report") == [run_id]
    (day,) = client.xcom(*gate, 0)["partitions"]
    (event,) = client.asset_extras("gated_ingest")
    assert (day["name"], event["partitions"]) == (f"flight_date={DAY}", [day["name"]])
    assert day["rows"] == event["inserted"] + others
    reports = table.python(_REPORT.format(csv=csv, days=(DAY, NEXT_DAY)))
    found, expected = json.loads(reports.splitlines()[-1])
    assert found == expected
    assert (
        sum(row["flights"] for row in expected if row["flight_date"] == DAY) == day["rows"] == 923
    )
    assert {row["flight_date"] for row in expected} == {DAY, NEXT_DAY}
