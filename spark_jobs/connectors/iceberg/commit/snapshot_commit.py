"""A snapshot after the head of a branch: written, and published through the catalog. Driver only.

Every answer of the catalog but success and a certain refusal is unknown: then the table is asked
for the snapshot, and the same commit is sent again.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from spark_jobs.connectors.iceberg.commit.base_notes import base_of
from spark_jobs.connectors.iceberg.commit.changes import Changes, with_siblings
from spark_jobs.connectors.iceberg.commit.history import snapshots_since
from spark_jobs.connectors.iceberg.commit.manifest_clusters import ManifestRewrite
from spark_jobs.connectors.iceberg.commit.metadata_commits import asked
from spark_jobs.connectors.iceberg.commit.new_manifests import SnapshotFiles
from spark_jobs.connectors.iceberg.library.catalogs import IcebergCatalog
from spark_jobs.connectors.iceberg.metadata import IcebergMetadata
from spark_jobs.connectors.iceberg.table.commits import summary_of
from spark_jobs.connectors.iceberg.table.live_files import listed_manifests
from spark_jobs.connectors.iceberg.table.manifests import (
    DATA,
    DELETED,
    DELETES,
    ManifestEntry,
    read_manifest,
)
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, pinned_table
from spark_jobs.connectors.iceberg.table.table_spec import evolved
from spark_jobs.connectors.shared.commit.commit_loop import before_publication, publish_once
from spark_jobs.connectors.shared.commit.refusals import READ_AGAIN
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.spi.tables import CommittedSnapshot, TableHandle


@dataclass(frozen=True, slots=True)
class SnapshotCommits:
    """Publishes snapshots of ``table``, each after the head of its branch at that time.

    ``source``: the id of a snapshot without which nothing is to be published.
    """

    catalog: IcebergCatalog
    metadata: IcebergMetadata
    table: TableHandle
    source: int | None = None

    def latest(self) -> PinnedTable:
        """The table as it is now, with the columns that the statement adds.

        Raises:
            CommitError: COMMIT_CONFLICT: its schema or partition spec is another one.
        """
        latest, base = pinned_table(self.metadata.load_table(self.table.name)), self.table
        read, changes = pinned_table(base), base.schema_changes
        mine, now = (read.evolved_from or read).metadata, latest.metadata
        for what, one, other in (
            ("table itself was replaced", mine.table_uuid, now.table_uuid),
            ("schema changed", *(_schema_ids(each, bool(changes)) for each in (mine, now))),
            ("partition spec changed", *(_specs(each) for each in (mine, now))),
            ("format changed", mine.format_version, now.format_version),
        ):
            if one != other:
                raise CommitError(
                    ErrorCode.COMMIT_CONFLICT,
                    f"{base.name}: its {what} while the statement ran.",
                    READ_AGAIN,
                )
        return evolved(base.name, latest, changes) if changes else latest

    def publish(
        self,
        latest: PinnedTable,
        changes: Changes,
        recorded: Mapping[str, str],
        require_wanted: Callable[[], None],
        rewrite: ManifestRewrite | None = None,
    ) -> CommittedSnapshot | None:
        """Publish ``changes`` after ``latest``; None if another writer was faster.

        ``rewrite``: they are those of a rewrite of manifests, which is planned for ``latest``.

        Raises:
            CommitError: COMMIT_OUTCOME_UNKNOWN; COMMIT_CONFLICT: a file is gone.
            InternalError: STORAGE_UNAVAILABLE (nothing was published).
            JobError: raised by ``require_wanted`` (nothing was published).
        """
        with before_publication():
            snapshot_id = int(latest.metadata.new_snapshot_id())
            files = SnapshotFiles(latest, snapshot_id)
            try:
                snapshot = _snapshot(latest, files, changes, recorded, snapshot_id, rewrite)
            except BaseException:
                files.discard()
                raise
        is_stored = publish_once(
            f"snapshot {snapshot_id}",
            require_wanted,
            partial(self._store, latest, snapshot),
            partial(self._look_up, latest, snapshot),
            files.discard,
        )
        return CommittedSnapshot(snapshot_id, recorded) if is_stored else None

    def _store(self, latest: PinnedTable, snapshot: Any) -> bool:
        """Ask the catalog to commit; returns and raises as ``asked``."""
        look_up = partial(self._look_up, latest, snapshot)
        required, updates = catalog_changes(latest, snapshot)
        if snapshot.first_row_id is not None and self.catalog.decides_at_client:
            required = (*required, _LastNumber(latest.last_sequence_number))
        if self.source is not None:
            updates = (*_naming(self.source), *updates)
        return asked(self.catalog, latest.table, required, updates, look_up)

    def _look_up(self, latest: PinnedTable, snapshot: Any) -> bool | None:
        """Whether the snapshot was committed; None: it was not, but may still be."""
        now = pinned_table(self.metadata.load_table(self.table.name))
        if now.metadata.snapshot_by_id(snapshot.snapshot_id) is not None:
            return True
        # No catalog takes a snapshot whose ids of rows are taken.
        if snapshot.first_row_id is not None and now.next_row_id > snapshot.first_row_id:
            return False
        is_late = now.last_sequence_number != latest.last_sequence_number
        # Only the first snapshot of a branch may have a number that another one has taken.
        if is_late and latest.snapshot is not None:
            return False
        return False if snapshots_since(now, base_of(latest)) else None


@dataclass(frozen=True, slots=True)
class _LastNumber:
    """A requirement as pyiceberg's, which compares no numbers of version 3: that of the table."""

    number: int

    def validate(self, base_metadata: Any) -> None:
        """Raise pyiceberg's error if there is a later snapshot."""
        from pyiceberg.exceptions import CommitFailedException

        if base_metadata is None or base_metadata.last_sequence_number != self.number:
            raise CommitFailedException("there is a later snapshot")


def _snapshot(
    latest: PinnedTable,
    files: SnapshotFiles,
    changes: Changes,
    recorded: Mapping[str, str],
    snapshot_id: int,
    rewrite: ManifestRewrite | None,
) -> Any:
    from pyiceberg.table.snapshots import Operation, Snapshot, Summary

    if rewrite is None:
        changes = with_siblings(latest, changes, files.written)
        entries = _listed(latest, files, changes)
    else:
        entries = files.clustered(rewrite)
    before = summary_of(latest.snapshot)
    summary = {**changes.summary(before), **recorded}
    fields: dict[str, Any] = {
        "snapshot-id": snapshot_id,
        "parent-snapshot-id": None if latest.snapshot is None else latest.snapshot.snapshot_id,
        "manifest-list": files.manifest_list(entries),
        # Snapshots must not be much older than the table, whatever the clocks say.
        "timestamp-ms": max(int(time.time() * 1000), latest.metadata.last_updated_ms),
        "sequence-number": latest.metadata.next_sequence_number(),
        "summary": Summary(operation=Operation(changes.operation), **summary),
        "schema-id": latest.metadata.current_schema_id,
    }
    if files.row_ids is not None:
        fields["first-row-id"], fields["added-rows"] = files.row_ids
    return Snapshot(**fields)


def _listed(latest: PinnedTable, files: SnapshotFiles, changes: Changes) -> list[Mapping[str, Any]]:
    """The manifests of the head, with those of the changes."""
    new = [*files.manifests(changes.added, DATA), *files.manifests(changes.deletes, DELETES)]
    kept = _kept(latest, files, changes)
    with reading_metadata(latest.place):
        return files.merged([*new, *kept])


def _schema_ids(metadata: Any, evolves: bool) -> tuple[int, int]:
    """The current schema, and the last column of any: new files have the ids that follow."""
    return metadata.current_schema_id, metadata.last_column_id if evolves else 0


def _specs(metadata: Any) -> tuple[int, int]:
    """The current partition spec, and the newest one: files of it may have been added meanwhile."""
    return metadata.default_spec_id, max(each.spec_id for each in metadata.partition_specs)


def _kept(latest: PinnedTable, files: SnapshotFiles, changes: Changes) -> list[Mapping[str, Any]]:
    """The manifests of the head; those with a removed file are written again."""
    if latest.snapshot is None:
        return []
    left, written = set(changes.removed), {}
    with reading_metadata(latest.place):
        listed = listed_manifests(latest.storage, latest.snapshot.manifest_list)
        # Unless manifests have been merged meanwhile, a file is where it was.
        known = {each.listed_in for each in changes.removed.values()}
        for manifest in sorted(listed, key=lambda one: one.path not in known):
            kinds = {_kind(changes.removed[key]) for key in left}
            if (manifest.spec_id, manifest.content == DATA) not in kinds:
                continue
            content = latest.storage.read(manifest.path)
            entries = read_manifest(content, manifest)
            removed_keys = left & {entry.key for entry in entries if entry.status != DELETED}
            if removed_keys:
                left -= removed_keys
                written[manifest.path] = files.without(manifest, content, removed_keys)
    if left:
        raise CommitError(
            ErrorCode.COMMIT_CONFLICT,
            f"{latest.place} has no file {min(left)[0]} any more, which the statement changes.",
            READ_AGAIN,
        )
    return [written.get(each.path, each.record) for each in listed]


def _kind(entry: ManifestEntry) -> tuple[int, bool]:
    """What manifests an entry may be in: those of its spec, of data or deletes."""
    return entry.spec_id, entry.content == DATA


def _naming(snapshot_id: int) -> tuple[Any, ...]:
    """Updates that change nothing, and that no catalog makes unless the table has the snapshot."""
    from pyiceberg.table import update

    name = f"merge-{uuid.uuid4().hex}"
    tag: dict[str, Any] = {"ref-name": name, "type": "tag", "snapshot-id": snapshot_id}
    gone: dict[str, Any] = {"ref-name": name}
    return update.SetSnapshotRefUpdate(**tag), update.RemoveSnapshotRefUpdate(**gone)


def catalog_changes(latest: PinnedTable, snapshot: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """What the catalog is to require and to change."""
    from pyiceberg.table import update

    metadata = (latest.evolved_from or latest).metadata
    reference = metadata.refs.get(latest.branch)
    head: dict[str, Any] = {
        "ref": latest.branch,
        "snapshot-id": reference.snapshot_id if reference else None,
    }
    schema: dict[str, Any] = {"current-schema-id": metadata.current_schema_id}
    spec: dict[str, Any] = {"default-spec-id": metadata.default_spec_id}
    moved: dict[str, Any] = {
        "ref-name": latest.branch,
        "type": "branch",
        "snapshot-id": snapshot.snapshot_id,
        "max-ref-age-ms": getattr(reference, "max_ref_age_ms", None),
        "max-snapshot-age-ms": getattr(reference, "max_snapshot_age_ms", None),
        "min-snapshots-to-keep": getattr(reference, "min_snapshots_to_keep", None),
    }
    required = (
        update.AssertTableUUID(uuid=metadata.table_uuid),
        update.AssertRefSnapshotId(**head),
        update.AssertCurrentSchemaId(**schema),
        update.AssertDefaultSpecId(**spec),
        *required_columns(latest),
    )
    added = update.AddSnapshotUpdate(snapshot=snapshot)
    return required, (*latest.schema_updates, added, update.SetSnapshotRefUpdate(**moved))


def required_columns(latest: PinnedTable) -> Iterator[Any]:
    """What the catalog is to require so that new columns get the ids that files have."""
    from pyiceberg.table.update import AssertLastAssignedFieldId

    if latest.evolved_from is not None:
        last: dict[str, Any] = {
            "last-assigned-field-id": latest.evolved_from.metadata.last_column_id
        }
        yield AssertLastAssignedFieldId(**last)
