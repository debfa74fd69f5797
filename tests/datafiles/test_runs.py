"""Neighbouring rows with equal keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_jobs.datafiles.runs import codes_of, runs_of_equal


def test_a_run_ends_where_any_key_changes() -> None:
    first, second = np.array([1, 1, 1, 2, 2]), np.array([7, 7, 8, 8, 8])

    assert list(runs_of_equal(5, [first, second])) == [(0, 2), (2, 3), (3, 5)]


def test_equal_keys_that_are_apart_are_two_runs() -> None:
    assert list(runs_of_equal(3, [np.array([1, 2, 1])])) == [(0, 1), (1, 2), (2, 3)]


def test_rows_without_keys_are_one_run() -> None:
    assert list(runs_of_equal(3, [])) == [(0, 3)]


def test_no_rows_are_no_run() -> None:
    assert list(runs_of_equal(0, [np.array([], np.int32)])) == []


def test_null_equals_null_and_no_value() -> None:
    codes = codes_of(pa.chunked_array([["a", None], [None, "a"]]))

    assert codes[1] == codes[2]
    assert codes[0] == codes[3]
    assert codes[0] != codes[1]


def test_a_column_of_many_chunks_has_one_set_of_codes() -> None:
    codes = codes_of(pa.chunked_array([["a", "b"], ["b", "a"]]))

    assert list(runs_of_equal(4, [codes])) == [(0, 1), (1, 3), (3, 4)]
