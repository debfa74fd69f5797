"""Finds new files of a write that are too many for their size. Driver only."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

from spark_jobs.packing import filled
from spark_jobs.spi.writes import Fragment

_MOST_FILES: Final = 2


def small_files(
    fragments: Sequence[Fragment],
    target_file_size: int,
    place_of: Callable[[Mapping[str, Any]], Hashable],
) -> list[list[int]]:
    """Groups of fragments whose new files fit into one file each.

    ``place_of`` tells from the document of a new file what the rows of a file have in common. Only
    of places with more than twice as many new files as their size needs. Afterwards none has more,
    because two neighbouring groups do not fit into one file.
    """
    by_place: dict[Hashable, list[int]] = defaultdict(list)
    for index, fragment in enumerate(fragments):
        added = fragment.document.get("added")
        if added is not None and fragment.document["removed"] is None:
            by_place[place_of(added)].append(index)
    groups: list[list[int]] = []
    for members in by_place.values():
        total = sum(fragments[index].bytes_added for index in members)
        if len(members) > _MOST_FILES * math.ceil(total / target_file_size):
            groups += filled(members, lambda index: fragments[index].bytes_added, target_file_size)
    return [group for group in groups if len(group) > 1]
