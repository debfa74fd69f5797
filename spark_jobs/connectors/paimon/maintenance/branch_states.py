"""Where two branches of a table part, and what one of them has more. Driver only."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from spark_jobs.connectors.paimon.commit.new_snapshot import Change
from spark_jobs.connectors.paimon.format.manifest_entries import ADD
from spark_jobs.connectors.paimon.library import index_manifest, manifest_files
from spark_jobs.connectors.paimon.maintenance.branch_history import BranchHistory
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.contract.properties import DAG_ID
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CommitError, ErrorCode, NotSupportedError
from spark_jobs.formats.paimon.branches import PUBLISHED_HEAD

# How many commits an error has.
_COMMITS: Final = 10


def is_same_state(one: Any, other: Any) -> bool:
    """Whether two snapshots, or tags, are one and the same, or one publishes the other."""
    return not _names_of(one).isdisjoint(_names_of(other))


def _names_of(snapshot: Any) -> set[str]:
    published = (snapshot.properties or {}).get(PUBLISHED_HEAD)
    return {snapshot.delta_manifest_list} | ({published} if published else set())


def require_forward(
    name: TableName, own: BranchHistory, other: BranchHistory, head: Any | None
) -> Any | None:
    """The snapshot of ``other`` that has what ``head``, the latest one of ``own``, has.

    None: both have nothing.

    Raises:
        CommitError: BRANCHES_DIVERGED: names the commits that ``other`` does not have.
    """
    known = [*other.snapshots.values(), *other.tags.values()]
    if head is None:
        return None
    same_states = [each for each in known if is_same_state(each, head)]
    if same_states:
        return max(same_states, key=lambda each: each.id)
    mine = [own.snapshots[each] for each in sorted(own.snapshots, reverse=True)]
    apart = []
    for snapshot in mine:
        if any(is_same_state(each, snapshot) for each in known):
            break
        apart.append(snapshot)
    apart = apart or [head]
    more = f" and {len(apart) - _COMMITS} more" if len(apart) > _COMMITS else ""
    raise diverged(
        name, own.name, other.name, f"{', '.join(map(_told, apart[:_COMMITS]))}{more} since"
    )


def diverged(name: TableName, own: str, other: str, what: str) -> CommitError:
    """The error for a branch that has ``what`` (``snapshot 7 since``), and the other has not."""
    return CommitError(
        ErrorCode.BRANCHES_DIVERGED,
        f"{name}: the branch {own} cannot be fast-forwarded to {other}, which does not come from "
        f"it as it is now: it got {what}.",
        "Make the branch anew and repeat the statements there, or merge the rows of the branch.",
    )


def _told(snapshot: Any) -> str:
    maker = (snapshot.properties or {}).get(DAG_ID)
    by = f"DAG {maker}" if maker else f"user {snapshot.commit_user}"
    return f"snapshot {snapshot.id} ({snapshot.commit_kind}) of {by}"


def newer_schemas(
    name: TableName, own: str, other: str, mine: Mapping[int, str], theirs: Mapping[int, str]
) -> dict[int, str]:
    """The schemas that the branch ``other`` has more, by id, in ascending order.

    Raises:
        CommitError: BRANCHES_DIVERGED: both have others of the same id, or ``own`` has more.
    """
    last = max(theirs, default=-1)
    for number, text in mine.items():
        if number > last or (number in theirs and json.loads(text) != json.loads(theirs[number])):
            raise diverged(name, own, other, f"schema {number}")
    newest = max(mine, default=-1)
    return {number: text for number, text in theirs.items() if number > newest}


@dataclass(frozen=True, slots=True)
class Difference:
    """What the head of a branch has more and less than a snapshot that it comes from.

    ``table`` is the branch, whose schemas describe all files of both. ``between`` are the snapshots
    after ``base``, as far as they have not expired.
    """

    name: TableName
    table: PinnedTable
    base: Any | None
    head: Any
    between: Sequence[Any]

    def change(self, base: Any | None, next_id: int) -> Change:
        """The change that turns snapshot ``base`` of another branch into the head.

        Raises:
            CatalogError: METADATA_UNREADABLE.
            NotSupportedError: it cannot be told as one change; gives the reason.
        """
        entries = self._entries(base)
        self._refuse_late_columns(entries, next_id)
        before, after = self._indexes(base), self._indexes(self.head)
        return Change(
            entries,
            [entry for name, entry in after.items() if name not in before],
            [index_manifest.removed_index(e) for name, e in before.items() if name not in after],
            overwrites=False,
            changelog=self._changelog(),
            compacts=self._is_compaction(entries),
        )

    def completed(self, snapshot: Any) -> Any:
        """A new snapshot with all that the head states."""
        return replace(
            snapshot,
            next_row_id=self.head.next_row_id,
            statistics=self.head.statistics,
            watermark=self.head.watermark,
        )

    def _entries(self, base: Any | None) -> list[Any]:
        """The net change, from the manifests that only one of the two has."""
        table = self.table.table
        old = {e.file_name: e for e in manifest_files.listed_manifests(table, base)}
        new = {e.file_name: e for e in manifest_files.listed_manifests(table, self.head)}
        counts: Counter[Any] = Counter()
        entries: dict[Any, Any] = {}
        for sign, listed, others in ((-1, old, new), (1, new, old)):
            for manifest in (each for name, each in listed.items() if name not in others):
                for entry in manifest_files.manifest_entries(table, manifest):
                    key = manifest_files.file_key(entry)
                    counts[key] += sign if entry.kind == ADD else -sign
                    if entry.kind == ADD:
                        entries[key] = entry
                    entries.setdefault(key, entry)
        removed = [manifest_files.removed_entry(entries[key]) for key in entries if counts[key] < 0]
        return [*removed, *(replace(entries[key], kind=ADD) for key in entries if counts[key] > 0)]

    def _indexes(self, snapshot: Any | None) -> dict[str, Any]:
        if snapshot is None:
            return {}
        files = index_manifest.index_files(self.table.table, snapshot)
        return {index_manifest.index_name(each.entry): each.entry for each in files}

    def _is_compaction(self, entries: Sequence[Any]) -> bool:
        first = self.base.id if self.base is not None else 0
        is_all = len(self.between) == self.head.id - first
        kinds = {each.commit_kind for each in self.between}
        return bool(entries) and is_all and kinds == {"COMPACT"}

    def _changelog(self) -> Sequence[Any]:
        """The entries of changelog files, of a branch with one commit.

        Those of several cannot be told as one: a key would have changed several times at once.
        """
        producer = self.table.options.get("changelog-producer", "none").lower()
        with_changelog = [each for each in self.between if each.changelog_manifest_list is not None]
        first = self.base.id if self.base is not None else 0
        if not with_changelog and (producer == "none" or len(self.between) == self.head.id - first):
            return ()
        if len(with_changelog) == 1 and self.head.id == first + 1:
            listed = manifest_files.listed_changelog(self.table.table, self.head)
            if listed is not None:
                table = self.table.table
                return [e for each in listed for e in manifest_files.manifest_entries(table, each)]
        raise NotSupportedError(
            f"{self.name} has a changelog, and its branch has several commits: their changes "
            "cannot be told to readers of the changelog as those of one snapshot.",
            "Change the branch by one statement, or merge its rows into the table.",
        )

    def _refuse_late_columns(self, entries: Sequence[Any], next_id: int) -> None:
        """Refuse columns that a later commit could not replace: the newest has the last word."""
        if not self.table.evolves_columns:
            return
        added = [each.file.max_sequence_number for each in entries if each.kind == ADD]
        if max(added, default=0) > next_id:
            raise NotSupportedError(
                f"{self.name} has data evolution, and its branch has several commits: the numbers "
                "by which their files are ordered would be ahead of the table's snapshots.",
                "Change the branch by one statement, or merge its rows into the table.",
            )
