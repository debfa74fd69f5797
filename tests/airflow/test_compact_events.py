"""The example ``compact_events``: which partitions are compacted, and that expiry always runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dags_examples import compact_events
from tests.support.paimon_metadata import TableFiles


@pytest.fixture
def events(warehouse: Path) -> TableFiles:
    """Files have 100 bytes each."""
    return TableFiles(warehouse, "events").create()


def worth_compacting() -> Any:
    return compact_events.dag.task_dict["worth_compacting"].python_callable()


def test_partitions_with_many_small_files(events: TableFiles) -> None:
    for count in range(5):
        events.add({"2026-01-30": 1, "2026-01-31": 1} if count < 4 else {"2026-01-31": 1})
    assert worth_compacting() == [{"day": "2026-01-31"}]


def test_partitions_with_many_sorted_runs(events: TableFiles) -> None:
    schema = events.folder / "schema" / "schema-0"
    keyed = {**json.loads(schema.read_text()), "primaryKeys": ["day", "id"]}
    schema.write_text(json.dumps({**keyed, "options": {"target-file-size": "1 b"}}))
    for _ in range(5):
        events.add({"2026-01-31": 1})
    assert worth_compacting() == [{"day": "2026-01-31"}]


def test_nothing_is_worth_it(events: TableFiles) -> None:
    assert worth_compacting() == []
    events.add()
    assert worth_compacting() == []


def test_expiry_runs_whether_or_not_anything_is_compacted() -> None:
    order = [task.task_id for task in compact_events.dag.topological_sort()]
    assert order == ["worth_compacting", "compact", "expire"]
    tasks = compact_events.dag.task_dict
    assert tasks["expire"].trigger_rule == "none_failed"
    assert not tasks["worth_compacting"].ignore_downstream_trigger_rules
