"""Everything that keeps files of a table in use: snapshots, tags, branches, consumers. Driver only.

A *line* is a history of snapshots with its tags and consumers: the table's own, called ``main``, or
that of a branch. All lines share the data files and manifests in the table's directory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.commit.guard import OPERATION_PREFIX, next_snapshot
from spark_jobs.connectors.paimon.library import snapshot_files
from spark_jobs.connectors.paimon.library.metadata_checks import reading_metadata
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.storage.parallel import in_parallel

MAIN: Final = "main"
# Of a snapshot's or tag's file, in bytes.
_LONGEST: Final = 1 << 20
_SNAPSHOT: Final = re.compile(r"snapshot-([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Consumer:
    """A reader that goes on at ``next_snapshot``; ``modified`` is when it said so last."""

    name: str
    next_snapshot: int
    modified: datetime

    @property
    def guards(self) -> bool:
        """Whether a running operation of this project guards its base with it."""
        return self.name.startswith(OPERATION_PREFIX)

    @property
    def last_used(self) -> int:
        """The latest snapshot that it counts on: an operation's base, or the last one read."""
        return self.next_snapshot if self.guards else self.next_snapshot - 1

    def __str__(self) -> str:
        if self.guards:
            return f"operation {self.name.removeprefix(OPERATION_PREFIX)}"
        return f"consumer {self.name}"


@dataclass(frozen=True, slots=True)
class Line:
    """``folder`` holds it; ``snapshots`` are by id, in their order, ``tags`` by name."""

    name: str
    folder: str
    snapshots: Mapping[int, Any]
    tags: Mapping[str, Any]
    consumers: tuple[Consumer, ...]

    def snapshot_path(self, snapshot_id: int) -> str:
        """The file of a snapshot."""
        return f"{self.folder}/snapshot/snapshot-{snapshot_id}"

    def tag_path(self, name: str) -> str:
        """The file of a tag."""
        return f"{self.folder}/tag/tag-{name}"


class Lines:
    """Reads all lines of the table in ``root``, each snapshot once."""

    def __init__(self, filesystem: pafs.FileSystem, root: str) -> None:
        self._filesystem = filesystem
        self._root = root
        self._known: dict[str, Any] = {}

    def read(self) -> tuple[Line, ...]:
        """The lines now, ``main`` first.

        Raises:
            CatalogError: METADATA_UNREADABLE.
            CommitError: COMMIT_CONFLICT when a snapshot or a tag vanished meanwhile.
        """
        with reading_metadata(self._root):
            names = self._names(f"{self._root}/branch")
            branches = [n.removeprefix("branch-") for n in names if n.startswith("branch-")]
            folders = {b: f"{self._root}/branch/branch-{b}" for b in sorted(branches)}
            lines = {MAIN: self._root, **folders}
            return tuple(self._line(name, folder) for name, folder in lines.items())

    def _line(self, name: str, folder: str) -> Line:
        found = map(_SNAPSHOT.fullmatch, self._names(f"{folder}/snapshot"))
        ids = sorted(int(match[1]) for match in found if match)
        tags = sorted(n[4:] for n in self._names(f"{folder}/tag") if n.startswith("tag-"))
        return Line(
            name,
            folder,
            dict(zip(ids, in_parallel(lambda i: self._snapshot(folder, i), ids), strict=True)),
            dict(zip(tags, in_parallel(lambda t: self._tag(folder, t), tags), strict=True)),
            tuple(self._consumers(folder)),
        )

    def _snapshot(self, folder: str, snapshot_id: int) -> Any:
        path = f"{folder}/snapshot/snapshot-{snapshot_id}"
        if path not in self._known:
            self._known[path] = snapshot_files.parse_snapshot(self._text(path), snapshot_id)
        return self._known[path]

    def _tag(self, folder: str, name: str) -> Any:
        return snapshot_files.parse_tag(self._text(f"{folder}/tag/tag-{name}"))

    def _consumers(self, folder: str) -> list[Consumer]:
        selector = pafs.FileSelector(f"{folder}/consumer", allow_not_found=True)
        found = []
        for info in self._filesystem.get_file_info(selector):
            if info.base_name.startswith("consumer-") and info.type == pafs.FileType.File:
                try:
                    first = next_snapshot(json.loads(self._read(info.path)))
                except FileNotFoundError:
                    continue  # an operation ended meanwhile
                name = info.base_name.removeprefix("consumer-")
                found.append(Consumer(name, first, info.mtime))
        return sorted(found, key=lambda each: each.name)

    def _names(self, folder: str) -> list[str]:
        selector = pafs.FileSelector(folder, allow_not_found=True)
        return [info.base_name for info in self._filesystem.get_file_info(selector)]

    def _text(self, path: str) -> str:
        try:
            return self._read(path)
        except FileNotFoundError:
            raise CommitError(
                ErrorCode.COMMIT_CONFLICT,
                f"{path} was removed by somebody else while it was looked at.",
                "Run it again when nobody else takes care of the table.",
            ) from None

    def _read(self, path: str) -> str:
        with self._filesystem.open_input_stream(path) as stream:
            content: bytes = stream.read(_LONGEST)
            return content.decode()
