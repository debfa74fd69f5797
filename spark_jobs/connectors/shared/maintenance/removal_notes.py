"""Notes that let the next run finish an interrupted removal. Driver only."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import pyarrow.fs as pafs

from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.storage.files import read_file, replace_file

FileKind = Literal["data", "index", "manifest"]
_NOTE = "removal-"
# Characters of a path in an error.
_SHOWN = 200


class FileFact(NamedTuple):
    """What metadata records about a file; ``size`` is in bytes, 0 if it is not recorded."""

    kind: FileKind
    size: int


@dataclass(frozen=True, slots=True)
class RemovalNotes:
    """Notes in ``folder`` of the files to remove, stored before any snapshot is removed.

    Without them, only a search for orphan files would find the files of removed snapshots.
    ``reading`` turns failures to read a note into errors of the job; ``is_own`` tells which files a
    removal would name.
    """

    filesystem: pafs.FileSystem
    folder: str
    reading: Callable[[str], AbstractContextManager[None]]
    is_own: Callable[[str], bool]

    def write(self, files: Iterable[tuple[str, FileKind]]) -> str:
        """Store a note and return its path."""
        path = f"{self.folder}/{_NOTE}{uuid.uuid4()}.json"
        content = json.dumps({"files": sorted(files)}).encode()
        replace_file(self.filesystem, path, content)
        return path

    def read(self) -> dict[str, dict[str, FileKind]]:
        """The notes of interrupted removals: by the note's path, the kinds of its files by path.

        Raises:
            CatalogError: METADATA_UNREADABLE, also if a note names a file that no removal would.
        """
        notes = {}
        for info in self.filesystem.get_file_info(
            pafs.FileSelector(self.folder, allow_not_found=True)
        ):
            if info.base_name.startswith(_NOTE) and info.base_name.endswith(".json"):
                with self.reading(info.path):
                    notes[info.path] = self._files(info.path)
        return notes

    def _files(self, path: str) -> dict[str, FileKind]:
        try:
            document = json.loads(read_file(self.filesystem, path).decode())
        except FileNotFoundError:
            return {}  # the removal that wrote it has finished
        files: dict[str, FileKind] = {}
        for name, kind in document["files"]:
            if kind not in get_args(FileKind) or not self.is_own(name):
                raise CatalogError(
                    ErrorCode.METADATA_UNREADABLE,
                    f"The note {path} of an interrupted removal names {str(name)[:_SHOWN]}, which "
                    "is not a file that a removal would name: the table's folders have changed, or "
                    "somebody else wrote it.",
                    "Delete the note. What it names are then orphan files.",
                )
            files[name] = kind
        return files
