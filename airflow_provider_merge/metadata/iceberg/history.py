"""The retained snapshots of a branch of an Iceberg table, each of which names its parent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IcebergHistory:
    """Snapshots from the oldest retained one to the newest; ids have no order.

    ``parent`` is that of the oldest, which has expired; None: there is none, or a writer that
    expired it cut the tie.
    """

    ids: tuple[int, ...]
    parent: int | None
    is_complete: bool

    def after(self, snapshot_id: int) -> Sequence[int] | None:
        """The ids behind one; None: it is not in this history, or expired long ago."""
        if snapshot_id in (0, self.parent):
            return self.ids
        if snapshot_id not in self.ids:
            return None
        return self.ids[self.ids.index(snapshot_id) + 1 :]

    def expired_after(self, snapshot_id: int) -> Sequence[int]:
        """None is known: a table forgets its expired snapshots."""
        return ()
