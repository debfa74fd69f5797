"""Bad records are set aside once, and the good ones are stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contract.request import Origin
from tests.conformance.harness import Harness
from tests.engine.landed import Landing, new_landing

HEADER = {"header": "true"}
SCHEMA = "id BIGINT, n INT"
CSV = "id,n\n1,2\n2,x\n3,4,5\n4,5\n"
ORIGIN = Origin("daily orders", "manual__2026-01-01T00:00:00+00:00", "merge")
FILE = "daily%20orders/manual__2026-01-01T00%3A00%3A00%2B00%3A00/merge/s.jsonl"


@pytest.fixture
def landing(make_table: Callable[..., Harness], tmp_path: Path) -> Landing:
    return new_landing(make_table, tmp_path)


@pytest.fixture
def aside(tmp_path: Path) -> Path:
    return tmp_path / "quarantine [1]"


def insert(landing: Landing, content: str, aside: Path, **more: Any) -> Any:
    path = landing.file("a.csv", content)
    more = {"on_bad_rows": "quarantine", "quarantine": str(aside), "origin": ORIGIN, **more}
    return landing.insert(path, "csv", HEADER, SCHEMA, **more)


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_bad_records_are_set_aside_with_place_reason_and_text(
    landing: Landing, aside: Path
) -> None:
    result = insert(landing, CSV, aside)

    assert result.error is None, result.error
    assert landing.rows("id", "n") == [(1, 2), (4, 5)]
    metrics = result.metrics.sources["s"]
    assert (metrics.records, metrics.quarantined) == (4, 2)
    assert metrics.quarantine == f"{aside}/{FILE}"
    first, second = records(aside / FILE)
    assert first == {
        "file": f"{landing.folder}/a.csv",
        "line": 3,
        "record": 2,
        "column": "n",
        "value": "x",
        "expected": "INT",
        "reason": "is not a valid INT",
        "raw": "2,x",
        "operation_id": "operation-1",
    }
    assert (second["line"], second["column"], second["raw"]) == (4, None, "3,4,5")
    assert second["reason"] == "has 3 fields where the header has 2"


def test_another_run_of_the_task_replaces_what_was_set_aside(landing: Landing, aside: Path) -> None:
    insert(landing, CSV, aside)

    result = insert(landing, "id,n\n7,x\n", aside, operation_id="operation-2")

    assert result.error is None, result.error
    assert [each["raw"] for each in records(aside / FILE)] == ["7,x"]


def test_a_run_without_bad_records_leaves_no_file(landing: Landing, aside: Path) -> None:
    insert(landing, CSV, aside)

    result = insert(landing, "id,n\n7,8\n", aside, operation_id="operation-2")

    assert result.error is None, result.error
    assert not (aside / FILE).exists()
    assert result.metrics.sources["s"].quarantine is None


def test_the_same_operation_again_changes_nothing(landing: Landing, aside: Path) -> None:
    first = insert(landing, CSV, aside)
    before = (aside / FILE).stat()
    origin = Origin(ORIGIN.dag_id, ORIGIN.run_id, ORIGIN.task_id, try_number=2)

    again = insert(landing, CSV, aside, origin=origin)

    assert again == first
    assert (aside / FILE).stat() == before
    assert landing.rows("id") == [(1,), (4,)]


def test_what_a_killed_try_left_half_written_goes(landing: Landing, aside: Path) -> None:
    left = aside / FILE.replace("s.jsonl", f".s.jsonl.{'0' * 32}.tmp")
    left.parent.mkdir(parents=True)
    left.write_text('{"raw": "2,')

    result = insert(landing, CSV, aside)

    assert result.error is None, result.error
    assert [path for path in aside.rglob("*") if path.is_file()] == [aside / FILE]


def test_a_dry_run_counts_and_sets_nothing_aside(landing: Landing, aside: Path) -> None:
    result = insert(landing, CSV, aside, dry_run=True)

    assert result.error is None, result.error
    assert (result.status, result.metrics.sources["s"].quarantined) == ("dry_run", 2)
    assert not aside.exists()
    assert landing.rows("id") == []


@pytest.mark.parametrize(
    ("limit", "says"),
    [(1.0, "max_bad_rows allows 1"), (0.4, "max_bad_rows allows 40.00% of them")],
)
def test_too_many_bad_records_end_the_statement(
    landing: Landing, aside: Path, limit: float, says: str
) -> None:
    result = insert(landing, CSV, aside, max_bad_rows=limit)

    assert result.error is not None
    assert result.error.code == "TOO_MANY_BAD_ROWS"
    assert "2 of 4 records" in result.error.message
    assert says in result.error.message
    assert f"{aside}/{FILE}" in result.error.remedy
    assert landing.rows("id") == []
    assert len(records(aside / FILE)) == 2


@pytest.mark.parametrize("limit", [2.0, 0.5])
def test_as_many_bad_records_as_allowed(landing: Landing, aside: Path, limit: float) -> None:
    result = insert(landing, CSV, aside, max_bad_rows=limit)

    assert result.error is None, result.error


def test_names_that_mean_other_folders_stay_below_the_quarantine(
    landing: Landing, aside: Path
) -> None:
    result = insert(landing, CSV, aside, origin=Origin("..", "../../x", "a" * 250, map_index=3))

    assert result.error is None, result.error
    (file,) = aside.rglob("*.jsonl")
    assert result.metrics.sources["s"].quarantine == str(file)
    assert file.relative_to(aside).parts[:2] == ("%2E%2E", "..%2F..%2Fx")
    assert file.parent.name.endswith("~3")


def test_a_quarantine_that_can_not_be_written_ends_the_statement(
    landing: Landing, aside: Path
) -> None:
    aside.write_text("a file")

    result = insert(landing, CSV, aside)

    assert result.error is not None
    assert result.error.code == "STORAGE_UNAVAILABLE"
    assert f"the quarantine {aside}/{FILE} cannot be written" in result.error.message
    assert landing.rows("id") == []
