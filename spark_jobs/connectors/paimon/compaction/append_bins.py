"""Which files of a bucket become one file. Driver only."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from spark_jobs.connectors.paimon.compaction.append_files import BucketFile
from spark_jobs.connectors.paimon.compaction.options import CompactionOptions

Files = tuple[BucketFile, ...]


@dataclass(frozen=True, slots=True)
class _Item:
    """What a bin holds: a file, or files that this plan has already put together."""

    files: Files
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

    def as_item(self) -> _Item:
        files = sorted((f for item in self.items for f in item.files), key=lambda each: each.order)
        return _Item(tuple(files), self.size, is_flawed=False, is_new=True)


def ordered_bins(files: Sequence[BucketFile], options: CompactionOptions) -> Iterator[Files]:
    """The bins of a fixed bucket: neighbours in its order, up to the target size."""
    current = _Bin()
    bins = [current]
    for file in sorted(files, key=lambda each: each.order):
        item = _item(file)
        fits = current.size + item.size <= options.target_file_size
        if current.items and not (file.is_candidate and fits):
            # Files that come later can only join the last bin.
            current.is_closed = True
            current = _Bin()
            bins.append(current)
        if file.is_candidate:
            current.add(item)
    for each in bins:
        if _is_worth_it(each, options):
            yield each.as_item().files


def settled_bins(files: Sequence[BucketFile], options: CompactionOptions) -> Iterator[Files]:
    """The bins of files that have no order: filled by age, until nothing is worth it any more."""
    ordered = sorted(files, key=lambda each: each.order)
    gone = tuple(file for file in ordered if file.is_flawed and not file.live_rows)
    if gone:
        yield gone
    left = [file for file in ordered if file.live_rows or not file.is_flawed]
    yield from ((file,) for file in left if not file.is_small)
    items = [_item(file) for file in left if file.is_small]
    finished: list[_Item] = []
    while True:
        bins = _filled(items, options)
        chosen = [_is_worth_it(each, options) for each in bins]
        if not any(chosen):
            break
        made = [each.as_item() for each, is_chosen in zip(bins, chosen, strict=True) if is_chosen]
        items = [
            item
            for each, is_chosen in zip(bins, chosen, strict=True)
            if not is_chosen
            for item in each.items
        ]
        for item in made:
            (items if options.is_small(item.size) else finished).append(item)
    yield from (item.files for item in (*finished, *items) if item.is_new)


def _item(file: BucketFile) -> _Item:
    return _Item((file,), file.live_size, file.is_flawed)


def _filled(items: Sequence[_Item], options: CompactionOptions) -> list[_Bin]:
    """Bins of at most the target size; no two of them would fit into one.

    Each item goes into the fullest bin that has room for it. A bin whose file will not be small any
    more is closed by an item that does not fit, so that late files do not fill the gaps of early
    ones.
    """
    target = options.target_file_size
    bins: list[_Bin] = []
    # The room and number of each open bin.
    rooms: list[tuple[int, int]] = []
    for item in items:
        fitting = bisect_left(rooms, (item.size, 0))
        while fitting and rooms and not options.is_small(target - rooms[0][0]):
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


def _is_worth_it(each: _Bin, options: CompactionOptions) -> bool:
    """Whether a bin becomes a file.

    Few files that one compaction made are left alone: they became smaller than it expected.
    """
    count = len(each.items)
    if any(item.is_flawed for item in each.items):
        return True
    if count >= max(options.min_files, 2):
        return True
    runs = {None if item.is_new else item.files[0].run for item in each.items}
    if count < 2 or (len(runs) == 1 and None not in runs):
        return False
    return options.is_full or each.is_closed
