"""On a cluster whose executors hold no table library, merges do what they do everywhere."""

from __future__ import annotations

import pytest

from tests.cluster.merging import ClusterMerges
from tests.cluster.standalone import EXECUTOR_PYTHON
from tests.conformance.behaviours import BEHAVIOURS

_BY_NAME = {each.name: each for each in BEHAVIOURS}


@pytest.mark.parametrize(
    ("name", "partitioned"),
    [
        ("all kinds of clauses together", True),
        # On executors each of these is part of the first.
        pytest.param(
            "update all takes columns by name and ignores others",
            False,
            marks=pytest.mark.extended,
        ),
        pytest.param(
            "delete of all rows that the source does not have", True, marks=pytest.mark.extended
        ),
    ],
)
def test_same_rows_files_and_counts(merges: ClusterMerges, name: str, partitioned: bool) -> None:
    merge = merges.start(_BY_NAME[name], partitioned=partitioned)

    merge.check()

    seen = merge.submission.seen()
    assert {each["python"] for each in seen} == {str(EXECUTOR_PYTHON)}
    assert {tuple(each["importable"]) for each in seen} == {()}
    assert all("spark_jobs.zip" in each["spark_jobs"] for each in seen)
    hosts = {task["Task Info"]["Executor ID"] for task in merge.submission.tasks}
    assert hosts == {"0", "1"}
