"""Where the bad records of a source go: one JSON Lines file per task run. Driver only.

The file is named after the task run, not the try: a retry or a cleared task replaces what an
earlier try left, so that each bad record is there once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import pyarrow.fs as pafs

from spark_jobs.contract.operation_files import finished_name
from spark_jobs.contract.source_names import source_text
from spark_jobs.engine.source.source_files import located_folder
from spark_jobs.errors import ErrorCode, InternalError, NotSupportedError
from spark_jobs.storage.files import remove_file, replace_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.contract.request import FileSource, JobRequest
    from spark_jobs.contract.result import SourceMetrics
    from spark_jobs.spi.connector import Connector

_CHUNK: Final = 4 * 1024 * 1024
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The file of one source: ``path`` in ``filesystem``; messages call it ``name``."""

    filesystem: pafs.FileSystem
    path: str
    name: str
    dry_run: bool

    def filled(
        self, scratch: pafs.FileSystem, parts: Sequence[str], metrics: SourceMetrics
    ) -> SourceMetrics:
        """Replace the file with one of the records of ``parts``; without parts, remove it.

        A dry run changes nothing.

        Raises:
            InternalError: STORAGE_UNAVAILABLE, the file cannot be written.
        """
        if self.dry_run:
            return metrics
        try:
            self._clear_leftovers()
            if not parts:
                remove_file(self.filesystem, self.path)
                return metrics
            replace_file(self.filesystem, self.path, _content(scratch, parts))
        except OSError as error:
            raise InternalError(
                ErrorCode.STORAGE_UNAVAILABLE,
                f"the quarantine {self.name} cannot be written: {error}",
                "See that the job may write there; nothing was merged.",
            ) from error
        return replace(metrics, quarantine=self.name)

    def _clear_leftovers(self) -> None:
        """Remove the unfinished files of tries that were killed while writing."""
        folder, _, name = self.path.rpartition("/")
        for info in self.filesystem.get_file_info(pafs.FileSelector(folder, allow_not_found=True)):
            if finished_name(info.base_name) == name:
                remove_file(self.filesystem, info.path)


def quarantine_of(
    spark: SparkSession, source: FileSource, connector: Connector, request: JobRequest
) -> Quarantine | None:
    """The file for the bad records of ``source``; None if they are errors.

    Raises:
        NotSupportedError: the folder is on a storage that Python cannot reach.
    """
    if source.on_bad_rows != "quarantine" or source.quarantine is None:
        return None
    location = located_folder(spark, connector, source.quarantine)
    if location is None:
        raise NotSupportedError(
            f"{source_text(source)}: quarantine: {source.quarantine} is neither a local path nor "
            "on a storage that the catalog connection knows.",
            "Name a folder there.",
        )
    below = f"{_task_folder(request)}/{_safe(source.name)}.jsonl"
    name = f"{source.quarantine.rstrip('/')}/{below}"
    return Quarantine(location.filesystem, f"{location.path}/{below}", name, request.dry_run)


def _task_folder(request: JobRequest) -> str:
    origin = request.origin
    if not origin.dag_id:
        return _safe(request.operation_id)
    folder = "/".join(map(_safe, (origin.dag_id, origin.run_id, origin.task_id)))
    if origin.map_index >= 0:
        # No task id contains this character once it is made safe.
        folder = f"{folder}~{origin.map_index}"
    return f"{folder}/{_safe(origin.statement)}" if origin.statement else folder


def _safe(name: str) -> str:
    """``name`` as one part of a path: no separator, no special folder, and not too long."""
    quoted = quote(name, safe="").replace("~", "%7E")
    if quoted in (".", ".."):
        return quoted.replace(".", "%2E")
    if len(quoted) <= _LONGEST_NAME:
        return quoted
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{quoted[: _LONGEST_NAME - 17]}-{digest}"


def _content(filesystem: pafs.FileSystem, parts: Sequence[str]) -> Iterator[bytes]:
    for part in parts:
        with filesystem.open_input_stream(part, compression=None) as stream:
            while data := stream.read(_CHUNK):
                yield data
