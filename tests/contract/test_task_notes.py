"""Notes of a task run's operations: one file for each, and nothing but operations in it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.contract.operation_files import note_file, note_text, noted_operations
from spark_jobs.contract.request import Origin

ORIGIN = Origin("dag", "run", "task", 3, try_number=1, retries=2)


@given(st.lists(st.text(), max_size=50))
def test_operations_come_back(operation_ids: list[str]) -> None:
    assert noted_operations(note_text(operation_ids)) == operation_ids


def test_the_oldest_of_many_are_forgotten() -> None:
    found = noted_operations(note_text([str(number) for number in range(60)]))
    assert found == [str(number) for number in range(10, 60)]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"operations": "op"}', '{"operations": [1]}'])
def test_what_is_no_note(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of the JSON parser or of this
        noted_operations(text)


def test_tries_of_a_task_run_share_a_note() -> None:
    assert note_file(replace(ORIGIN, try_number=2, retries=5)) == note_file(ORIGIN)


@pytest.mark.parametrize(
    "change", [{"dag_id": "d"}, {"run_id": "r"}, {"task_id": "t"}, {"map_index": -1}]
)
def test_another_task_run_has_another_note(change: dict[str, object]) -> None:
    assert note_file(replace(ORIGIN, **change)) != note_file(ORIGIN)  # type: ignore[arg-type]


def test_who_is_no_task_has_none() -> None:
    assert note_file(Origin()) is None
