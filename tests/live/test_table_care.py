"""The examples ``table_care`` and ``compact_events`` as they are.

What the preview of ``table_care`` said goes, once somebody has approved it; then the table is
rolled back to its tag. ``compact_events`` compacts what is worth it. Their runs are those that
Airflow makes of their schedules.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.live.approval import Approval
from tests.live.server import Server
from tests.live.spark_python import ROOT, SparkPython
from tests.live.table import Table
from tests.support.waiting import wait_for

DAG = "table_care"
# Twelve snapshots of a month ago, each of which replaced all files; the example keeps ten.
_NIGHTS = """
import json, os
from pathlib import Path
assert name == tables.NAME
tables.create(connector, {"id": "BIGINT", "k": "STRING"})
for night in range(1, 13):
    tables.overwrite(connector, night)
for path in Path(warehouse, "shop.db", "orders", "snapshot").glob("snapshot-*"):
    document = json.loads(path.read_text())
    document["timeMillis"] -= 30 * 24 * 3600 * 1000
    path.write_text(json.dumps(document))
    os.utime(path, (document["timeMillis"] / 1000,) * 2)
"""
_LATER = """
for night in range(13, 16):
    tables.overwrite(connector, night)
"""
_ROWS = "print(tables.read(connector, name))"
_ROLLBACK = """
from datetime import datetime
from airflow.sdk import DAG
from airflow_provider_merge.operators.rollback import RollbackOperator

with DAG("rollback", schedule=None, start_date=datetime(2024, 1, 1)):
    RollbackOperator(task_id="back", target="shop.orders", tag={tag!r}, force=True)
"""
# A month ago, twelve appends to one day, of which two were to another day, too.
_EVENTS = """
import json, os
from pathlib import Path
tables.create(connector, {"id": "BIGINT", "day": "DATE"}, ["day"], name=name)
from datetime import date
for number in range(12):
    days = (1, 2) if number < 2 else (1,)
    rows = [{"id": number, "day": date(2026, 1, day)} for day in days]
    tables.append(connector, rows, f"append-{number}", name)
    connector.writes.release_guard(connector.metadata.load_table(name), f"append-{number}")
for path in Path(warehouse, "shop.db", "events", "snapshot").glob("snapshot-*"):
    document = json.loads(path.read_text())
    document["timeMillis"] -= 30 * 24 * 3600 * 1000
    path.write_text(json.dumps(document))
    os.utime(path, (document["timeMillis"] / 1000,) * 2)
"""
_IDS = "print(sorted((row['day'].day, row['id']) for row in tables.read(connector, name)))"


@pytest.mark.by_turns(2, 0)
def test_expiry_waits_for_approval_and_does_what_the_preview_said(
    server: Server, spark_python: SparkPython
) -> None:
    table = Table(server, server.folder / "warehouse", spark_python, "orders")
    table.python(_NIGHTS)
    before = files(table)
    client = server.client
    server.add_dag(DAG, (ROOT / "dags_examples" / f"{DAG}.py").read_text())
    (run_id,) = wait_for("the night's run", lambda: client.runs(DAG))
    approval = Approval(server, DAG, run_id)
    asked = approval.question()
    preview = client.xcom(DAG, run_id, "preview")

    assert (preview["snapshots"], preview["data_files"]) == (2, 2)
    assert asked["subject"] == "Expire snapshots of shop.orders?"
    assert "2 snapshots of shop.orders would expire, and with them\n2 data files" in asked["body"]
    assert f"{preview['bytes_removed']} bytes in all" in asked["body"]
    assert before - files(table) == set()

    # By now five snapshots are neither young nor among the latest ten.
    table.python(_LATER)
    approval.approve()

    assert client.ended(DAG, run_id) == "success", table.story(DAG)
    done = client.xcom(DAG, run_id, "expire")
    assert (preview["status"], done["status"]) == ("dry_run", "committed")
    assert (preview["snapshots_left"], done["snapshots_left"]) == (0, 3)
    what = set(preview) - {"operation_id", "status", "latest_snapshot_id", "snapshots_left"}
    assert {name: done[name] for name in what} == {name: preview[name] for name in what}
    gone = before - files(table)
    assert {name for name in gone if name.startswith("snapshot/")} == {
        "snapshot/snapshot-1",
        "snapshot/snapshot-2",
    }
    assert sum(name.endswith(".parquet") for name in gone) == preview["data_files"]
    assert table.snapshots() == list(range(3, 16))
    assert table.python(_ROWS).splitlines()[-1] == "[{'id': 15, 'k': 'x'}]"
    logs = [client.log(DAG, run_id, task, 1) for task in ("tag", "preview", "expire", "orphans")]
    assert "shop.orders: dry_run" in logs[1]
    assert "would remove: snapshots 2 | tags 0 |" in logs[1]
    assert "removed: snapshots 2 | tags 0 |" in logs[2]

    (tag,) = (path.name.removeprefix("tag-") for path in table.folder.glob("tag/tag-*"))
    server.add_dag("rollback", _ROLLBACK.format(tag=tag))
    client.trigger("rollback", "run")

    assert client.ended("rollback", "run") == "success", table.story("rollback")
    logs.append(client.log("rollback", "run", "back", 1))
    assert "removed: snapshots 3 | tags 0 |" in logs[-1]
    assert table.snapshots() == list(range(3, 13))
    assert table.python(_ROWS).splitlines()[-1] == "[{'id': 12, 'k': 'x'}]"
    assert not any("py4j" in log for log in logs), "no JVM is started"
    assert not list(server.folder.glob("tmp/merge-job-*")), "request files are removed"


@pytest.mark.by_turns(2, 1)
def test_what_is_worth_it_is_compacted(server: Server, spark_python: SparkPython) -> None:
    table = Table(server, server.folder / "warehouse", spark_python, "events")
    table.python(_EVENTS)
    rows = table.python(_IDS)
    client = server.client
    server.add_dag("compact_events", (ROOT / "dags_examples" / "compact_events.py").read_text())
    (run_id,) = wait_for("the night's run", lambda: client.runs("compact_events"))

    assert client.ended("compact_events", run_id) == "success", table.story("compact_events")
    found = client.xcom("compact_events", run_id, "worth_compacting")
    assert found == [{"day": "2026-01-01"}]
    done = client.xcom("compact_events", run_id, "compact")
    assert (done["status"], done["files_before"], done["files_after"]) == ("committed", 12, 1)
    assert client.xcom("compact_events", run_id, "expire")["snapshots"] == 3
    assert table.snapshots() == list(range(4, 14))
    assert table.python(_IDS) == rows

    client.trigger("compact_events", "again")

    assert client.ended("compact_events", "again") == "success", table.story("compact_events")
    states = {each["task_id"]: each["state"] for each in client.tasks("compact_events", "again")}
    assert states == {"worth_compacting": "success", "compact": "skipped", "expire": "success"}


def files(table: Table) -> set[Any]:
    found = (path for path in table.folder.rglob("*") if path.is_file())
    return {str(path.relative_to(table.folder)) for path in found}
