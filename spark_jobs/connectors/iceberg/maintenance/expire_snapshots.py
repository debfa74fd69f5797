"""Expiring snapshots, tags and branches, with what only they need. Driver only.

The steps are: write a note of the files, commit the metadata without the snapshots, check again
which files are in use, remove data and delete files, then manifests, lists and statistics, then the
note. In this order, every snapshot of the table is readable at any moment, and the next run can
finish an interrupted one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from spark_jobs.connectors.iceberg.commit.base_notes import BaseNotes
from spark_jobs.connectors.iceberg.commit.metadata_commits import MetadataCommits
from spark_jobs.connectors.iceberg.maintenance.expired_metadata import (
    NOTHING,
    UnreachedMetadata,
    WithoutExpired,
    refuse_losses,
    unreached_metadata,
)
from spark_jobs.connectors.iceberg.maintenance.removable_files import (
    ManifestReader,
    OwnFolders,
    RemovableFiles,
    refuse_shared_files,
)
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.connectors.shared.maintenance.removal_notes import FileFact, RemovalNotes
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec, Kept, MaintenanceReport
from spark_jobs.contract.request import TableName
from spark_jobs.contract.table_name import MAIN_BRANCH
from spark_jobs.errors import CommitError, ErrorCode, JobError, NotSupportedError
from spark_jobs.formats.iceberg.expiry import (
    Expiring,
    Limits,
    expiring,
    history,
)
from spark_jobs.formats.iceberg.holds import held
from spark_jobs.storage.files import remove_file

# How often an expiry begins again when others commit all the time.
_TRIES: Final = 10
# The number of files that are removed at a time.
_PART: Final = 10_000
_FOLDER: Final = "removal"


@dataclass(frozen=True, slots=True)
class _Plan:
    """What expires of the table that was ``read``; ``notes`` are of interrupted removals."""

    read: PinnedTable
    expiring: Expiring
    unreached: UnreachedMetadata
    files: RemovableFiles
    notes: Collection[str]


class SnapshotExpiry:
    """Expires snapshots of one table; ``now`` is the time of the store."""

    def __init__(
        self,
        commits: MetadataCommits,
        bases: BaseNotes,
        spec: ExpireSnapshotsSpec,
        now: datetime,
        require_wanted: Callable[[], None],
    ) -> None:
        self._commits = commits
        self._bases = bases
        self._spec = spec
        self._now = now
        self._require_wanted = require_wanted
        _refuse_branch(commits.name)

    def planned(self) -> MaintenanceReport:
        """What would expire now.

        Raises:
            CatalogError: METADATA_UNREADABLE: some metadata of files in use cannot be read.
            NotSupportedError, RequestError: the table must not be cleaned, or not by these limits.
        """
        table = self._commits.table()
        return _report(self._plan(table, ManifestReader(table)))

    def carried_out(self) -> MaintenanceReport:
        """Expire; raises as ``planned``.

        Raises:
            CommitError: COMMIT_CONFLICT, COMMIT_OUTCOME_UNKNOWN, REFERENCE_LOST.
            InternalError: STORAGE_UNAVAILABLE.
        """
        table = self._commits.table()
        reader = ManifestReader(table)
        for _ in range(_TRIES):
            plan = self._plan(table, reader)
            if self._expired(plan):
                return _report(plan)
            table = self._commits.table()
        raise CommitError(
            ErrorCode.COMMIT_CONFLICT,
            f"Others committed to {self._commits.name} in each of {_TRIES} tries to expire its "
            "snapshots.",
            "Run it again when fewer writers are at work on the table.",
        )

    def _plan(self, table: PinnedTable, reader: ManifestReader) -> _Plan:
        metadata, folders = table.metadata, OwnFolders.of(table)
        refuse_shared_files(self._commits.name, metadata.properties)
        at_work = self._bases.at_work(table, self._now)
        holds = held(metadata, {each.operation_id: each.base for each in at_work})
        limits = Limits.of(self._spec, metadata.properties, self._now)
        to_expire = expiring(metadata, limits, holds)
        notes = _notes(table, folders).read()
        files = RemovableFiles(reader, folders)
        for noted in notes.values():
            files.facts.update({path: FileFact(kind, 0) for path, kind in noted.items()})
        gone = frozenset(to_expire.snapshots)
        files.add(metadata, gone)
        files.keep(metadata, gone)
        unreached = self._unreached(table, gone, reader) if not holds else NOTHING
        return _Plan(table, to_expire, unreached, files, notes.keys())

    def _unreached(
        self, table: PinnedTable, gone: Collection[int], reader: ManifestReader
    ) -> UnreachedMetadata:
        """What is to be removed with the snapshots that are ``gone``."""
        if not self._spec.clean_expired_metadata:
            return NOTHING
        stay = [each for each in table.metadata.snapshots if each.snapshot_id not in gone]
        listed = reader.listed(stay, are_gone=False)
        return unreached_metadata(table, stay, listed.values())

    def _expired(self, plan: _Plan) -> bool:
        """Carry out ``plan``; False if others changed the table meanwhile."""
        notes = set(plan.notes)
        if plan.expiring.snapshots or plan.expiring.refs or plan.unreached:
            note = _note(plan)
            if not self._is_committed(plan, note):
                return False
            notes.add(note)
        self._remove_files(plan, notes)
        return True

    def _is_committed(self, plan: _Plan, note: str) -> bool:
        at_client = self._commits.catalog.decides_at_client
        change = WithoutExpired(plan.expiring, plan.unreached, at_client=at_client)
        storage = plan.read.storage.filesystem
        try:
            self._require_wanted()
            is_committed = self._commits.change(plan.read, change)
        except JobError as error:
            if error.code is not ErrorCode.COMMIT_OUTCOME_UNKNOWN:
                remove_file(storage, note)
            raise
        if not is_committed:
            remove_file(storage, note)
        return is_committed

    def _remove_files(self, plan: _Plan, notes: Collection[str]) -> None:
        now, remover = self._commits.table(), plan.read.storage.remover()
        try:
            refuse_losses(plan.read, now, plan.expiring)
        except CommitError:
            # What was lost may be got back: the next run must not finish this one.
            remover.remove(set(notes) - set(plan.notes))
            raise
        plan.files.keep(now.metadata)
        facts = plan.files.facts
        ordered = sorted(facts, key=lambda path: facts[path].kind == "manifest")
        first = sum(fact.kind != "manifest" for fact in facts.values())
        for paths in (ordered[:first], ordered[first:]):
            for start in range(0, len(paths), _PART):
                self._require_wanted()
                remover.remove(paths[start : start + _PART])
        remover.remove(notes)


def _note(plan: _Plan) -> str:
    """Note the files of a plan."""
    folders = OwnFolders.of(plan.read)
    facts = plan.files.facts.items()
    return _notes(plan.read, folders).write((path, fact.kind) for path, fact in facts)


def _notes(table: PinnedTable, folders: OwnFolders) -> RemovalNotes:
    folder = f"{folders.root}/{_FOLDER}"
    return RemovalNotes(table.storage.filesystem, folder, reading_metadata, folders.has)


def _report(plan: _Plan) -> MaintenanceReport:
    """The report on a plan that is carried out, or would be."""
    gone = frozenset(plan.expiring.snapshots)
    metadata = plan.read.metadata
    known = {each.snapshot_id: each for each in metadata.snapshots}
    main = history(known, metadata.current_snapshot_id)
    ids = [each.snapshot_id for each in main if each.snapshot_id not in gone]
    kinds = Counter(fact.kind for fact in plan.files.facts.values())
    kept = [Kept(by, snapshots=count) for by, count in plan.expiring.kept.items()]
    if plan.files.outside:
        kept.append(
            Kept("the table's folders, outside of which they are", files=len(plan.files.outside))
        )
    return MaintenanceReport(
        snapshots=len(gone),
        tags=len(plan.expiring.refs),
        schemas=len(plan.unreached.schemas),
        partition_specs=len(plan.unreached.specs),
        data_files=kinds["data"],
        index_files=kinds["index"],
        manifests=kinds["manifest"],
        bytes_removed=sum(fact.size for fact in plan.files.facts.values()),
        earliest_snapshot_id=ids[-1] if ids else None,
        latest_snapshot_id=ids[0] if ids else None,
        kept=tuple(sorted(kept, key=lambda each: each.by)[:100]),
        snapshots_left=plan.expiring.left,
    )


def _refuse_branch(name: TableName) -> None:
    if name.branch != MAIN_BRANCH:
        raise NotSupportedError(
            f"{name}: snapshots of an Iceberg table expire on all of its branches at a time.",
            f"Give the table, {name.database}.{name.without_branch}; each branch may have limits "
            "of its own.",
        )
