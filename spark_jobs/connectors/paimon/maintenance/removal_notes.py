"""The note that lets an interrupted removal be finished. Driver only."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import get_args

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.library.metadata_checks import reading_metadata, require_within
from spark_jobs.connectors.paimon.maintenance.stored_files import FileKind, stored_kind
from spark_jobs.contract.paimon_files import entry_path, names_of
from spark_jobs.storage.files import replace_file


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
        path = entry_path(self.table_path, "removal", f"{uuid.uuid4()}.json")
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
            if names_of("removal", [info.base_name]) and info.base_name.endswith(".json"):
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
