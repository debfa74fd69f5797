"""Which files of a bucket become one file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.connectors.shared.compaction.bins import (
    BucketFile,
    FileSizes,
    ordered_bins,
    settled_bins,
)

MINOR = FileSizes(mode="minor", target_file_size=100, min_files=5, small_file_share=0.7)
FULL = replace(MINOR, mode="full")
BOTH = pytest.mark.parametrize("options", [MINOR, FULL], ids=["minor", "full"])


def file(number: int, size: int, *, flawed: bool = False, run: str | None = None) -> BucketFile:
    """A file that is older than those with higher numbers."""
    return BucketFile(
        index=number,
        order=(run is None, number),
        created=(number, 0),
        live_rows=size,
        live_size=size,
        is_small=MINOR.is_small(size),
        is_flawed=flawed,
        run=run,
    )


def files(*sizes: int, **more: Any) -> list[BucketFile]:
    return [file(number, size, **more) for number, size in enumerate(sizes)]


def settled(given_files: Sequence[BucketFile], options: FileSizes) -> list[list[int]]:
    candidates = [each for each in given_files if each.is_candidate]
    return [[each.index for each in found] for found in settled_bins(candidates, options)]


def ordered(given_files: Sequence[BucketFile], options: FileSizes) -> list[list[int]]:
    numbered = [replace(each, order=(each.created[0],)) for each in given_files]
    return [[each.index for each in found] for found in ordered_bins(numbered, options)]


PLANS = pytest.mark.parametrize("plan", [settled, ordered])
Plan = Callable[[Sequence[BucketFile], FileSizes], list[list[int]]]


@BOTH
@PLANS
def test_small_files_become_one(plan: Plan, options: FileSizes) -> None:
    assert plan(files(10, 10, 10, 10, 10), options) == [[0, 1, 2, 3, 4]]


@PLANS
def test_few_small_files_are_not_worth_it(plan: Plan) -> None:
    assert plan(files(10, 10, 10, 10), MINOR) == []
    assert plan(files(10, 10, 10, 10), FULL) == [[0, 1, 2, 3]]
    assert plan(files(10, 10, 10, 10), replace(MINOR, min_files=4)) == [[0, 1, 2, 3]]


@PLANS
def test_few_files_that_fill_a_file_are_worth_it(plan: Plan) -> None:
    assert plan(files(45, 45, 45), MINOR) == [[0, 1]]


@BOTH
@PLANS
def test_a_single_good_file_is_left_alone(plan: Plan, options: FileSizes) -> None:
    assert plan(files(10), options) == []
    assert plan(files(10), replace(options, min_files=1)) == []
    assert plan(files(60, 60, 60, 60), options) == []
    assert plan(files(80, 70, 90), options) == []
    assert plan([], options) == []


@BOTH
@PLANS
def test_a_flawed_file_is_rewritten_whatever_its_size(plan: Plan, options: FileSizes) -> None:
    assert plan([file(0, 10, flawed=True)], options) == [[0]]
    assert plan([file(0, 95), file(1, 95, flawed=True)], options) == [[1]]
    assert plan([file(0, 10, flawed=True), file(1, 10)], options) == [[0, 1]]


@BOTH
def test_files_without_rows_need_no_company(options: FileSizes) -> None:
    gone = [file(0, 0, flawed=True), file(2, 0, flawed=True)]

    assert settled([gone[0], file(1, 40), gone[1]], options) == [[0, 2]]


def test_large_files_do_not_part_small_ones_where_there_is_no_order() -> None:
    given_files = files(10, 90, 10, 10, 90, 10, 10)

    assert settled(given_files, MINOR) == [[0, 2, 3, 5, 6]]
    assert ordered(given_files, MINOR) == [[2, 3]]
    assert ordered(given_files, FULL) == [[2, 3], [5, 6]]


def test_only_neighbours_meet_in_a_fixed_bucket() -> None:
    # What lies between large files cannot grow any more, but the last files can.
    assert ordered(files(10, 10, 90, 10, 10), MINOR) == [[0, 1]]
    shuffled = [file(3, 10), file(0, 10), file(2, 90), file(1, 10)]
    assert ordered(shuffled, MINOR) == [[0, 1]]


def test_files_are_filled_by_age() -> None:
    found = settled(files(*[20] * 12), MINOR)

    assert found == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert settled(files(*[20] * 12), FULL) == [*found, [10, 11]]


def test_late_files_do_not_fill_the_gaps_of_early_ones() -> None:
    assert settled(files(30, 30, 30, 30, 30, 30, 5), FULL) == [[0, 1, 2], [3, 4, 5, 6]]


@BOTH
@PLANS
def test_what_a_compaction_left_alone_stays_so(plan: Plan, options: FileSizes) -> None:
    of_run = [file(number, 10, run="a") for number in range(1, 4)]

    assert plan(of_run, options) == []
    assert plan([file(0, 10), *of_run], options) == []
    assert plan(files(*[10] * 5, run="a"), options) == [[0, 1, 2, 3, 4]]


@PLANS
def test_what_a_compaction_did_not_see_is_put_together(plan: Plan) -> None:
    assert len(plan([file(0, 10, run="a"), file(1, 10)], FULL)) == 1
    assert len(plan([file(0, 10), file(1, 10), file(2, 10, run="a")], FULL)) == 1


sizes = st.integers(0, 130)
any_files = st.lists(st.tuples(sizes, st.booleans() | st.just(False)), max_size=40)


@given(any_files, st.sampled_from([MINOR, FULL, replace(MINOR, min_files=2)]), st.booleans())
def test_a_plan_has_nothing_left_to_do(
    drawn: list[tuple[int, bool]], options: FileSizes, has_order: bool
) -> None:
    before = [file(n, size, flawed=flawed) for n, (size, flawed) in enumerate(drawn)]
    plan = ordered if has_order else settled

    bins = plan(before, options)

    require_sound(before, bins, options, has_order=has_order)
    assert plan(list(published(before, bins, has_order=has_order)), options) == []


def require_sound(
    before: list[BucketFile], bins: list[list[int]], options: FileSizes, *, has_order: bool
) -> None:
    used = [index for each in bins for index in each]
    assert len(used) == len(set(used))
    assert {each.index for each in before if each.is_flawed} <= set(used)
    for each in bins:
        inputs = [before[index] for index in each]
        assert len(each) == 1 or sum(f.live_size for f in inputs) <= options.target_file_size
        assert all(f.is_candidate for f in inputs)
        assert each == sorted(each)
        if has_order:
            assert each == list(range(each[0], each[-1] + 1))


def published(
    before: list[BucketFile], bins: list[list[int]], *, has_order: bool, shrunk_to: float = 1
) -> Iterator[BucketFile]:
    """The files afterwards."""
    gone = {index for each in bins for index in each}
    yield from (each for each in before if each.index not in gone)
    for number, inputs in enumerate(bins):
        size = math.ceil(sum(before[index].live_size for index in inputs) * shrunk_to)
        if size:
            new = file(inputs[0] if has_order else 1000 + number, size, run="r")
            yield replace(new, index=1000 + number)
