"""The files of one job, in a folder that only this user can read and that goes with the job.

If a worker was killed, nobody else removes its folder, which holds credentials. A folder says who
made it. It goes when its maker has ended, or where that cannot be told because another machine or
container shares the temporary folder, when nothing in it has changed for long.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

import psutil

from airflow_provider_merge import job_package
from airflow_provider_merge.submit.submitter import SparkJob
from spark_jobs.contract.arguments import BATCH, REQUEST
from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.job_lines import new_line_secret

# The start of the names of jobs' folders, in front of the operation's id.
PREFIX: Final = "merge-job-"
# The longest that a job is believed to run.
LONGEST: Final = timedelta(days=7)
_OWNER: Final = "owner.json"
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMES: Final = Path("/proc/self/ns/pid")


@dataclass(frozen=True, slots=True)
class JobFiles:
    """Absolute local paths; ``credentials`` is None where access is ambient.

    ``package``: what Python's path names, a zip to ship or a folder. ``option``: what the job calls
    its ``work``, such as ``--request``. ``line_secret``: as in ``contract.own_lines``.
    """

    folder: Path
    main: Path
    package: Path
    work: Path
    option: str
    credentials: Path | None
    line_secret: str = field(repr=False)

    def remove(self) -> None:
        """Remove all of them; nothing happens when they are gone already."""
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def job_files(job: SparkJob, *, is_shipped: bool) -> Iterator[JobFiles]:
    """Write the job's files (mode 0600) into a new folder (0700); remove it at the end.

    ``is_shipped``: other machines need the package.

    Folders that workers which were killed have left go too: those of the same operation at once,
    the others when nothing of their jobs can be alive.
    """
    prefix = f"{PREFIX}{job.work.operation_id}-"
    for leftover in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    remove_left_folders()
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        sign(folder)
        yield _write(job, folder, is_shipped)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(job: SparkJob, folder: Path, is_shipped: bool) -> JobFiles:
    # The main script is copied: Python puts its folder first on sys.path, where the package's own
    # modules would be found under their short names.
    main = folder / "main.py"
    shutil.copyfile(job_package.main_file(), main)
    package = _zip(folder) if is_shipped else _linked(folder)
    option = BATCH if isinstance(job.work, JobBatch) else REQUEST
    work = _write_private(folder / f"{option.lstrip('-')}.json", job.work.to_json())
    credentials = None
    if job.credentials:
        text = json.dumps(dict(job.credentials))
        credentials = _write_private(folder / "credentials.json", text)
    return JobFiles(folder, main, package, work, option, credentials, new_line_secret(folder))


def _zip(folder: Path) -> Path:
    target = folder / f"{job_package.NAME}.zip"
    job_package.write_zip(target)
    return target


def _linked(folder: Path) -> Path:
    """A folder with nothing but the package, as it was compiled when it was first imported."""
    target = folder / "package"
    target.mkdir()
    (target / job_package.NAME).symlink_to(job_package.package_folder())
    return target


def _write_private(path: Path, text: str) -> Path:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return path


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
