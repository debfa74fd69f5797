"""The retained snapshots of a Paimon table, whose ids count from 1."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PaimonHistory:
    """Snapshots by their ids, ascending; the last one is the newest."""

    ids: tuple[int, ...]

    @property
    def is_complete(self) -> bool:
        """Whether the table's first snapshot is retained, or there was none yet."""
        return not self.ids or self.ids[0] == 1

    def after(self, snapshot_id: int) -> Sequence[int] | None:
        """The ids above one; None: the newest is below it, so that the table was rolled back."""
        if snapshot_id > (self.ids[-1] if self.ids else 0):
            return None
        return self.ids[bisect_right(self.ids, snapshot_id) :]

    def expired_after(self, snapshot_id: int) -> Sequence[int]:
        """The ids between one and the oldest that is retained."""
        return range(snapshot_id + 1, self.ids[0] if self.ids else 0)
