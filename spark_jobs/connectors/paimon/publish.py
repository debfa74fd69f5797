"""Making a snapshot visible: create the file if, and only if, no other writer made it first.

pypaimon's own publish checks and then renames: two processes may both pass the check and one
snapshot is lost. Each kind of storage gets a ``SnapshotStore`` that closes the gap.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path
from typing import Any, Protocol

from spark_jobs.connectors.paimon import library


class SnapshotStore(Protocol):
    """Atomic creation of snapshot files."""

    def create(self, path: str, text: str) -> bool:
        """Create the file with its whole text at once; False when it exists already.

        Raises:
            OSError: the storage failed; whether the file was created must be looked up.
        """
        ...

    def hint_latest(self, path: str, snapshot_id: int) -> None:
        """Tell readers where to look first; only a hint, so failures are ignored."""
        ...


class HardLinkStore:
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
                return False
        finally:
            temporary.unlink(missing_ok=True)
        _sync_directory(target.parent)
        return True

    def hint_latest(self, path: str, snapshot_id: int) -> None:
        """Replace the hint file."""
        target = Path(path)
        temporary = target.parent / f".{target.name}.{uuid.uuid4()}.tmp"
        with contextlib.suppress(OSError):
            temporary.write_text(str(snapshot_id), encoding="utf-8")
            temporary.replace(target)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Publication:
    """One attempt to publish, in the shape of pypaimon's ``SnapshotCommit``.

    Publishes only the snapshot that follows ``checked_id``, the newest one that was checked for
    conflicts. Afterwards ``called`` tells whether pypaimon got as far as publishing, ``snapshot``
    what it handed over, ``published`` whether that is certain to be there, and ``failure`` what the
    storage raised. Called, without a failure, but not published: another writer was faster.
    """

    def __init__(self, store: SnapshotStore, directory: str, checked_id: int) -> None:
        self._store = store
        self._directory = directory
        self._expected_id = checked_id + 1
        self.called = False
        self.snapshot: Any | None = None
        self.published = False
        self.failure: OSError | None = None

    def __enter__(self) -> Publication:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def commit(self, base_uuid: str | None, snapshot: Any, statistics: Any) -> bool:
        """Called by pypaimon once the manifests are written; False when the id is taken."""
        del base_uuid, statistics
        self.called = True
        if snapshot.id != self._expected_id:
            return False
        self.snapshot = snapshot
        try:
            path = f"{self._directory}/snapshot-{snapshot.id}"
            self.published = self._store.create(path, library.snapshot_json(snapshot))
        except OSError as error:
            self.failure = error
            return False
        if self.published:
            self._store.hint_latest(f"{self._directory}/LATEST", snapshot.id)
        return self.published
