"""Marked rows as words of 64 bits."""

from __future__ import annotations

import numpy as np
import pytest

from spark_jobs.datafiles.marked_rows import marked_words, most_words

# Around the bounds of words, and the last row that a number of 32 bits has.
POSITIONS = [0, 5, 63, 64, 127, 128, 1_000_000, 2**32 - 1]


def test_each_marked_row_is_a_bit_in_the_word_of_its_file() -> None:
    batch = marked_words(3, np.array(POSITIONS, np.int64))

    found = [
        ((key & (2**26 - 1)) << 6) + bit
        for key, word in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        for bit in range(64)
        if word >> bit & 1
    ]
    assert found == POSITIONS
    assert {key >> 26 for key in batch["word_key"].to_pylist()} == {3}


def test_words_without_a_marked_row_are_left_out() -> None:
    assert marked_words(0, np.array([1, 2, 900], np.int64)).num_rows == 2


def test_no_marked_row_is_no_word() -> None:
    assert marked_words(0, np.array([], np.int64)).num_rows == 0


@pytest.mark.parametrize(
    ("marked", "row_count", "words"), [(2, 1_000_000, 2), (900, 1_000, 16), (64, 64, 2)]
)
def test_a_file_has_at_most_a_word_for_each_marked_row_and_for_64_rows(
    marked: int, row_count: int, words: int
) -> None:
    assert most_words(marked, row_count) == words
