"""Which files of a bucket, or of a partition without buckets, become one file. Driver only."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_jobs.contract.compaction import SORTED_BYTES, CompactMode


@dataclass(frozen=True, slots=True)
class FileSizes:
    """Which files a compaction puts together.

    ``target_file_size`` is in bytes, ``small_file_share`` from 0 to 1, as in ``CompactSpec``.
    """

    mode: CompactMode
    target_file_size: int
    min_files: int
    small_file_share: float

    @property
    def is_full(self) -> bool:
        """Whether all is rewritten that is not yet as a compaction leaves it."""
        return self.mode == "full"

    @property
    def sorted_bytes(self) -> int:
        """How much one task sorts at most, if everything is rewritten."""
        return max(self.target_file_size, SORTED_BYTES)

    def count_of(self, size: int) -> int:
        """The number of files of about the target size that have so many bytes, at least one."""
        return max(1, round(size / self.target_file_size))

    def is_small(self, size: int) -> bool:
        """Whether a file of so many bytes is small."""
        return size < self.target_file_size * self.small_file_share


@dataclass(frozen=True, slots=True)
class BucketFile:
    """A data file, or several that are to become one.

    ``index`` is its number in the table. ``order`` sorts the files of a bucket; in a table without
    fixed buckets, it begins with False if a compaction made the file. ``created`` is when, as
    milliseconds and nanoseconds; zeros if unknown.
    ``live_rows`` are not marked as deleted, ``live_size`` are their bytes, estimated. ``is_small``:
    it is put together with others. ``is_flawed``: it is to be written anew in any case. ``run``
    identifies the compaction that made it with today's schema, if one did.
    """

    index: int
    order: tuple[Any, ...]
    created: tuple[int, int]
    live_rows: int
    live_size: int
    is_small: bool
    is_flawed: bool
    run: str | None

    @property
    def is_candidate(self) -> bool:
        """Whether it may be rewritten."""
        return self.is_small or self.is_flawed


Files = tuple[BucketFile, ...]


@dataclass(frozen=True, slots=True)
class _Item:
    """What a bin holds: a file, or files that this plan has already put together."""

    files: Files
    order: tuple[Any, ...]
    size: int
    is_flawed: bool
    is_new: bool = False


@dataclass(slots=True)
class _Bin:
    """Items that may become one file. ``is_closed``: it cannot be expected to get more of them."""

    items: list[_Item] = field(default_factory=list)
    size: int = 0
    is_closed: bool = False

    def add(self, item: _Item) -> None:
        self.items.append(item)
        self.size += item.size

    def as_item(self, number: int = 0) -> _Item:
        """What a plan finds if this bin is the file ``number`` of a compaction."""
        files = sorted((f for item in self.items for f in item.files), key=lambda each: each.order)
        order = (False, math.inf, number)
        return _Item(tuple(files), order, self.size, is_flawed=False, is_new=True)


def all_in_bins(files: Sequence[BucketFile], sizes: FileSizes) -> Iterator[Files]:
    """All files by age, in bins of up to ``sizes.sorted_bytes``, whose rows are then sorted."""
    current = _Bin()
    for file in sorted(files, key=lambda each: each.order):
        item = _item(file)
        if current.items and current.size + item.size > sizes.sorted_bytes:
            yield current.as_item().files
            current = _Bin()
        current.add(item)
    if current.items:
        yield current.as_item().files


def ordered_bins(files: Sequence[BucketFile], sizes: FileSizes) -> Iterator[Files]:
    """The bins of a fixed bucket: neighbours in its order, up to the target size."""
    current = _Bin()
    bins = [current]
    for file in sorted(files, key=lambda each: each.order):
        item = _item(file)
        fits = current.size + item.size <= sizes.target_file_size
        if current.items and not (file.is_candidate and fits):
            # Files that come later can only join the last bin.
            current.is_closed = True
            current = _Bin()
            bins.append(current)
        if file.is_candidate:
            current.add(item)
    for candidate in bins:
        if _is_worth_it(candidate, sizes):
            yield candidate.as_item().files


def settled_bins(files: Sequence[BucketFile], sizes: FileSizes) -> Iterator[Files]:
    """The bins of files that have no order: filled by age, until nothing is worth it any more."""
    ordered = sorted(files, key=lambda each: each.order)
    gone = tuple(file for file in ordered if file.is_flawed and not file.live_rows)
    if gone:
        yield gone
    others = [file for file in ordered if file.live_rows or not file.is_flawed]
    yield from ((file,) for file in others if not file.is_small)
    items = [_item(file) for file in others if file.is_small]
    finished: list[_Item] = []
    while True:
        bins = _filled(sorted(items, key=lambda item: item.order), sizes)
        chosen = [each for each in bins if _is_worth_it(each, sizes)]
        if not chosen:
            break
        made = [each.as_item(number) for number, each in enumerate(chosen, len(finished))]
        left = [each for each in bins if not _is_worth_it(each, sizes)]
        items = [item for each in left for item in each.items]
        for item in made:
            (items if sizes.is_small(item.size) else finished).append(item)
    yield from (item.files for item in (*finished, *items) if item.is_new)


def _item(file: BucketFile) -> _Item:
    return _Item((file,), file.order, file.live_size, file.is_flawed)


def _filled(items: Sequence[_Item], sizes: FileSizes) -> list[_Bin]:
    """Bins of at most the target size; no two of them would fit into one.

    Each item goes into the fullest bin that has room for it. A bin whose file will not be small any
    more is closed by an item that does not fit, so that late files do not fill the gaps of early
    ones.
    """
    target = sizes.target_file_size
    bins: list[_Bin] = []
    # The room and number of each open bin.
    rooms: list[tuple[int, int]] = []
    for item in items:
        fitting = bisect_left(rooms, (item.size, 0))
        while fitting and rooms and not sizes.is_small(target - rooms[0][0]):
            bins[rooms.pop(0)[1]].is_closed = True
            fitting -= 1
        if fitting < len(rooms):
            _, number = rooms.pop(fitting)
        else:
            number = len(bins)
            bins.append(_Bin())
        bins[number].add(item)
        insort(rooms, (target - bins[number].size, number))
    return bins


def _is_worth_it(each: _Bin, sizes: FileSizes) -> bool:
    """Whether a bin becomes a file."""
    if any(item.is_flawed for item in each.items):
        return True
    if len(each.items) >= max(sizes.min_files, 2):
        return True
    if len(each.items) < 2 or _is_left_over(each):
        return False
    return sizes.is_full or each.is_closed


def _is_left_over(each: _Bin) -> bool:
    """Whether a bin has only files of one compaction, and at most one older file.

    That compaction left them as they are: they fit together because its files became smaller than
    it expected.
    """
    files = [file for item in each.items for file in item.files]
    newest = max(files, key=lambda file: file.created)
    others = [file for file in files if file.run != newest.run]
    is_new = any(item.is_new for item in each.items)
    return not is_new and newest.run is not None and len(others) < 2
