"""Sends several requests to a storage at a time. Runs on executors, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

PARALLEL: Final = 16

S = TypeVar("S")
T = TypeVar("T")


def in_parallel(function: Callable[[S], T], values: Sequence[S]) -> list[T]:
    """The function's results in the order of the values; the first failure is raised."""
    if len(values) < 2:
        return [function(value) for value in values]
    with ThreadPoolExecutor(PARALLEL) as pool:
        return list(pool.map(function, values))
