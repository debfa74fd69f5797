"""Rows marked as deleted, as 64-bit words that can be joined with rows. Runs on executors.

A word covers 64 rows of a file: bit ``row & 63`` is set for each marked row. Its key is
``ordinal << 26 | row >> 6``, since a row number has 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import numpy as np
import pyarrow as pa

from spark_jobs.datafiles.file_changes import Positions

Marks = TypeVar("Marks")

WORD_BITS: Final = 6
WORDS_PER_FILE_BITS: Final = 32 - WORD_BITS


@dataclass(frozen=True, slots=True)
class MarkedWords(Generic[Marks]):
    """Implements ``PartReader``: the words of files, from their ordinals and marks. Picklable."""

    positions: Callable[[Marks], Positions]

    def read(self, parts: Sequence[tuple[int, Marks]]) -> Iterator[pa.RecordBatch]:
        """Read the marks of some files."""
        for ordinal, marks in parts:
            yield marked_words(ordinal, self.positions(marks))


def marked_words(ordinal: int, positions: Positions) -> pa.RecordBatch:
    """The words of a file's marked rows, ascending; words without set bits are left out.

    Columns: ``word_key`` (bigint), ``word`` (bigint).
    """
    keys, starts = np.unique(positions >> WORD_BITS, return_index=True)
    bits = np.left_shift(np.uint64(1), (positions & 63).astype(np.uint64))
    words = np.bitwise_or.reduceat(bits, starts) if len(starts) else bits
    return pa.RecordBatch.from_pydict(
        {
            "word_key": pa.array(keys + (ordinal << WORDS_PER_FILE_BITS), pa.int64()),
            "word": pa.array(words.view(np.int64)),
        }
    )


def most_words(marked_rows: int, row_count: int) -> int:
    """The most words that a file with ``marked_rows`` of ``row_count`` rows marked can have."""
    return min(marked_rows, (row_count >> WORD_BITS) + 1)
