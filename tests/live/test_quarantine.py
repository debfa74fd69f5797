"""Bad records are set aside once and good ones merged once, whatever dies and is asked again.

One piece of work is applied once; clearing it, or a new run under its id, asks for it again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.operators.sources import file_source
from tests.live.orders import BEFORE, ONCE, SLOWLY, THRICE, TWICE, Orders
from tests.live.sabotage import kill_job, pause_after_commit, pause_when
from tests.support.waiting import wait_for

FILES = {"a.csv": "id,n\n2,20\nx,1\n3,30\n", "b.csv": "id,n\n4,99999999999999999999\ny,7\n"}
# File, line, column, and the record's text.
BAD = [
    ("a.csv", 3, "id", "x,1"),
    ("b.csv", 2, "n", "4,99999999999999999999"),
    ("b.csv", 3, "id", "y,7"),
]
RUN = "manual:1"


@pytest.mark.by_turns(2, 0)
def test_killed_at_each_step_retried_and_cleared(
    orders: Callable[..., Orders], tmp_path: Path
) -> None:
    landing, quarantine = tmp_path / "landing", tmp_path / "quarantine"
    landing.mkdir()
    for name, text in FILES.items():
        (landing / name).write_text(text)
    landed = file_source(
        str(landing),
        "csv",
        options={"header": True},
        schema="id BIGINT, n BIGINT",
        on_bad_rows="quarantine",
        quarantine=str(quarantine),
    )
    query = "SELECT id, n FROM landed"
    dag: dict[str, Any] = {"retries": 2, "source": query, "sources": {"landed": landed}}
    table = orders(**dag, value=SLOWLY)
    file = quarantine / table.dag_id / "manual%3A1" / "merge" / "landed.jsonl"
    table.trigger(RUN)

    # While the files are read: nothing is told yet.
    operation_id = pause_when(table, "landing", lambda each: bool(scratch_of(table, each)))
    assert not file.exists(), "the driver was stopped too late for this test"
    kill_job(table, operation_id)

    # Between quarantine and commit: all bad records are there, no good one is in the table.
    assert pause_when(table, "the quarantine", lambda _: file.exists()) == operation_id
    kill_job(table, operation_id)
    assert bad_records(file) == BAD
    assert (table.snapshots(), table.rows()) == ([1], BEFORE)

    # After the commit: the worker learns from the table that the work is done. The pause would hold
    # a try that has not yet looked for earlier results.
    known = scratch_of(table, operation_id)
    wait_for("the third try", lambda: scratch_of(table, operation_id) - known)
    assert pause_after_commit(table) == operation_id
    kill_job(table, operation_id)
    assert table.ended(RUN) == "success"
    assert table.task(RUN)["try_number"] == 3
    assert_done(table, file, operation_id)
    assert table.xcom(RUN)["snapshot_id"] == 2
    assert table.xcom(RUN)["operation_id"] == operation_id
    assert table.xcom(RUN)["metrics"]["updated"] == 1
    assert table.event_snapshots() == [2]
    assert "committed snapshot 2" in table.log(RUN, 3)
    assert table.rows() == ONCE
    assert not list(table.folder.glob("consumer/*")), "no guard is left"
    assert not scratch_of(table, operation_id), "no temporary files are left"

    # Clearing the task is asking for the work again.
    table.write_dag(**dag)
    table.server.client.clear(table.dag_id, RUN, "merge")
    assert table.ended(RUN) == "success"
    again = table.xcom(RUN)["operation_id"]
    assert again != operation_id
    assert_done(table, file, again)
    assert table.xcom(RUN)["snapshot_id"] == 3
    assert table.rows() == TWICE

    # So is a new run under the id of a deleted one.
    table.server.client.delete_run(table.dag_id, RUN)
    table.trigger(RUN)
    assert table.ended(RUN) == "success"
    anew = table.xcom(RUN)["operation_id"]
    assert_done(table, file, anew)
    assert table.xcom(RUN)["snapshot_id"] == 4
    assert table.event_snapshots()[-2:] == [3, 4]
    assert table.rows() == THRICE
    assert table.snapshots() == [1, 2, 3, 4]
    assert table.operation_ids() == [operation_id, again, anew]
    assert len({operation_id, again, anew}) == 3


def scratch_of(table: Orders, operation_id: str) -> set[Any]:
    """The folders of an operation's temporary files."""
    return {each for each in table.operations.glob(f"{operation_id}-*") if each.is_dir()}


def assert_done(table: Orders, file: Path, operation_id: str) -> None:
    """The quarantine holds what this operation found, alone, and the result says so."""
    assert bad_records(file) == BAD
    assert {each["operation_id"] for each in lines_of(file)} == {operation_id}
    left = [path for path in file.parents[3].rglob("*") if path.is_file()]
    assert left == [file], "each bad record is in one file, and no half-written one is left"
    told = table.xcom(RUN)["metrics"]["sources"]["landed"]
    assert (told["files"], told["records"], told["quarantined"]) == (2, 5, 3)
    assert told["quarantine"] == str(file)
    extra = table.server.client.asset_extras(table.dag_id)[-1]
    assert extra["sources"] == {"landed": told}


def bad_records(file: Path) -> list[Any]:
    """File, line, column and text of each quarantined record."""
    found = [
        (Path(each["file"]).name, each["line"], each["column"], each["raw"])
        for each in lines_of(file)
    ]
    return sorted(found)


def lines_of(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
