"""Notes that let the next run finish an interrupted removal. Driver only."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import get_args

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.library.metadata_checks import reading_metadata, require_within
from spark_jobs.connectors.paimon.maintenance.stored_files import FileKind, stored_kind
from spark_jobs.formats.paimon.metadata_files import entry_path, names_of
from spark_jobs.storage.files import read_file, replace_file


@dataclass(frozen=True, slots=True)
class RemovalNotes:
    """Notes of the files to remove, stored in ``<table>/removal`` before any snapshot is removed.

    Without them, only a search for orphan files would find the files of removed snapshots.
    """

    filesystem: pafs.FileSystem
    table_path: str
    roots: Collection[str]

    def write(self, files: Iterable[tuple[str, FileKind]]) -> str:
        """Store a note and return its path."""
        path = entry_path(self.table_path, "removal", f"{uuid.uuid4()}.json")
        content = json.dumps({"files": sorted(files)}).encode()
        replace_file(self.filesystem, path, content)
        return path

    def read(self) -> dict[str, dict[str, FileKind]]:
        """The notes of interrupted removals: by the note's path, the kinds of its files by path.

        Raises:
            CatalogError: METADATA_UNREADABLE, also if a note names a file that no removal would.
        """
        found = {}
        for info in self.filesystem.get_file_info(
            pafs.FileSelector(self._folder, allow_not_found=True)
        ):
            if names_of("removal", [info.base_name]) and info.base_name.endswith(".json"):
                with reading_metadata(info.path):
                    found[info.path] = self._files(info.path)
        return found

    def _files(self, path: str) -> dict[str, FileKind]:
        try:
            document = json.loads(read_file(self.filesystem, path).decode())
        except FileNotFoundError:
            return {}  # the removal that wrote it has finished
        files: dict[str, FileKind] = {}
        for name, kind in document["files"]:
            require_within(name, self.roots)
            inside = name.startswith(f"{self.table_path}/")
            if kind not in get_args(FileKind) or (
                inside and stored_kind(self.table_path, name) is None
            ):
                raise ValueError(f"{name} is not a file that a removal would name")
            files[name] = kind
        return files

    @property
    def _folder(self) -> str:
        return f"{self.table_path}/removal"
