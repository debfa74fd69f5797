"""Removing many files, and the note that lets an interrupted removal be finished. Driver only."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol, get_args

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.metadata_checks import reading_metadata, require_within
from spark_jobs.connectors.paimon.parallel import in_parallel
from spark_jobs.connectors.paimon.s3_errors import access_error
from spark_jobs.connectors.paimon.stored_files import FileKind, stored_kind
from spark_jobs.errors import ErrorCode, InternalError
from spark_jobs.spi.storage import replace_file

# What Amazon takes in one request.
_BULK: Final = 1000


class FileRemover(Protocol):
    """Removes files of a warehouse; one that is gone already is no failure."""

    def remove(self, paths: Collection[str]) -> None:
        """Remove the files, in no order.

        Raises:
            InternalError: STORAGE_UNAVAILABLE; some of them may be left.
        """
        ...

    def remove_in_order(self, paths: Sequence[str]) -> None:
        """Remove the files so that, wherever it ends, those that are left are the last ones."""
        ...


@dataclass(frozen=True, slots=True)
class SingleRemover:
    """One request for each file, several at a time."""

    filesystem: pafs.FileSystem

    def remove(self, paths: Collection[str]) -> None:
        """Remove the files."""
        try:
            in_parallel(self._remove, sorted(paths))
        except OSError as error:
            raise _not_removed(str(error)) from error

    def remove_in_order(self, paths: Sequence[str]) -> None:
        """Remove one file after the other."""
        for path in paths:
            self.remove([path])

    def _remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self.filesystem.delete_file(path)


@dataclass(frozen=True, slots=True)
class BulkRemover:
    """Amazon's DeleteObjects: a thousand files in a request."""

    client: Any

    def remove(self, paths: Collection[str]) -> None:
        """Remove the files, all of one bucket."""
        in_parallel(self._remove, _parts(sorted(paths)))

    def remove_in_order(self, paths: Sequence[str]) -> None:
        """Remove a thousand files after the other."""
        for part in _parts(paths):
            self._remove(part)

    def _remove(self, paths: list[str]) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        bucket = paths[0].partition("/")[0]
        objects = [{"Key": path.partition("/")[2]} for path in paths]
        try:
            answer = self.client.delete_objects(
                Bucket=bucket, Delete={"Objects": objects, "Quiet": True}
            )
        except (BotoCoreError, ClientError) as error:
            raise access_error(error, paths[0]) from error
        for failure in answer.get("Errors", ()):
            if failure.get("Code") != "NoSuchKey":
                raise _not_removed(f"{failure.get('Key')}: {failure.get('Code')}")


def _parts(paths: Sequence[str]) -> list[list[str]]:
    return [list(paths[start : start + _BULK]) for start in range(0, len(paths), _BULK)]


def _not_removed(problem: str) -> InternalError:
    return InternalError(
        ErrorCode.STORAGE_UNAVAILABLE,
        f"A file could not be removed: {problem}",
        "Check the storage and the right to delete there, then run it again: it goes on there.",
    )


@dataclass(frozen=True, slots=True)
class RemovalNotes:
    """What is to be removed, stored in ``<table>/removal`` before the first snapshot goes.

    Without it, the files of snapshots that are gone would be found by a search for orphans only.
    """

    filesystem: pafs.FileSystem
    table_path: str
    roots: Collection[str]

    def write(self, files: Iterable[tuple[str, FileKind]]) -> str:
        """Store a note; its path."""
        path = f"{self._folder}/removal-{uuid.uuid4()}.json"
        content = json.dumps({"files": sorted(files)}).encode()
        replace_file(self.filesystem, path, content)
        return path

    def read(self) -> dict[str, dict[str, FileKind]]:
        """The notes of interrupted removals: kinds of files by path, by the note's own path.

        Raises:
            CatalogError: METADATA_UNREADABLE, also where a note names what no removal would.
        """
        found = {}
        for info in self.filesystem.get_file_info(
            pafs.FileSelector(self._folder, allow_not_found=True)
        ):
            if info.base_name.startswith("removal-") and info.base_name.endswith(".json"):
                with reading_metadata(info.path):
                    found[info.path] = self._files(info.path)
        return found

    def _files(self, path: str) -> dict[str, FileKind]:
        try:
            with self.filesystem.open_input_stream(path) as stream:
                document = json.loads(stream.read().decode())
        except FileNotFoundError:
            return {}  # whoever wrote it is done
        files: dict[str, FileKind] = {}
        for name, kind in document["files"]:
            require_within(name, self.roots)
            inside = name.startswith(f"{self.table_path}/")
            if kind not in get_args(FileKind) or (
                inside and stored_kind(self.table_path, name) is None
            ):
                raise ValueError(f"{name} is no file that a removal would name")
            files[name] = kind
        return files

    @property
    def _folder(self) -> str:
        return f"{self.table_path}/removal"
