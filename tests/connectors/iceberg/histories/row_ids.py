"""The ids that rows of a history have: an id never changes, never doubles and never comes back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from tests.connectors.iceberg.histories.model import Model

# A field of the model's rows that no table has: what row of all that there were it is.
_TAG: Final = "#"


@dataclass
class RowIds:
    """The ids by tag, and all that there ever were."""

    by_tag: dict[int, int] = field(default_factory=dict)
    ever: set[int] = field(default_factory=set)
    _tags: Any = field(default_factory=count)

    def tag(self, model: Model) -> None:
        """Tell the rows that are new since the last step from all others."""
        model.rows = [row if _TAG in row else {**row, _TAG: next(self._tags)} for row in model.rows]

    def problem(self, model: Model, found: Sequence[tuple[str, int | None]]) -> str:
        """What is wrong with the ids of rows, which are told as the model tells them; or nothing.

        Rows of a snapshot from before version 3 have none, and get new ones by the next commit.
        """
        ids = [each for _, each in found]
        if all(each is None for each in ids):
            model.rows = [{**row, _TAG: next(self._tags)} for row in model.rows]
            return ""
        if None in ids or len({*ids}) < len(ids):
            return f"ids are missing or doubled: {sorted(map(str, ids))}"
        wanted: dict[str, list[int]] = defaultdict(list)
        for row in model.rows:
            wanted[model.told(row)].append(row[_TAG])
        for text, tags in wanted.items():
            own = {each for told, each in found if told == text and each is not None}
            known = {self.by_tag[tag] for tag in tags if tag in self.by_tag}
            if not known <= own:
                return f"{text} had the ids {known}, and has {own}"
            new = sorted(own - known)
            if self.ever.intersection(new):
                return f"{text} has the ids {new}, which other rows had"
            self.by_tag |= zip([tag for tag in tags if tag not in self.by_tag], new, strict=True)
        self.ever.update(each for each in ids if each is not None)
        return ""
