"""The files of one job, in a folder that only this user can read and that goes with the job."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from airflow_provider_merge import job_package
from airflow_provider_merge.submit.left_folders import PREFIX, remove_left_folders, sign
from airflow_provider_merge.submit.submitter import SparkJob
from spark_jobs.contract.arguments import BATCH, REQUEST
from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.job_lines import new_line_secret


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
