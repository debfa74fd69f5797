"""Expiring the oldest snapshots, with the files that only they need. Driver only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Final

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.maintenance.branch_history import BranchHistory
from spark_jobs.connectors.paimon.maintenance.removal_plan import (
    Dropping,
    RemovalPlan,
    RemovalPlanner,
)
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec, Kept, MaintenanceReport
from spark_jobs.formats.paimon.expiry import Limits, held_from
from spark_jobs.formats.paimon.metadata_files import hint_path
from spark_jobs.storage.files import read_file, replace_file
from spark_jobs.storage.warehouse import Warehouse

_LONGEST_HINT: Final = 100


def expire_snapshots(
    table: PinnedTable,
    storage: Warehouse,
    spec: ExpireSnapshotsSpec,
    now: datetime,
    require_wanted: Callable[[], None],
    *,
    dry_run: bool,
) -> MaintenanceReport:
    """Drop the snapshots that expire, in batches; ``now`` is the time of the table's store.

    ``require_wanted`` is called before each batch.

    Raises:
        CatalogError: METADATA_UNREADABLE: some metadata of files in use cannot be read.
        CommitError: COMMIT_CONFLICT: the files in use keep changing.
        NotSupportedError, RequestError: the limits cannot be honoured.
    """
    limits = Limits.of(spec, table.options, now)

    def expired(history: BranchHistory) -> frozenset[int]:
        end = history.first_retained(limits, history.held_from(now))
        return frozenset(each for each in history.snapshots if each < end)

    planner = RemovalPlanner(table, storage, now)
    if dry_run:
        plans = [planner.plan(lambda history: Dropping(expired(history)))]
    else:
        plans = list(_expired_in_batches(planner, expired, limits.batch, require_wanted))
    history, free = plans[-1].history, limits.uncapped()
    report = replace(
        planner.report(plans, _holders(history, free, now)),
        snapshots_left=_left(plans[-1], free, now),
    )
    if not dry_run:
        _hint_earliest(storage.filesystem, history, report.earliest_snapshot_id)
    return report


def _expired_in_batches(
    planner: RemovalPlanner,
    expired: Callable[[BranchHistory], frozenset[int]],
    size: int,
    require_wanted: Callable[[], None],
) -> Iterator[RemovalPlan]:
    """Drop the snapshots that expire now, oldest first; each batch checks first that they still do.

    The first batch, even if it is empty, also finishes interrupted removals.
    """
    ids = sorted(expired(planner.history()))
    for start in range(0, max(len(ids), 1), size):
        batch = frozenset(ids[start : start + size])

        def choose(history: BranchHistory, batch: frozenset[int] = batch) -> Dropping:
            return Dropping(batch & expired(history))

        plan = planner.plan(choose)
        require_wanted()
        yield planner.carry_out(plan)
        if plan.dropping.snapshots != batch:
            return


def _left(plan: RemovalPlan, limits: Limits, now: datetime) -> int:
    """How many of the remaining snapshots could expire under ``limits`` and the consumers."""
    end = plan.history.first_retained(limits, plan.history.held_from(now))
    return sum(each < end for each in set(plan.history.snapshots) - plan.dropping.snapshots)


def _holders(history: BranchHistory, limits: Limits, now: datetime) -> list[Kept]:
    """How many snapshots each consumer keeps from expiring."""
    free = history.first_retained(limits, held_from([]))
    kept = []
    for consumer in history.holding(now):
        held = sum(consumer.next_snapshot <= each < free for each in history.snapshots)
        if held:
            kept.append(Kept(str(consumer), snapshots=held))
    return kept


def _hint_earliest(
    filesystem: pafs.FileSystem, history: BranchHistory, snapshot_id: int | None
) -> None:
    """Write the EARLIEST hint, unless it is known to be up to date."""
    path, content = hint_path(history.folder, "EARLIEST"), str(snapshot_id).encode()
    # One that somebody replaces or removes meanwhile cannot be read, either.
    with suppress(OSError):
        if read_file(filesystem, path, _LONGEST_HINT) == content:
            return
    if snapshot_id is not None:
        replace_file(filesystem, path, content)
