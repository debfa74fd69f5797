"""Removing many files of a warehouse. Driver only."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, Protocol

import pyarrow.fs as pafs

from spark_jobs.errors import ErrorCode, InternalError
from spark_jobs.storage.files import in_parallel, remove_file
from spark_jobs.storage.s3_errors import access_error

# The maximum of Amazon's DeleteObjects.
_BULK: Final = 1000


def remove_with_prefixes(filesystem: pafs.FileSystem, root: str, prefixes: tuple[str, ...]) -> None:
    """Remove all files below ``root`` whose names begin with one of ``prefixes``."""
    selector = pafs.FileSelector(root, recursive=True, allow_not_found=True)
    for info in filesystem.get_file_info(selector):
        if info.base_name.startswith(prefixes):
            # Another process may remove files at the same time.
            remove_file(filesystem, info.path)


class FileRemover(Protocol):
    """Removes files of a warehouse; a file that is already gone is not a failure."""

    def remove(self, paths: Collection[str]) -> None:
        """Remove the files, in no particular order.

        Raises:
            InternalError: STORAGE_UNAVAILABLE; some of them may be left.
        """
        ...

    def remove_in_order(self, paths: Sequence[str]) -> None:
        """Remove the files in order, so that after a failure only later ones are left."""
        ...


@dataclass(frozen=True, slots=True)
class SingleRemover:
    """Sends one request per file, several at a time."""

    filesystem: pafs.FileSystem

    def remove(self, paths: Collection[str]) -> None:
        """Remove the files."""
        try:
            in_parallel(self._remove, sorted(paths))
        except OSError as error:
            raise _not_removed(str(error)) from error

    def remove_in_order(self, paths: Sequence[str]) -> None:
        """Remove one file after another."""
        for path in paths:
            self.remove([path])

    def _remove(self, path: str) -> None:
        remove_file(self.filesystem, path)


@dataclass(frozen=True, slots=True)
class BulkRemover:
    """Amazon's DeleteObjects: up to a thousand files per request."""

    client: Any

    def remove(self, paths: Collection[str]) -> None:
        """Remove the files."""
        buckets = groupby(sorted(paths), lambda path: path.partition("/")[0])
        in_parallel(self._remove, [part for _, each in buckets for part in _parts(list(each))])

    def remove_in_order(self, paths: Sequence[str]) -> None:
        """Remove one file after another: a request for many may fail for any of them."""
        for path in paths:
            self._remove([path])

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
