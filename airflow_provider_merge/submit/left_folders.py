"""Folders of jobs whose worker was killed: nobody else removes them, and they hold credentials.

A folder says who made it. It goes when its maker has ended, or where that cannot be told because
another machine or container shares the temporary folder, when nothing in it has changed for long.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

import psutil

# The start of the names of jobs' folders, in front of the operation's id.
PREFIX: Final = "merge-job-"
# The longest that a job is believed to run.
LONGEST: Final = timedelta(days=7)
_OWNER: Final = "owner.json"
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMES: Final = Path("/proc/self/ns/pid")


def sign(folder: Path) -> None:
    """Note in a new folder of a job that this process made it."""
    process = psutil.Process()
    owner = {"place": _place(), "pid": process.pid, "started": process.create_time()}
    (folder / _OWNER).write_text(json.dumps(owner), encoding="utf-8")


def remove_left_folders() -> list[Path]:
    """Remove the folders of this user's jobs that have ended or never will; those that are gone.

    What cannot be removed stays.
    """
    left = [folder for folder in _folders() if _is_left(folder)]
    for folder in left:
        shutil.rmtree(folder, ignore_errors=True)
    return [folder for folder in left if not folder.exists()]


def _folders() -> list[Path]:
    found = Path(tempfile.gettempdir()).glob(f"{PREFIX}*")
    return [folder for folder in found if _is_own(folder)]


def _is_own(folder: Path) -> bool:
    try:
        about = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()


def _is_left(folder: Path) -> bool:
    place = _place()
    # It may be of an older version, or be made at this moment.
    with suppress(OSError, ValueError, TypeError, KeyError):
        owner = json.loads((folder / _OWNER).read_text(encoding="utf-8"))
        if place is not None and owner["place"] == place:
            return not _lives(owner["pid"], owner["started"])
    try:
        return time.time() - folder.lstat().st_mtime > LONGEST.total_seconds()
    except OSError:
        return False


def _lives(pid: int, started: float) -> bool:
    try:
        process = psutil.Process(pid)
        # The system gives numbers of processes away again.
        is_same = abs(float(process.create_time()) - started) < 1
        return is_same and bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


def _place() -> list[str] | None:
    """Where numbers of processes mean the same as here; None: that cannot be told."""
    try:
        return [_BOOT.read_text(encoding="ascii").strip(), str(_PID_NAMES.readlink())]
    except OSError:
        return None
