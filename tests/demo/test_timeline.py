"""The timeline is read from the table's snapshot files and the jobs' results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dags_examples.timeline import read_timeline, render_timeline


def _snapshot(warehouse: Path, number: int, **fields: Any) -> None:
    folder = warehouse / "flights.db" / "flight" / "snapshot"
    folder.mkdir(parents=True, exist_ok=True)
    document = {"id": number, "timeMillis": 1_357_000_000_000 + number, "commitKind": "APPEND"}
    (folder / f"snapshot-{number}").write_text(json.dumps(document | fields))
    (folder / "LATEST").write_text(str(number))


def _result(warehouse: Path, number: int, **fields: Any) -> None:
    folder = warehouse / "_operations"
    folder.mkdir(exist_ok=True)
    metrics = {"inserted": 1, "updated": 2, "deleted": 0, "files_rewritten": 1, "files_total": 31}
    document = {
        "target": "flights.flight",
        "status": "committed",
        "new_snapshot_id": number,
        "metrics": metrics,
    }
    (folder / f"operation-{len(list(folder.iterdir()))}.json").write_text(
        json.dumps(document | fields)
    )


def test_snapshots_come_in_numeric_order_with_their_counts(tmp_path: Path) -> None:
    for number in (9, 10):
        _snapshot(tmp_path, number, properties={"merge.task_id": f"task_{number}"})
        _result(tmp_path, number)

    timeline = read_timeline(tmp_path, "flights.flight")

    assert [entry["id"] for entry in timeline] == [9, 10]
    assert [entry["operation"] for entry in timeline] == ["task_9", "task_10"]
    assert timeline[0]["time"] == "2013-01-01T00:26:40+00:00"
    assert timeline[1]["updated"] == 2


def test_results_of_other_tables_and_of_failures_are_left_out(tmp_path: Path) -> None:
    _snapshot(tmp_path, 1)
    _result(tmp_path, 1, target="flights.other")
    _result(tmp_path, 1, status="failed")

    [entry] = read_timeline(tmp_path, "flights.flight")

    assert entry["operation"] == "APPEND"
    assert entry["inserted"] is None
    assert "? of ?" in render_timeline([entry])


def test_a_table_without_snapshots_has_an_empty_timeline(tmp_path: Path) -> None:
    assert read_timeline(tmp_path, "flights.flight") == []


def test_the_rendered_table_is_aligned(tmp_path: Path) -> None:
    _snapshot(tmp_path, 1, properties={"merge.task_id": "load"})
    _result(tmp_path, 1)

    header, row = render_timeline(read_timeline(tmp_path, "flights.flight")).splitlines()

    assert len(header) == len(row)
    assert row.split() == ["1", "2013-01-01", "00:26:40", "load", "1", "2", "0", "1", "of", "31"]
