"""The time of a store, from which the ages of its files are computed. Driver only.

The clock of this machine can be wrong by days. Then files of running statements would look
abandoned, and their removal would leave tables that nobody can read. The store that gave files
their modification times tells what time it is: by that of a file that is written for this.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from spark_jobs.contract.durations import duration_text
from spark_jobs.contract.operation_files import new_clock_name
from spark_jobs.errors import ErrorCode, InternalError
from spark_jobs.storage.files import make_folder

if TYPE_CHECKING:
    import pyarrow.fs as pafs

# Object stores tell whole seconds: clocks that differ by less agree.
_RESOLUTION: Final = timedelta(seconds=2)
_TOLERATED: Final = timedelta(minutes=2)
_REMEDY: Final = "Check the storage and the right to write there, then run it again."
_log = logging.getLogger("airflow_provider_merge.job")


@dataclass(slots=True)
class StoreClock:
    """The time of the store that holds ``folder``, where a small file is written once for it."""

    filesystem: pafs.FileSystem
    folder: str
    # Its time when it was asked, and what ``time.monotonic`` said then.
    _asked: tuple[datetime, float] | None = field(default=None, init=False)

    def now(self) -> datetime:
        """The store's time, in UTC. A clock of this machine that is wrong is logged.

        Raises:
            InternalError: STORAGE_UNAVAILABLE: no file can be written there.
        """
        if self._asked is None:
            before = datetime.now(UTC)
            store_now = _told(self.filesystem, self.folder)
            own = datetime.now(UTC)
            agrees = before - _RESOLUTION <= store_now <= own + _RESOLUTION
            self._asked = own if agrees else store_now, time.monotonic()
            _warn(store_now, own, self.folder)
        moment, then = self._asked
        return moment + timedelta(seconds=time.monotonic() - then)


def store_time(filesystem: pafs.FileSystem, folder: str) -> datetime:
    """The time of the store that holds ``folder``; raises as ``StoreClock.now``."""
    return StoreClock(filesystem, folder).now()


def _told(filesystem: pafs.FileSystem, folder: str) -> datetime:
    path = f"{folder}/{new_clock_name()}"
    try:
        make_folder(filesystem, folder)
        with filesystem.open_output_stream(path) as stream:
            stream.write(b"What time is it?\n")
        try:
            written_at = filesystem.get_file_info(path).mtime
        finally:
            with suppress(OSError):  # it is removed as an orphan file, or as an outdated result
                filesystem.delete_file(path)
    except OSError as error:
        problem = f"The time of the storage could not be found out in {folder}: {error}"
        raise InternalError(ErrorCode.STORAGE_UNAVAILABLE, problem, _REMEDY) from error
    if written_at is None:
        problem = f"The storage does not tell when {path} was written."
        raise InternalError(ErrorCode.STORAGE_UNAVAILABLE, problem, _REMEDY)
    told: datetime = written_at
    return told


def _warn(told: datetime, own: datetime, folder: str) -> None:
    ahead = own - told
    if abs(ahead) > _TOLERATED:
        _log.warning(
            "the clock of this machine is %s %s that of the storage of %s (%s here, %s there): "
            "ages of files are those by the storage's clock",
            duration_text(abs(ahead).total_seconds()),
            "ahead of" if ahead > timedelta() else "behind",
            folder,
            own.isoformat(timespec="seconds"),
            told.isoformat(timespec="seconds"),
        )
