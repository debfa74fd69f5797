"""Committing a write as one snapshot, through the catalog. Driver only.

The change is prepared once. Each attempt reads what others committed meanwhile, refuses conflicts,
and publishes a snapshot after the head of the branch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from spark_jobs.connectors.iceberg.commit.changes import changes_of
from spark_jobs.connectors.iceberg.commit.conflicts import refuse_conflicts
from spark_jobs.connectors.iceberg.commit.gap import Gap
from spark_jobs.connectors.iceberg.commit.key_conflicts import KeyConflicts
from spark_jobs.connectors.iceberg.commit.snapshot_commit import SnapshotCommits
from spark_jobs.connectors.iceberg.table.pinned_table import pinned_table
from spark_jobs.connectors.shared.commit.commit_loop import before_publication, until_committed
from spark_jobs.contract.properties import published_properties
from spark_jobs.spi.tables import CommittedSnapshot
from spark_jobs.spi.writes import Fragment, MergeWrite


@dataclass(frozen=True, slots=True)
class MergeCommit:
    """The commit of ``write``, which is based on the snapshot that its table is pinned at.

    ``properties`` are what the snapshot is to record, still without the metrics of publishing.
    """

    commits: SnapshotCommits
    write: MergeWrite
    properties: Mapping[str, str]

    def run(self, fragments: Sequence[Fragment]) -> CommittedSnapshot:
        """Publish the fragments as one snapshot.

        Raises:
            CommitError: COMMIT_CONFLICT (nothing was published) or COMMIT_OUTCOME_UNKNOWN.
            InternalError: STORAGE_UNAVAILABLE (nothing was published).
            JobError: raised by ``require_wanted`` (nothing was published).
        """
        with before_publication():
            base = pinned_table(self.commits.table)
            changes = changes_of(base, fragments, overwrites=self.write.overwrites)
            keys, gap = KeyConflicts(self.commits.table.name, base, changes), Gap(base)
        return until_committed(partial(self._attempt, keys, gap))

    def _attempt(self, keys: KeyConflicts, gap: Gap, number: int) -> CommittedSnapshot | None:
        """The new snapshot; None if another writer was faster."""
        with before_publication():
            latest = self.commits.latest()
            gap.read_up_to(latest)
            refuse_conflicts(gap, keys, self.write)
            recorded = published_properties(self.properties, number, len(gap.commits))
        return self.commits.publish(latest, keys.changes, recorded, self.write.require_wanted)
