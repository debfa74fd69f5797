"""What an operation notes before it changes the references of a table. Driver only.

A tag or a branch does not tell which operation made it; by the note, a retry tells its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol


class ChangeNote(Protocol):
    """The note of one operation, for the connector's own use."""

    def read(self) -> Mapping[str, Any] | None:
        """What an earlier try of the same work has noted; None: nothing.

        Raises:
            CatalogError: METADATA_UNREADABLE, WORKSPACE_ACCESS_DENIED.
        """
        ...

    def write(self, change: Mapping[str, Any]) -> None:
        """Note a change, as JSON, unless this try was given up.

        Raises:
            CatalogError: WORKSPACE_ACCESS_DENIED.
            CommitError: RUN_GIVEN_UP.
        """
        ...

    def remove(self) -> None:
        """Forget a change that was certainly not made."""
        ...


class _NoNote:
    """Remembers nothing: for callers that try once."""

    def read(self) -> Mapping[str, Any] | None:
        return None

    def write(self, change: Mapping[str, Any]) -> None:
        del change

    def remove(self) -> None:
        return


NO_NOTE: Final[ChangeNote] = _NoNote()
