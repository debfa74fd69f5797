"""Which data files of a bucket have to be read together. Driver only.

A section is a set of files whose ranges of keys overlap, directly or through others of them
(Paimon's ``IntervalPartition``). Files that batch readers do not see yet are apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from spark_jobs.connectors.paimon.format.bucket_key import POSTPONED, BucketKey
from spark_jobs.connectors.paimon.format.sequence_numbers import bucket_key_of
from spark_jobs.connectors.paimon.library.key_ranges import KeyRange, key_range
from spark_jobs.errors import CatalogError, ErrorCode

Located = tuple[str, Any]


class Unit(NamedTuple):
    """Files that are read together: their indexes among all data files of the table.

    ``is_pending``: batch readers do not see them yet.
    """

    files: tuple[int, ...]
    is_pending: bool = False


def units(located: Sequence[Located], *, hides_level_0: bool) -> tuple[Unit, ...]:
    """The units of a table with a primary key: bucket by bucket, in key order.

    Raises:
        CatalogError: METADATA_UNREADABLE: files of a level above 0 overlap.
    """
    buckets: dict[BucketKey, list[int]] = defaultdict(list)
    for index, (_, entry) in enumerate(located):
        buckets[bucket_key_of(entry)].append(index)
    all_units: list[Unit] = []
    for place, indexes in buckets.items():
        hidden = hides_level_0 or place.bucket == POSTPONED
        pending = [n for n in indexes if hidden and not located[n][1].file.level]
        visible = [n for n in indexes if n not in set(pending)]
        all_units += [Unit(files) for files in _sections(located, visible)]
        if pending:
            all_units.append(Unit(tuple(pending), is_pending=True))
    return tuple(all_units)


def _sections(located: Sequence[Located], indexes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    ranges = {index: key_range(located[index][1]) for index in indexes}
    _require_levels(located, ranges)
    section: list[int] = []
    end: tuple[Any, ...] = ()
    for index in sorted(indexes, key=lambda each: ranges[each].first):
        if section and ranges[index].first > end:
            yield tuple(sorted(section))
            section = []
        end = max(end, ranges[index].last) if section else ranges[index].last
        section.append(index)
    if section:
        yield tuple(sorted(section))


def _require_levels(located: Sequence[Located], ranges: dict[int, KeyRange]) -> None:
    """Check that the files of each level above 0 do not overlap, which readers rely on."""
    before: dict[int, int] = {}
    for index in sorted(ranges, key=lambda each: ranges[each].first):
        level = located[index][1].file.level
        if level and level in before and ranges[before[level]].overlaps(ranges[index]):
            names = [located[each][1].file.file_name for each in (before[level], index)]
            raise CatalogError(
                ErrorCode.METADATA_UNREADABLE,
                f"Data files {names[0]} and {names[1]} of level {level} have overlapping keys, so "
                "engines do not agree on their rows.",
                "Look for who wrote them; this statement changed nothing.",
            )
        before[level] = index
