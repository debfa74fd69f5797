"""Snapshots of a Paimon table, read from their JSON files: no pypaimon, no Spark, no JVM.

The layout is that of Paimon's file store: ``<table>/snapshot/snapshot-<id>`` and the hints
``LATEST`` and ``EARLIEST``, of which none is to be trusted unchecked. The same for a branch is in
``<table>/branch/branch-<name>``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_merge.metadata.storage import list_names, read_text, remove, unreadable
from spark_jobs.contract.properties import OPERATION_ID

_PREFIX = "snapshot-"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One snapshot. ``time_millis`` counts from 1970-01-01 UTC; ``properties`` are the writer's."""

    snapshot_id: int
    schema_id: int
    commit_user: str
    commit_kind: str
    time_millis: int
    total_record_count: int | None
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PaimonSnapshots:
    """The snapshots of the table at ``location`` (a path or URI).

    ``storage_options`` open the location's file system; they hold secrets.
    """

    location: str
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def find(cls, location: str, storage_options: Mapping[str, Any]) -> PaimonSnapshots:
        """Those of the table at ``location``, or of the only one that differs from it in case.

        ``<table>$branch_<name>`` as the last part of ``location`` means a branch of the table.
        """
        database, _, last = location.rpartition("/")
        table, _, branch = last.partition("$branch_")
        names = list_names(database, storage_options)
        same = [name for name in names if name.lower() == table.lower()]
        found = same[0] if table not in same and len(same) == 1 else table
        folder = "" if branch in ("", "main") else f"/branch/branch-{branch}"
        return cls(f"{database}/{found}{folder}", storage_options)

    def latest(self) -> Snapshot | None:
        """The newest snapshot; None for a table without one.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        hint = read_text(f"{self._folder}/LATEST", self.storage_options) or ""
        if hint.strip().isdecimal():
            hinted = self.snapshot(int(hint))
            if hinted is not None and self.snapshot(hinted.snapshot_id + 1) is None:
                return hinted
        ids = self.ids()
        return self.snapshot(ids[-1]) if ids else None

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot of this id; None when it never was or has expired.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        path = f"{self._folder}/{_PREFIX}{snapshot_id}"
        text = read_text(path, self.storage_options)
        return None if text is None else _parsed(path, text)

    def ids(self) -> list[int]:
        """The ids of all retained snapshots, ascending."""
        names = list_names(self._folder, self.storage_options)
        found = [name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX)]
        return sorted(int(number) for number in found if number.isdecimal())

    def newest_first(self) -> Iterator[Snapshot]:
        """All retained snapshots; one that expires meanwhile is left out."""
        for snapshot_id in reversed(self.ids()):
            snapshot = self.snapshot(snapshot_id)
            if snapshot is not None:
                yield snapshot

    def made_by(self, operation_id: str) -> Snapshot | None:
        """The snapshot of an operation whose job did not get to its end; None: none is known.

        Searched from the newest back to the base that the job's guard names. A job without a guard
        has made no snapshot, or has stored its result.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        base = self._guarded(operation_id)
        if base is None:
            return None
        for snapshot in self.newest_first():
            if snapshot.snapshot_id < base:
                return None
            if snapshot.properties.get(OPERATION_ID) == operation_id:
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
            return int(json.loads(text)["nextSnapshot"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise unreadable(path, f"is no consumer: {error!r}") from None

    def _guard(self, operation_id: str) -> str:
        # A consumer of Paimon: every engine's expiry keeps its snapshot and all later ones.
        return f"{self.location.rstrip('/')}/consumer/consumer-merge-{operation_id}"

    @property
    def _folder(self) -> str:
        return f"{self.location.rstrip('/')}/snapshot"


def _parsed(path: str, text: str) -> Snapshot:
    try:
        document = json.loads(text)
        properties = document.get("properties") or {}
        total = document.get("totalRecordCount")
        return Snapshot(
            snapshot_id=int(document["id"]),
            schema_id=int(document["schemaId"]),
            commit_user=str(document["commitUser"]),
            commit_kind=str(document["commitKind"]),
            time_millis=int(document["timeMillis"]),
            total_record_count=None if total is None else int(total),
            properties={str(key): str(value) for key, value in properties.items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise unreadable(path, f"is no snapshot: {error!r}") from None
