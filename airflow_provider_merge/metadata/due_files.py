"""Which files of a bucket, or of a partition without buckets, a compaction would rewrite: about.

The job's own plan is exact; it knows which files earlier compactions made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile

from airflow_provider_merge.metadata.model import DueFiles


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A data file; ``live_size`` are the bytes of rows that are not marked, estimated.

    ``is_flawed``: so many rows are marked that it is rewritten in any case.
    """

    size: int
    live_size: int
    is_flawed: bool

    def is_candidate(self, is_small: Callable[[int], bool]) -> bool:
        """Whether it may be rewritten."""
        return self.is_flawed or is_small(self.size)

    @classmethod
    def of(cls, size: int, rows: int, marked: int | None, deleted_share: float) -> StoredFile:
        """A file of whose ``rows`` so many are marked; None: nobody has counted them."""
        gone = min(marked or 0, rows)
        live_size = math.ceil(size * (rows - gone) / rows) if rows else 0
        return cls(size, live_size, gone > 0 and gone >= deleted_share * rows)


def due_files(
    files: Iterable[StoredFile], is_small: Callable[[int], bool], target_size: int, min_files: int
) -> DueFiles:
    """The files that would be put together, or written anew without their marked rows."""
    stored = list(files)
    small = [each for each in stored if is_small(each.live_size if each.is_flawed else each.size)]
    flawed = [each for each in stored if each.is_flawed]
    is_worth_it = (
        any(each.is_flawed for each in small)
        or most_that_fit([each.size for each in small], target_size) >= max(min_files, 2)
        or sum(each.size for each in small) > target_size
    )
    joined = [each for each in small if not each.is_flawed] if is_worth_it else []
    return rewritten([*flawed, *joined], target_size)


def due_neighbours(
    files: Iterable[StoredFile], is_small: Callable[[int], bool], target_size: int, min_files: int
) -> DueFiles:
    """The same of files in an order, of which only neighbours are put together."""
    due, current, size = list[StoredFile](), list[StoredFile](), 0
    for file in files:
        is_candidate = file.is_flawed or is_small(file.size)
        if not is_candidate or size + file.live_size > target_size:
            # Files that come later cannot join these.
            due += current if _are_worth_it(current, 2) else []
            current, size = [], 0
        if is_candidate:
            current.append(file)
            size += file.live_size
    due += current if _are_worth_it(current, max(min_files, 2)) else []
    return rewritten(due, target_size)


def bins_of(files: Iterable[StoredFile], most: int) -> Iterator[list[StoredFile]]:
    """The files in their order, in bins of up to so many bytes of rows that are not marked."""
    current, size = list[StoredFile](), 0
    for file in files:
        if current and size + file.live_size > most:
            yield current
            current, size = [], 0
        current.append(file)
        size += file.live_size
    if current:
        yield current


def _are_worth_it(files: Sequence[StoredFile], least: int) -> bool:
    return len(files) >= least or any(each.is_flawed for each in files)


def rewritten(files: Sequence[StoredFile], target_size: int) -> DueFiles:
    """What all of these files come to when they are rewritten into files of the target size."""
    left = sum(each.live_size for each in files)
    return DueFiles(
        files=len(files),
        size=sum(each.size for each in files),
        files_after=math.ceil(left / target_size),
        size_after=left,
    )


def most_that_fit(sizes: Iterable[int], target_size: int) -> int:
    """The most files of these sizes that fit into one."""
    fit = takewhile(lambda size: size <= target_size, accumulate(sorted(sizes)))
    return sum(1 for _ in fit)
