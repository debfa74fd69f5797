"""Files that exactly one of several writers makes. Driver only."""

from __future__ import annotations

from typing import Protocol


class ExclusiveFiles(Protocol):
    """Creates files only where none is; each kind of storage decides in its own way."""

    def create(self, path: str, text: str) -> bool:
        """Create the file with its whole text at once; False when it exists already.

        Called again with the same text after a failure, it may answer False for its own file.

        Raises:
            OSError: it failed; whether the file is there must be looked up.
            TimeoutError, ConnectionError: there was no answer; if the file is not there now, it may
                still appear.
        """
        ...

    def write_hint(self, path: str, text: str) -> None:
        """Make or replace a file that readers can do without: failures are ignored."""
        ...
