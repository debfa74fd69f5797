"""The base guard: a consumer that keeps a statement's base snapshot from expiring. Driver only.

Every engine's expiry honours consumers. The guard also records where a later try has to start
looking for this operation's commit.
"""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow.fs as pafs

from spark_jobs.errors import CatalogError, ErrorCode

FIRST_SNAPSHOT = 1
# No try of a task comes as late as this; what is older was left by a job that nobody took up again.
MAXIMUM_AGE = timedelta(days=7)
_PREFIX = "consumer-merge-"


@dataclass(frozen=True, slots=True)
class BaseGuard:
    """The guard of one operation on the table, or branch of a table, in ``root``."""

    filesystem: pafs.FileSystem
    root: str
    operation_id: str

    @property
    def path(self) -> str:
        """The consumer's file."""
        return f"{self.root}/consumer/{_PREFIX}{self.operation_id}"

    def set(self, base_id: int | None) -> None:
        """Guard the base snapshot and all later ones; None: a table without any snapshot.

        Guards that have reached their maximum age are removed.
        """
        self._remove_expired()
        text = json.dumps({"nextSnapshot": FIRST_SNAPSHOT if base_id is None else base_id})
        self.filesystem.create_dir(f"{self.root}/consumer", recursive=True)
        temporary = f"{self.root}/consumer/.{uuid.uuid4()}.tmp"
        with self.filesystem.open_output_stream(temporary) as stream:
            stream.write(text.encode())
        self.filesystem.move(temporary, self.path)

    def base(self) -> int | None:
        """The first snapshot that is guarded; None when there is no guard.

        Raises:
            CatalogError: METADATA_UNREADABLE when the file is not a consumer.
        """
        try:
            with self.filesystem.open_input_stream(self.path) as stream:
                return int(json.loads(stream.read())["nextSnapshot"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise CatalogError(
                ErrorCode.METADATA_UNREADABLE,
                f"The consumer file {self.path} is not readable: {error}",
                "Look for the operation's snapshot by hand; then delete the file.",
            ) from error

    def release(self) -> None:
        """Remove the guard, if there is one."""
        try:
            self.filesystem.delete_file(self.path)
        except FileNotFoundError:
            return

    def _remove_expired(self) -> None:
        folder = pafs.FileSelector(f"{self.root}/consumer", allow_not_found=True)
        for info in self.filesystem.get_file_info(folder):
            is_guard = info.base_name.startswith(_PREFIX)
            if is_guard and info.mtime and info.mtime < datetime.now(UTC) - MAXIMUM_AGE:
                with suppress(FileNotFoundError):
                    self.filesystem.delete_file(info.path)
