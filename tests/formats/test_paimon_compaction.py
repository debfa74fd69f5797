"""When files are worth compacting: what is asked for, the table's options, Paimon's defaults."""

from __future__ import annotations

import pytest

from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.paimon.compaction import CompactionThresholds, highest_level

MB = 2**20
OPTIONS = {
    "target-file-size": "64 mb",
    "compaction.min.file-num": "7",
    "compaction.small-file-ratio": "0.5",
    "compaction.delete-ratio-threshold": "0.1",
    "num-sorted-run.compaction-trigger": "9",
}


def thresholds(options, *, has_primary_key=False, **asked):
    return CompactionThresholds.of(CompactSpec(**asked), options, has_primary_key=has_primary_key)


def test_defaults_are_those_of_paimon():
    assert thresholds({}) == CompactionThresholds(256 * MB, 5, 0.7, 0.2, 5)
    assert thresholds({}, has_primary_key=True).target_file_size == 128 * MB


def test_options_go_before_defaults():
    assert thresholds(OPTIONS) == CompactionThresholds(64 * MB, 7, 0.5, 0.1, 9)
    assert thresholds({"target-file-size": "1024"}).target_file_size == 1024


def test_what_is_asked_for_goes_before_options():
    asked = {
        "target_file_size": "1 mb",
        "min_files": 2,
        "small_file_share": 0.0,
        "deleted_share": 0.0,
        "sorted_runs": 3,
    }
    invalid = dict.fromkeys(OPTIONS, "x")
    assert thresholds(invalid, **asked) == CompactionThresholds(MB, 2, 0.0, 0.0, 3)


def test_the_highest_level():
    assert highest_level({}) == 5
    assert highest_level(OPTIONS) == 9
    assert highest_level({**OPTIONS, "num-levels": "3"}) == 2


def test_a_file_is_small_below_the_share():
    small = thresholds({"target-file-size": "100 b"}, small_file_share=0.5).is_small
    assert (small(49), small(50)) == (True, False)
    assert not thresholds({}, small_file_share=0.0).is_small(0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((name, "x") for name in OPTIONS),
        ("target-file-size", "0 mb"),
        ("compaction.min.file-num", "-1"),
        ("compaction.min.file-num", "9" * 5000),
        ("compaction.small-file-ratio", "nan"),
        ("compaction.delete-ratio-threshold", "-0.1"),
    ],
)
def test_invalid_options_are_named(name, text):
    with pytest.raises(NotSupportedError, match=f"Option {name}"):
        thresholds({**OPTIONS, name: text})
