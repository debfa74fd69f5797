"""Assigning files and parts of files to tasks, by size or in order."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

Part = TypeVar("Part")


def packed(file_sizes: Mapping[int, int], tasks: int) -> dict[int, int]:
    """A task number (from 0) for each file, such that all tasks have about the same size in bytes.

    The largest file goes first, each into the task with the fewest bytes (Graham's LPT rule).
    """
    fullness = [(0, 0, task) for task in range(tasks)]
    placed = {}
    for ordinal, size in sorted(file_sizes.items(), key=lambda each: (-each[1], each[0])):
        filled, files, task = fullness[0]
        heapq.heapreplace(fullness, (filled + size, files + 1, task))
        placed[ordinal] = task
    return placed


def scan_tasks(file_sizes: Mapping[int, int], tasks: int) -> list[list[int]]:
    """The files of each task, as ``packed`` assigns them: at most ``tasks`` tasks, none empty."""
    files_of: list[list[int]] = [[] for _ in range(min(tasks, len(file_sizes)))]
    placed = packed(file_sizes, len(files_of))
    for ordinal in file_sizes:
        files_of[placed[ordinal]].append(ordinal)
    return files_of


def filled(parts: Iterable[Part], size_of: Callable[[Part], int], most: int) -> list[list[Part]]:
    """Neighbours in groups of up to ``most`` in size; a part that is larger is alone."""
    groups: list[list[Part]] = []
    room = -1
    for part in parts:
        size = size_of(part)
        if size > room:
            groups.append([])
            room = most
        groups[-1].append(part)
        room -= size
    return groups


def in_order(parts: Sequence[Part], tasks: int) -> tuple[tuple[Part, ...], ...]:
    """``parts`` in order, cut into at most ``tasks`` tasks with about the same number of parts."""
    count = min(tasks, len(parts))
    ends = [len(parts) * number // count for number in range(count + 1)] if count else [0]
    return tuple(tuple(parts[start:end]) for start, end in pairwise(ends))
