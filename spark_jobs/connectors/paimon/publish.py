"""Making a snapshot visible: only if no other writer made one of the same id first.

pypaimon's own publish checks and then renames: two processes may both pass the check and one
snapshot is lost. Each kind of storage or catalog gets a ``SnapshotStore`` that closes the gap.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from spark_jobs.connectors.paimon import library

if TYPE_CHECKING:
    from spark_jobs.connectors.paimon.native import PaimonTable
    from spark_jobs.connectors.paimon.new_snapshot import NewSnapshot


class SnapshotStore(Protocol):
    """Decides which of several writers makes a table's next snapshot."""

    def publish(self, latest: PaimonTable, new: NewSnapshot) -> bool:
        """Make ``new`` the snapshot after that of ``latest``; False: its id is another one's.

        Called again with the same snapshot after a failure, it may answer False for it.

        Raises:
            OSError: it failed; whether the snapshot is there must be looked up.
            TimeoutError, ConnectionError: there was no answer; if the snapshot is not there now, it
                may still appear.
        """
        ...


class SnapshotFiles(ABC):
    """A ``SnapshotStore`` where the storage decides: a snapshot is there when its file is."""

    def publish(self, latest: PaimonTable, new: NewSnapshot) -> bool:
        """Create the snapshot's file, then renew the hint."""
        directory = f"{latest.branch_path}/snapshot"
        text = library.snapshot_json(new.snapshot)
        is_created = self.create(f"{directory}/snapshot-{new.snapshot.id}", text)
        if is_created:
            self.hint_latest(f"{directory}/LATEST", new.snapshot.id)
        return is_created

    @abstractmethod
    def create(self, path: str, text: str) -> bool:
        """Create the file with its whole text at once; False when it exists already.

        Raises:
            OSError, TimeoutError, ConnectionError: as ``publish``.
        """

    @abstractmethod
    def hint_latest(self, path: str, snapshot_id: int) -> None:
        """Tell readers where to look first; only a hint, so failures are ignored."""


class HardLinkStore(SnapshotFiles):
    """Local files: a hard link either takes the name or fails."""

    def create(self, path: str, text: str) -> bool:
        """Create the file durably; False when it exists already."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.parent / f".{target.name}.{uuid.uuid4()}.tmp"
        try:
            with temporary.open("x", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            try:
                os.link(temporary, target)
            except FileExistsError:
                # NFS may have made this very link, lost its answer and asked again: see open(2).
                if temporary.stat().st_nlink == 1:
                    return False
        finally:
            temporary.unlink(missing_ok=True)
        _sync_directory(target.parent)
        return True

    def hint_latest(self, path: str, snapshot_id: int) -> None:
        """Replace the hint file."""
        target = Path(path)
        temporary = target.parent / f".{target.name}.{uuid.uuid4()}.tmp"
        try:
            temporary.write_text(str(snapshot_id), encoding="utf-8")
            temporary.replace(target)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
