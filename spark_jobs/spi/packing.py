"""Files packed into tasks by size, the largest first into the emptiest task (Graham's LPT rule)."""

from __future__ import annotations

import heapq
from collections.abc import Mapping


def packed(file_sizes: Mapping[int, int], tasks: int) -> dict[int, int]:
    """A task (from 0) for each file, such that all tasks have about as many bytes."""
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
