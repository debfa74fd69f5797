"""Files and their parts in tasks: packed by size, or in their order."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

Part = TypeVar("Part")


def packed(file_sizes: Mapping[int, int], tasks: int) -> dict[int, int]:
    """A task (from 0) for each file, such that all tasks have about as many bytes.

    The largest goes first, into the emptiest task (Graham's LPT rule).
    """
    fullness = [(0, 0, task) for task in range(tasks)]
    placed = {}
    for ordinal, size in sorted(file_sizes.items(), key=lambda each: (-each[1], each[0])):
        filled, files, task = fullness[0]
        heapq.heapreplace(fullness, (filled + size, files + 1, task))
        placed[ordinal] = task
    return placed


def scan_tasks(file_sizes: Mapping[int, int], tasks: int) -> list[list[int]]:
    """The files of each of at most so many tasks, as ``packed`` places them; none is empty."""
    files_of: list[list[int]] = [[] for _ in range(min(tasks, len(file_sizes)))]
    placed = packed(file_sizes, len(files_of))
    for ordinal in file_sizes:
        files_of[placed[ordinal]].append(ordinal)
    return files_of


def in_order(parts: Sequence[Part], tasks: int) -> tuple[tuple[Part, ...], ...]:
    """``parts`` in their order, cut into at most so many tasks of about as many parts each."""
    count = min(tasks, len(parts))
    ends = [len(parts) * number // count for number in range(count + 1)] if count else [0]
    return tuple(tuple(parts[start:end]) for start, end in pairwise(ends))
