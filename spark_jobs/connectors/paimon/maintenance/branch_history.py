"""Everything that keeps a table's files in use: snapshots, tags, branches, consumers. Driver only.

Each branch has its own history of snapshots, tags and consumers. The table's own branch is called
``main``. All branches share the data files and manifests in the table's directory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.library import stored_snapshots
from spark_jobs.connectors.paimon.library.metadata_checks import reading_metadata
from spark_jobs.contract.table_name import MAIN_BRANCH
from spark_jobs.errors import CommitError, ErrorCode, NotSupportedError
from spark_jobs.formats.paimon.expiry import (
    Limits,
    commit_millis,
    first_retained,
    held_from,
    is_holding,
)
from spark_jobs.formats.paimon.metadata_files import (
    entry_name,
    entry_path,
    guarding_operation,
    ids_of,
    names_of,
    next_snapshot,
)
from spark_jobs.storage.files import in_parallel, read_file

# The longest snapshot or tag file, in bytes.
_LONGEST: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Consumer:
    """A reader that continues at ``next_snapshot``; ``modified`` is when its file last changed."""

    name: str
    next_snapshot: int
    modified: datetime

    @property
    def guards(self) -> bool:
        """Whether it is the base guard of an operation of this project."""
        return guarding_operation(self.name) is not None

    @property
    def last_used(self) -> int:
        """The latest snapshot that it relies on: an operation's base, or the last one read."""
        return self.next_snapshot if self.guards else self.next_snapshot - 1

    def __str__(self) -> str:
        operation_id = guarding_operation(self.name)
        return f"consumer {self.name}" if operation_id is None else f"operation {operation_id}"


@dataclass(frozen=True, slots=True)
class BranchHistory:
    """The history in ``folder``; ``snapshots`` are by id, in ascending order, ``tags`` by name.

    ``stored``: when the store got the files of snapshots, by id. ``changelogs`` are the ids of
    expired snapshots whose changes are still kept for streams.
    """

    name: str
    folder: str
    snapshots: Mapping[int, Any]
    tags: Mapping[str, Any]
    consumers: tuple[Consumer, ...]
    stored: Mapping[int, datetime]
    changelogs: tuple[int, ...] = ()

    def committed(self, snapshot_id: int) -> float:
        """When a snapshot was committed, in milliseconds since 1970."""
        stated = float(self.snapshots[snapshot_id].time_millis)
        return commit_millis(stated, self.stored.get(snapshot_id))

    def holding(self, now: datetime) -> list[Consumer]:
        """The consumers that keep snapshots."""
        return [each for each in self.consumers if is_holding(each.name, each.modified, now)]

    def held_from(self, now: datetime) -> int:
        """The first snapshot that a consumer needs."""
        return held_from(each.next_snapshot for each in self.holding(now))

    def first_retained(self, limits: Limits, held: int) -> int:
        """The id before which all snapshots expire; ``held`` is the first one that is needed."""
        return first_retained(list(self.snapshots), self.committed, limits, held)

    def refuse_changelogs(self) -> None:
        """Refuse to remove files, because it is not known which of them changelogs need.

        Raises:
            NotSupportedError: changes of expired snapshots are kept.
        """
        if self.changelogs:
            raise NotSupportedError(
                f"{self.folder} has changelogs that outlive their snapshots, such as that of "
                f"snapshot {self.changelogs[0]}.",
                "Use Paimon's own engines.",
            )

    def snapshot_path(self, snapshot_id: int) -> str:
        """The file of a snapshot."""
        return entry_path(self.folder, "snapshot", snapshot_id)

    def tag_path(self, name: str) -> str:
        """The file of a tag."""
        return entry_path(self.folder, "tag", name)


class BranchHistories:
    """Reads the histories of all branches of the table in ``root``, and each snapshot only once."""

    def __init__(self, filesystem: pafs.FileSystem, root: str) -> None:
        self._filesystem = filesystem
        self._root = root
        self._known: dict[str, Any] = {}

    def read(self) -> tuple[BranchHistory, ...]:
        """The current histories, ``main`` first.

        Raises:
            CatalogError: METADATA_UNREADABLE.
            CommitError: COMMIT_CONFLICT: a snapshot or a tag vanished in the meantime.
        """
        with reading_metadata(self._root):
            branches = names_of("branch", self._names(f"{self._root}/branch"))
            folders = {name: entry_path(self._root, "branch", name) for name in branches}
            histories = {MAIN_BRANCH: self._root, **folders}
            return tuple(self._history(name, folder) for name, folder in histories.items())

    def _history(self, name: str, folder: str) -> BranchHistory:
        files = self._files(f"{folder}/snapshot")
        ids = ids_of("snapshot", files)
        times = ((each, files.get(entry_name("snapshot", each))) for each in ids)
        tags = names_of("tag", self._names(f"{folder}/tag"))
        return BranchHistory(
            name,
            folder,
            dict(zip(ids, in_parallel(lambda i: self._snapshot(folder, i), ids), strict=True)),
            dict(zip(tags, in_parallel(lambda t: self._tag(folder, t), tags), strict=True)),
            tuple(self._consumers(folder)),
            {snapshot_id: time for snapshot_id, time in times if time is not None},
            tuple(ids_of("changelog", self._names(f"{folder}/changelog"))),
        )

    def _snapshot(self, folder: str, snapshot_id: int) -> Any:
        path = entry_path(folder, "snapshot", snapshot_id)
        if path not in self._known:
            self._known[path] = stored_snapshots.parse_snapshot(self._text(path), snapshot_id)
        return self._known[path]

    def _tag(self, folder: str, name: str) -> Any:
        return stored_snapshots.parse_tag(self._text(entry_path(folder, "tag", name)))

    def _consumers(self, folder: str) -> list[Consumer]:
        selector = pafs.FileSelector(f"{folder}/consumer", allow_not_found=True)
        consumers = []
        for info in self._filesystem.get_file_info(selector):
            names = names_of("consumer", [info.base_name])
            if names and info.type == pafs.FileType.File:
                try:
                    first = next_snapshot(
                        json.loads(read_file(self._filesystem, info.path, _LONGEST))
                    )
                except FileNotFoundError:
                    continue  # an operation ended in the meantime
                consumers.append(Consumer(names[0], first, info.mtime))
        return sorted(consumers, key=lambda each: each.name)

    def _names(self, folder: str) -> list[str]:
        return list(self._files(folder))

    def _files(self, folder: str) -> dict[str, datetime | None]:
        """The modification times of files, by their names."""
        selector = pafs.FileSelector(folder, allow_not_found=True)
        return {info.base_name: info.mtime for info in self._filesystem.get_file_info(selector)}

    def _text(self, path: str) -> str:
        try:
            return read_file(self._filesystem, path, _LONGEST).decode()
        except FileNotFoundError:
            raise CommitError(
                ErrorCode.COMMIT_CONFLICT,
                f"{path} was removed by somebody else while it was looked at.",
                "Run it again when nobody else takes care of the table.",
            ) from None
