"""Rewriting the manifests of an Iceberg table as a snapshot of ``replace``. Driver only."""

from __future__ import annotations

from functools import partial

from spark_jobs.connectors.iceberg.commit.changes import Changes
from spark_jobs.connectors.iceberg.commit.manifest_clusters import planned_rewrite
from spark_jobs.connectors.iceberg.commit.snapshot_commit import SnapshotCommits
from spark_jobs.connectors.shared.commit.commit_loop import before_publication, until_committed
from spark_jobs.contract.compaction_record import ManifestRecord
from spark_jobs.contract.properties import published_properties
from spark_jobs.spi.compaction import ManifestCommit
from spark_jobs.spi.tables import CommittedSnapshot

_Rewritten = tuple[CommittedSnapshot | None, ManifestRecord]


def rewrite_manifests(commits: SnapshotCommits, commit: ManifestCommit) -> _Rewritten:
    """What was published, and what it did; None: there was nothing to do.

    Whatever others commit meanwhile, the manifests of the newest snapshot are planned again.

    Raises:
        CommitError: COMMIT_OUTCOME_UNKNOWN, or COMMIT_CONFLICT (nothing was published).
        JobError: as ``planned_rewrite``, or raised by ``require_wanted``.
    """
    return until_committed(partial(_attempt, commits, commit))


def _attempt(commits: SnapshotCommits, commit: ManifestCommit, number: int) -> _Rewritten | None:
    with before_publication():
        latest = commits.latest()
        rewrite = planned_rewrite(latest)
        if rewrite.changes_nothing:
            return None, rewrite.record
        recorded = published_properties(commit.properties(rewrite.record), number, 0)
        changes = Changes([], [], rewrite.removed, [], replaces=True)
        summary = {**recorded, **rewrite.summary}
    snapshot = commits.publish(latest, changes, summary, commit.require_wanted, rewrite)
    return None if snapshot is None else (snapshot, rewrite.record)
