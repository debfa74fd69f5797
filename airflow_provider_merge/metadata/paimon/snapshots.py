"""Snapshots of a Paimon table, read from their JSON files: no pypaimon, no Spark, no JVM.

The layout is that of Paimon's file store: ``<table>/snapshot/snapshot-<id>`` and the hints
``LATEST`` and ``EARLIEST``, of which none is to be trusted unchecked. The same for a branch is in
``<table>/branch/branch-<name>``.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_merge.metadata.model import Snapshot
from airflow_provider_merge.storage.failures import unreadable
from airflow_provider_merge.storage.files import list_names, read_text, remove
from airflow_provider_merge.storage.locations import child
from spark_jobs.contract.properties import OPERATION_ID, STATEMENT
from spark_jobs.contract.request import TableName
from spark_jobs.contract.table_name import MAIN_BRANCH
from spark_jobs.contract.undone import PARTIAL, Undone
from spark_jobs.formats.paimon.metadata_files import (
    entry_name,
    entry_path,
    guard_path,
    hint_path,
    ids_of,
    is_id,
    next_snapshot,
)

_COMPACT = "COMPACT"
# Bytes that a name may have in any file system.
_NAME = 255


@dataclass(frozen=True, slots=True)
class PaimonSnapshot(Snapshot):
    """One snapshot of Paimon's. The manifests are names of files in the table's ``manifest``.

    ``delta_record_count`` counts as ``total_record_count`` does: rows of data files.
    """

    commit_user: str
    delta_record_count: int | None
    manifest_lists: tuple[str, ...]
    index_manifest: str | None


@dataclass(frozen=True, slots=True)
class PaimonSnapshots:
    """The snapshots of the table at ``location`` (a path or URI).

    ``storage_options`` open the location's file system; they hold secrets.
    """

    location: str
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def find(
        cls, warehouse: str, name: TableName, storage_options: Mapping[str, Any]
    ) -> PaimonSnapshots:
        """Those of the table of a filesystem catalog, in the case of letters that it has there.

        ``<table>$branch_<name>`` means a branch of the table.
        """
        database = child(warehouse, f"{name.database}.db")
        table = name.without_branch
        names = list_names(database, storage_options)
        same = [each for each in names if each.lower() == table.lower()]
        location = child(database, same[0] if table not in same and len(same) == 1 else table)
        if name.branch != MAIN_BRANCH:
            location = child(f"{location}/branch", entry_name("branch", name.branch))
        return cls(location, storage_options)

    def latest(self) -> PaimonSnapshot | None:
        """The newest snapshot; None for a table without one.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        hint = (read_text(hint_path(self._root, "LATEST"), self.storage_options) or "").strip()
        if is_id(hint):
            hinted = self.snapshot(int(hint))
            if hinted is not None and self.snapshot(hinted.snapshot_id + 1) is None:
                return hinted
        ids = self.ids()
        return self.snapshot(ids[-1]) if ids else None

    def snapshot(self, snapshot_id: int) -> PaimonSnapshot | None:
        """The snapshot of this id; None when it never was or has expired.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        path = entry_path(self._root, "snapshot", snapshot_id)
        text = read_text(path, self.storage_options)
        return None if text is None else parsed_snapshot(path, text, snapshot_id)

    def ids(self) -> list[int]:
        """The ids of all retained snapshots, ascending."""
        names = list_names(f"{self._root}/snapshot", self.storage_options)
        return ids_of("snapshot", names)

    def newest_first(self) -> Iterator[PaimonSnapshot]:
        """All retained snapshots; one that expires meanwhile is left out."""
        for snapshot_id in reversed(self.ids()):
            snapshot = self.snapshot(snapshot_id)
            if snapshot is not None:
                yield snapshot

    def made_by(self, operation_id: str) -> PaimonSnapshot | None:
        """The snapshot of an operation whose job did not get to its end; None: none is known.

        Searched from the newest back to the base that the job's guard names. A job without a guard
        has made no snapshot, or has stored its result. One that was taken back since is none. A
        compaction makes a snapshot for each of its groups, of which none tells whether it has come
        to its end.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        base = self._guarded(operation_id)
        if base is None:
            return None
        undone = Undone()
        for snapshot in self.newest_first():
            if snapshot.snapshot_id < base:
                return None
            properties = snapshot.properties
            counts = undone.counts(properties) and properties.get(STATEMENT) not in PARTIAL
            if counts and properties.get(OPERATION_ID) == operation_id:
                return snapshot
        return None

    def release(self, operation_id: str) -> None:
        """Remove an operation's guard, once its result is stored.

        Raises:
            OSError: the storage refused.
        """
        remove(self._guard(operation_id), self.storage_options)

    def _guarded(self, operation_id: str) -> int | None:
        """The first snapshot that the operation's guard keeps; None: there is no guard."""
        path = self._guard(operation_id)
        text = read_text(path, self.storage_options)
        if text is None:
            return None
        try:
            return next_snapshot(json.loads(text))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise unreadable(path, f"is not a consumer: {_short(error)}") from None

    def _guard(self, operation_id: str) -> str:
        return guard_path(self._root, operation_id)

    @property
    def _root(self) -> str:
        return self.location.rstrip("/")


def parsed_snapshot(path: str, text: str, snapshot_id: int | None = None) -> PaimonSnapshot:
    """The snapshot that a file holds, of which ``snapshot_id`` is expected; a tag is one, too.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    try:
        document = json.loads(text)
        properties = document.get("properties") or {}
        total, delta = document.get("totalRecordCount"), document.get("deltaRecordCount")
        lists = (document.get("baseManifestList"), document.get("deltaManifestList"))
        index = document.get("indexManifest")
        return PaimonSnapshot(
            snapshot_id=_number(document["id"], snapshot_id),
            schema_id=_number(document["schemaId"]),
            commit_kind=str(document["commitKind"]),
            keeps_rows=document["commitKind"] == _COMPACT,
            time_millis=_number(document["timeMillis"]),
            total_record_count=None if total is None else _number(total),
            commit_user=str(document["commitUser"]),
            delta_record_count=delta if type(delta) is int else None,
            manifest_lists=tuple(file_name(name) for name in lists if name is not None),
            index_manifest=None if index is None else file_name(index),
            properties={str(key): str(value) for key, value in properties.items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise unreadable(path, f"is not a snapshot: {_short(error)}") from None


def file_name(value: Any) -> str:
    """The name of one file, as metadata may say it.

    Raises:
        ValueError: it is not a file name.
    """
    if not isinstance(value, str) or not value or value in (".", "..") or len(value) > _NAME:
        raise ValueError("a file name is not valid")
    if any(c in "/\\" or ord(c) < 32 for c in value):
        raise ValueError("a file name leads elsewhere")
    return value


def _number(value: Any, expected: int | None = None) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError("a number is not valid, or too large")
    if expected not in (None, value):
        raise ValueError(f"it says that it is {value}")
    return value


def _short(error: Exception) -> str:
    return repr(error)[:200]


@dataclass(frozen=True, slots=True)
class PaimonHistory:
    """Snapshots by their ids, ascending; the last one is the newest."""

    ids: tuple[int, ...]

    @property
    def is_complete(self) -> bool:
        """Whether the table's first snapshot is retained, or there was none yet."""
        return not self.ids or self.ids[0] == 1

    def after(self, snapshot_id: int) -> Sequence[int] | None:
        """The ids above one; None: the newest is below it, so that the table was rolled back."""
        if snapshot_id > (self.ids[-1] if self.ids else 0):
            return None
        return self.ids[bisect_right(self.ids, snapshot_id) :]

    def expired_after(self, snapshot_id: int) -> Sequence[int]:
        """The ids between one and the oldest that is retained."""
        return range(snapshot_id + 1, self.ids[0] if self.ids else 0)
