"""The timeline is read from the table's snapshot files alone."""

from __future__ import annotations

import json
from pathlib import Path

from dags_examples.timeline import read_timeline, render_timeline

METRICS = {"inserted": 1, "updated": 2, "deleted": 0, "files_rewritten": 1, "files_total": 31}


def _snapshot(warehouse: Path, number: int, **properties: str) -> None:
    folder = warehouse / "flights.db" / "flight" / "snapshot"
    folder.mkdir(parents=True, exist_ok=True)
    document = {"id": number, "timeMillis": 1_357_000_000_000 + number, "commitKind": "APPEND"}
    if properties:
        document["properties"] = {f"merge.{key}": value for key, value in properties.items()}
    (folder / f"snapshot-{number}").write_text(json.dumps(document))
    (folder / "LATEST").write_text(str(number))


def _merged(warehouse: Path, number: int, task: str) -> None:
    _snapshot(warehouse, number, **{"task-id": task, "metrics": json.dumps(METRICS)})


def test_snapshots_come_in_numeric_order_with_their_counts(tmp_path: Path) -> None:
    for number in (9, 10):
        _merged(tmp_path, number, f"task_{number}")

    timeline = read_timeline(tmp_path, "flights.flight")

    assert [entry["id"] for entry in timeline] == [9, 10]
    assert [entry["operation"] for entry in timeline] == ["task_9", "task_10"]
    assert timeline[0]["time"] == "2013-01-01T00:26:40+00:00"
    assert timeline[1]["updated"] == 2


def test_a_statement_of_several_is_named(tmp_path: Path) -> None:
    _snapshot(tmp_path, 1, **{"task-id": "nightly", "statement-name": "orders"})

    [entry] = read_timeline(tmp_path, "flights.flight")

    assert entry["operation"] == "nightly orders"


def test_a_snapshot_of_another_writer_has_no_counts(tmp_path: Path) -> None:
    _snapshot(tmp_path, 1)

    [entry] = read_timeline(tmp_path, "flights.flight")

    assert entry["operation"] == "APPEND"
    assert entry["inserted"] is None
    assert "? of ?" in render_timeline([entry])


def test_a_table_without_snapshots_has_an_empty_timeline(tmp_path: Path) -> None:
    assert read_timeline(tmp_path, "flights.flight") == []


def test_the_rendered_table_is_aligned(tmp_path: Path) -> None:
    _merged(tmp_path, 1, "load")

    header, row = render_timeline(read_timeline(tmp_path, "flights.flight")).splitlines()

    assert len(header) == len(row)
    assert row.split() == ["1", "2013-01-01", "00:26:40", "load", "1", "2", "0", "1", "of", "31"]
