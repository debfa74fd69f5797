"""Parameters of sensors that are wrong when the DAG is parsed, or when the task starts."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_merge.sensors.base import TableSensor
from airflow_provider_merge.sensors.compaction import CompactionSensor
from airflow_provider_merge.sensors.freshness import FreshnessSensor
from airflow_provider_merge.sensors.partition import PartitionSensor
from airflow_provider_merge.sensors.snapshot import SnapshotSensor
from airflow_provider_merge.sensors.tag import TagSensor
from spark_jobs.errors import RequestError

WRONG = {
    "table": (SnapshotSensor, {"table": "orders", "after_id": 1}, "not a table name"),
    "nothing to be after": (SnapshotSensor, {}, "exactly one"),
    "two": (SnapshotSensor, {"after_id": 1, "after_last": True}, "exactly one"),
    "no partition": (PartitionSensor, {"partition": {}}, "partition: is empty"),
    "age as text": (
        FreshnessSensor,
        {"max_age": "2 days"},
        r"max_age: '2 days' .* a number of seconds.* Write timedelta\(days=2\) or 172800",
    ),
    "another age": (FreshnessSensor, {"max_age": "soon"}, r"Write timedelta\(days=2\) or 172800"),
    "no age": (FreshnessSensor, {"max_age": 0}, "max_age: 0 is not a duration above 0"),
    "interval as text": (
        SnapshotSensor,
        {"after_id": 1, "poke_interval": "90 s"},
        r"poke_interval: '90 s' .* Write timedelta\(seconds=90\) or 90\.",
    ),
    "timeout as text": (
        SnapshotSensor,
        {"after_id": 1, "timeout": "6 h"},
        r"timeout: '6 h' .* Write timedelta\(hours=6\) or 21600",
    ),
    "range": (
        PartitionSensor,
        {"partition": {"d": "x"}, "through": {"d": "z"}},
        "not a range of dates or whole numbers",
    ),
    "backwards": (
        PartitionSensor,
        {"partition": {"d": "2"}, "through": {"d": "1"}},
        "is before",
    ),
    "nothing to compact for": (
        CompactionSensor,
        {},
        "Give at least one of min_small_files, min_so",
    ),
    "one file": (CompactionSensor, {"min_small_files": 1}, "min_small_files: 1 is always there"),
    "half a run": (CompactionSensor, {"min_sorted_runs": 2.5}, "min_sorted_runs: 2.5 is not a pos"),
    "every share": (CompactionSensor, {"min_deleted_share": 0}, "min_deleted_share: 0 is not betw"),
    "a percentage": (CompactionSensor, {"min_deleted_share": 20}, "20 is not a number from 0 to 1"),
    "size without a unit": (
        CompactionSensor,
        {"min_small_files": 5, "target_file_size": "128"},
        "target_file_size: '128' has no unit: write 128 mb",
    ),
    "small above 1": (
        CompactionSensor,
        {"min_small_files": 5, "small_file_share": 1.5},
        r"small_file_share: 1\.5 is not a number from 0 to 1",
    ),
    "files of a partition that is text": (
        CompactionSensor,
        {"min_small_files": 5, "partition": "day=1"},
        "partition: expected a dict of partition column -> value, found str",
    ),
}


@pytest.mark.parametrize(("sensor", "parameters", "message"), WRONG.values(), ids=WRONG)
def test_wrong_parameters_are_refused_when_the_dag_is_parsed(
    sensor: type[TableSensor],
    parameters: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(RequestError, match=message):
        sensor(task_id="t", **{"table": "a.b", **parameters})


OF_A_WRONG_TYPE = {
    "no partition": (PartitionSensor, {"partition": None}, "partition: is None"),
    "range": (PartitionSensor, {"partition": {"d": 1}, "through": "2"}, "through: expected a dict"),
    "age": (
        FreshnessSensor,
        {"max_age": "{{ params.age }}"},
        "max_age: '{{ params.age }}' is not a duration above 0",
    ),
    "fresh partition": (FreshnessSensor, {"max_age": 1, "partition": "d"}, "partition: expected"),
    "files": (
        CompactionSensor,
        {"min_small_files": "{{ params.files }}"},
        "min_small_files: '{{ params.files }}' is not a positive whole number",
    ),
    "tag": (TagSensor, {"tag": 7}, "tag: expected text, found int"),
}


@pytest.mark.parametrize(
    ("sensor", "parameters", "message"), OF_A_WRONG_TYPE.values(), ids=OF_A_WRONG_TYPE
)
def test_what_another_task_returned_is_checked(
    sensor: type[TableSensor],
    parameters: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(RequestError, match=message):
        sensor(task_id="t", table="a.b", **parameters).gate({})
