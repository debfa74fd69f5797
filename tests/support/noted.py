"""The note of an operation, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass
class Noted:
    """Implements ``ChangeNote``."""

    change: Mapping[str, Any] | None = None

    def read(self) -> Mapping[str, Any] | None:
        """What was noted."""
        return self.change

    def write(self, change: Mapping[str, Any]) -> None:
        """Note it."""
        self.change = dict(change)

    def remove(self) -> None:
        """Forget it."""
        self.change = None
