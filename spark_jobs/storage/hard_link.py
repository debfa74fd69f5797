"""Exclusive files in a local folder: a hard link either takes the name or fails. Driver only."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from spark_jobs.storage.files import temporary_path


class HardLinkFiles:
    """Implements ``ExclusiveFiles`` for local files."""

    def create(self, path: str, text: str) -> bool:
        """Create the file durably; False if it already exists."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(temporary_path(path))
        try:
            with temporary.open("x", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            try:
                os.link(temporary, target)
            except FileExistsError:
                # NFS may have made this very link, lost the answer, and retried: see open(2).
                if temporary.stat().st_nlink == 1:
                    return False
        finally:
            temporary.unlink(missing_ok=True)
        _sync_directory(target.parent)
        return True

    def write_hint(self, path: str, text: str) -> None:
        """Replace the file."""
        target = Path(path)
        temporary = Path(temporary_path(path))
        try:
            temporary.write_text(text, encoding="utf-8")
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
