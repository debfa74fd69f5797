"""Dropping snapshots and tags together with the files that only they need. Driver only.

The steps are: write a note of the files, remove the snapshots or tags, check again which files are
in use, remove data and index files, then manifests, then the note. In this order, every existing
snapshot and tag is readable at any moment, and the next run can finish an interrupted one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from spark_jobs.connectors.paimon.library.metadata_checks import reading_metadata, require_within
from spark_jobs.connectors.paimon.maintenance.branch_history import BranchHistories, BranchHistory
from spark_jobs.connectors.paimon.maintenance.orphan_files import stored_kind
from spark_jobs.connectors.paimon.maintenance.reachability import Reachability, References
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.shared.maintenance.removal_notes import FileFact, RemovalNotes
from spark_jobs.contract.maintenance import Kept, MaintenanceReport
from spark_jobs.contract.table_name import MAIN_BRANCH
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.storage.warehouse import Warehouse

_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class Dropping:
    """The ids of snapshots and names of tags to drop from one branch."""

    snapshots: frozenset[int] = frozenset()
    tags: frozenset[str] = frozenset()

    def within(self, other: Dropping) -> bool:
        """Whether ``other`` drops all of these, too."""
        return self.snapshots <= other.snapshots and self.tags <= other.tags


@dataclass(frozen=True, slots=True)
class RemovalPlan:
    """``files`` are to be removed; ``notes`` are of interrupted removals that this one finishes."""

    dropping: Dropping
    history: BranchHistory
    files: frozenset[str]
    kept: tuple[Kept, ...]
    notes: frozenset[str]


class RemovalPlanner:
    """Plans and carries out the removal of snapshots and tags from the branch of ``table``.

    ``now`` is the time of the table's store.
    """

    def __init__(self, table: PinnedTable, storage: Warehouse, now: datetime) -> None:
        self._table = table
        self._storage = storage
        self._now = now
        self._histories = BranchHistories(storage.filesystem, table.path)
        self._reach = Reachability(table)
        is_own = partial(_is_removable, table.path, self._reach.roots)
        folder = f"{table.path}/removal"
        self._notes = RemovalNotes(storage.filesystem, folder, reading_metadata, is_own)

    def history(self) -> BranchHistory:
        """The current history of the table's branch."""
        return self._own(self._histories.read())

    def plan(self, choose: Callable[[BranchHistory], Dropping]) -> RemovalPlan:
        """Plan to drop what ``choose`` selects; nothing is removed yet.

        Raises:
            CatalogError: METADATA_UNREADABLE: some metadata of files in use cannot be read.
            CommitError: COMMIT_CONFLICT: the files in use keep changing.
            NotSupportedError: there are changelogs that outlive their snapshots.
        """
        histories = self._histories.read()
        for _ in range(_ATTEMPTS):
            plan = self._plan(histories, choose(self._own(histories)))
            histories = self._histories.read()
            if plan.dropping.within(choose(self._own(histories))):
                return plan
        raise CommitError(
            ErrorCode.COMMIT_CONFLICT,
            f"Tags or consumers of {self._table.path} changed while it was looked at.",
            "Run it again.",
        )

    def carry_out(self, plan: RemovalPlan) -> RemovalPlan:
        """Carry out ``plan``; return it without the files that have come into use since."""
        notes = set(plan.notes)
        if plan.files and (plan.dropping.snapshots or plan.dropping.tags):
            facts = self._reach.facts
            notes.add(self._notes.write((path, facts[path].kind) for path in plan.files))
        remover, history = self._storage.remover, plan.history
        remover.remove_in_order([history.tag_path(name) for name in sorted(plan.dropping.tags)])
        remover.remove_in_order([history.snapshot_path(i) for i in sorted(plan.dropping.snapshots)])
        files = self._still_removable(plan)
        manifests = {path for path in files if self._reach.facts[path].kind == "manifest"}
        remover.remove(files - manifests)
        remover.remove(manifests)
        remover.remove(notes)
        return RemovalPlan(plan.dropping, history, frozenset(files), plan.kept, frozenset())

    def report(self, plans: Sequence[RemovalPlan], kept: Sequence[Kept] = ()) -> MaintenanceReport:
        """The report on what successive plans remove."""
        facts = [self._reach.facts[path] for plan in plans for path in plan.files]
        ids = sorted(set(plans[-1].history.snapshots) - plans[-1].dropping.snapshots)
        kinds = [fact.kind for fact in facts]
        files = Counter[str]()
        for plan in plans:
            for each in plan.kept:
                files[each.by] += each.files
        kept = [*kept, *(Kept(by, files=count) for by, count in files.items())]
        return MaintenanceReport(
            snapshots=sum(len(plan.dropping.snapshots) for plan in plans),
            tags=sum(len(plan.dropping.tags) for plan in plans),
            data_files=kinds.count("data"),
            index_files=kinds.count("index"),
            manifests=kinds.count("manifest"),
            bytes_removed=sum(fact.size for fact in facts),
            earliest_snapshot_id=ids[0] if ids else None,
            latest_snapshot_id=ids[-1] if ids else None,
            kept=tuple(sorted(kept, key=lambda each: each.by)[:100]),
        )

    def operations_since(self) -> list[datetime]:
        """When operations at work on the table, or a branch of it, last set their base guards."""
        histories = self._histories.read()
        consumers = [each for history in histories for each in history.holding(self._now)]
        return [each.modified for each in consumers if each.guards]

    def in_use(self, files: set[str] | None = None) -> set[str]:
        """The paths, of those in ``files`` if given, that any snapshot, tag or branch needs now.

        Raises:
            CatalogError: METADATA_UNREADABLE: some metadata of files in use cannot be read.
        """
        return self._reach.needed(self._roots(), files)

    def references(self) -> References:
        """What the snapshots, tags and branches refer to now, without reading the manifests.

        Raises:
            CatalogError: METADATA_UNREADABLE: some metadata of files in use cannot be read.
        """
        return self._reach.references(self._roots())

    def _roots(self) -> list[Any]:
        histories = self._histories.read()
        for history in histories:
            history.refuse_changelogs()
        return [root for history in histories for root in _roots(history)]

    def _plan(self, histories: Sequence[BranchHistory], dropping: Dropping) -> RemovalPlan:
        history = self._own(histories)
        for each in histories:
            each.refuse_changelogs()
        notes = self._notes.read()
        left = {path: kind for files in notes.values() for path, kind in files.items()}
        for path, kind in left.items():
            self._reach.facts.setdefault(path, FileFact(kind, 0))
        dropped = [history.snapshots[each] for each in dropping.snapshots]
        dropped += [history.tags[each] for each in dropping.tags]
        files = self._reach.held(dropped) | set(left)
        retained = [s for i, s in history.snapshots.items() if i not in dropping.snapshots]
        files -= self._reach.needed(retained, files)
        kept, needed = [], set()
        for by, roots in _keepers(histories, history, dropping):
            own = self._reach.needed(roots, files)
            needed |= own
            data = sum(self._reach.facts[path].kind == "data" for path in own)
            if own:
                kept.append(Kept(by, files=data))
        return RemovalPlan(
            dropping, history, frozenset(files - needed), tuple(kept), frozenset(notes)
        )

    def _still_removable(self, plan: RemovalPlan) -> set[str]:
        """The plan's files that are still unused, even by consumers that need dropped snapshots."""
        files = set(plan.files)
        files -= self.in_use(files)
        held = self.history().held_from(self._now)
        read = [plan.history.snapshots[each] for each in plan.dropping.snapshots if each >= held]
        return files - self._reach.needed(read, files)

    def _own(self, histories: Sequence[BranchHistory]) -> BranchHistory:
        return next(each for each in histories if each.folder == self._table.branch_path)


def _is_removable(table_path: str, roots: Collection[str], path: str) -> bool:
    require_within(path, roots)
    is_inside = path.startswith(f"{table_path}/")
    return not is_inside or stored_kind(table_path, path) is not None


def _roots(history: BranchHistory) -> list[Any]:
    return [*history.snapshots.values(), *history.tags.values()]


def _keepers(
    histories: Sequence[BranchHistory], own: BranchHistory, dropping: Dropping
) -> list[tuple[str, list[Any]]]:
    """The tags and other branches that need files: (name in the report, snapshots and tags)."""
    tags = [(f"tag {n}", [tag]) for n, tag in own.tags.items() if n not in dropping.tags]
    others = [each for each in histories if each.folder != own.folder]
    names = [
        "main branch" if each.name == MAIN_BRANCH else f"branch {each.name}" for each in others
    ]
    return [*tags, *((name, _roots(each)) for name, each in zip(names, others, strict=True))]
