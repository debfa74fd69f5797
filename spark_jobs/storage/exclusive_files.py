"""Files that exactly one of several writers creates. Driver only."""

from __future__ import annotations

from typing import Protocol


class ExclusiveFiles(Protocol):
    """Creates files that do not exist yet; each kind of storage has its own way."""

    def create(self, path: str, text: str) -> bool:
        """Create the file with its whole text atomically; False if it already exists.

        Called again with the same text after a failure, it may return False for its own file.

        Raises:
            OSError: it failed; the caller must look up whether the file is there.
            TimeoutError, ConnectionError: there was no answer; if the file is not there now, it may
                still appear.
        """
        ...

    def write_hint(self, path: str, text: str) -> None:
        """Create or replace a file that readers can do without; failures are ignored."""
        ...
