"""Table care: expired snapshots, orphan files, tags, rollback. Driver only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from spark_jobs.connectors.paimon.library import snapshot_files, stored_snapshots
from spark_jobs.connectors.paimon.maintenance import orphans
from spark_jobs.connectors.paimon.maintenance.branch_history import Line
from spark_jobs.connectors.paimon.maintenance.expiry import (
    Limits,
    duration_option,
    first_retained,
    held_from,
    holding,
    utc_now,
)
from spark_jobs.connectors.paimon.maintenance.orphan_search import SparkSearch
from spark_jobs.connectors.paimon.maintenance.orphans import DriverSearch, OrphanSearch
from spark_jobs.connectors.paimon.maintenance.removal_plan import Dropping, Plan, Unneeded
from spark_jobs.connectors.paimon.maintenance.rollback import Rollback
from spark_jobs.connectors.paimon.metadata import PaimonMetadata
from spark_jobs.connectors.paimon.table.refusals import refuse_tagging
from spark_jobs.connectors.paimon.table.table_handle import PaimonTable, paimon_table
from spark_jobs.contract.durations import parse_duration, parse_limit
from spark_jobs.contract.maintenance import (
    CreateTagSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    Kept,
    MaintenanceReport,
    RemoveOrphanFilesSpec,
    RollbackSpec,
)
from spark_jobs.contract.paimon_files import entry_path, hint_path
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, ErrorCode, RequestError
from spark_jobs.storage.files import replace_file
from spark_jobs.storage.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TAG_RETAINED: Final = "tag.default-time-retained"
_LONGEST_HINT: Final = 100


class PaimonMaintenance:
    """Implements ``ConnectorMaintenance``; ``clock`` tells the time by which ages are counted."""

    def __init__(
        self,
        metadata: PaimonMetadata,
        storage: Warehouse,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._metadata = metadata
        self._storage = storage
        self._clock = clock

    def expire_snapshots(
        self, name: TableName, spec: ExpireSnapshotsSpec, *, dry_run: bool
    ) -> MaintenanceReport:
        """Drop the oldest snapshots and the files that nothing else needs, in batches."""
        table, now = self._table(name), self._clock()
        limits = Limits.of(spec, table.options, now)

        def expired(line: Line) -> frozenset[int]:
            end = first_retained(line, limits, held_from(holding(line, now)))
            return frozenset(each for each in line.snapshots if each < end)

        unneeded = Unneeded(table, self._storage)
        if dry_run:
            plans = [unneeded.plan(lambda line: Dropping(expired(line)))]
        else:
            plans = list(_expired_in_batches(unneeded, expired, limits.batch))
        line, free = plans[-1].line, limits.uncapped()
        report = replace(
            unneeded.report(plans, _holders(line, free, now)),
            snapshots_left=_left(plans[-1], free, now),
        )
        if not dry_run:
            self._hint_earliest(line, report.earliest_snapshot_id)
        return report

    def remove_orphan_files(
        self,
        name: TableName,
        spec: RemoveOrphanFilesSpec,
        *,
        dry_run: bool,
        spark: SparkSession | None = None,
    ) -> MaintenanceReport:
        """Remove files that are of no snapshot, tag or branch of the table."""
        table, now = self._table(name), self._clock()
        limit = _safe_limit(spec, now)
        files = self._storage.filesystem
        search: OrphanSearch[Any] = (
            DriverSearch(table, files) if spark is None else SparkSearch(spark, table, files)
        )
        return orphans.remove(table, self._storage, search, limit, now, dry_run=dry_run)

    def create_tag(self, name: TableName, spec: CreateTagSpec) -> MaintenanceReport:
        """Name a snapshot; its file appears whole or not at all."""
        table = self._table(name)
        refuse_tagging(name, table.schema)
        snapshot = table.snapshot
        if spec.snapshot_id is not None:
            snapshot = stored_snapshots.find_snapshot(table.table, spec.snapshot_id)
        if snapshot is None:
            raise _no_snapshot(name, spec.snapshot_id)
        retention = _retention(spec, table.options)
        path = entry_path(table.branch_path, "tag", spec.tag)
        text = snapshot_files.tag_text(snapshot, retention)
        if not self._storage.files.create(path, text):
            if spec.if_not_exists:
                return MaintenanceReport()
            raise CatalogError(
                ErrorCode.TAG_EXISTS,
                f"{name} has a tag {spec.tag} already.",
                "Choose another name, delete the tag first, or set if_not_exists.",
            )
        # Whoever expires snapshots looks at the tags once more after the snapshot's file is gone.
        if stored_snapshots.find_snapshot(table.table, snapshot.id) is None:
            self._storage.remover.remove([path])
            raise _no_snapshot(name, snapshot.id)
        return MaintenanceReport(snapshot_id=snapshot.id)

    def delete_tag(
        self, name: TableName, spec: DeleteTagSpec, *, dry_run: bool
    ) -> MaintenanceReport:
        """Delete tags and the files that only they kept."""
        table = self._table(name)
        refuse_tagging(name, table.schema)
        unneeded = Unneeded(table, self._storage)

        def choose(line: Line) -> Dropping:
            if spec.tag is None:
                tags = [n for n, tag in line.tags.items() if snapshot_files.is_over(tag)]
            else:
                tags = [spec.tag] if spec.tag in line.tags else []
            return Dropping(tags=frozenset(tags))

        plan = unneeded.plan(choose)
        if spec.tag is not None and not plan.dropping.tags and not spec.if_exists:
            raise _no_tag(name, spec.tag, plan.line)
        return unneeded.report([plan if dry_run else unneeded.carry_out(plan)])

    def roll_back(
        self, name: TableName, spec: RollbackSpec, *, dag_id: str, dry_run: bool
    ) -> MaintenanceReport:
        """Drop the snapshots after one."""
        table = self._table(name)
        refuse_tagging(name, table.schema)
        line = Unneeded(table, self._storage).line()
        if spec.tag is not None and spec.tag not in line.tags:
            raise _no_tag(name, spec.tag, line)
        if spec.snapshot_id is not None and spec.snapshot_id not in line.snapshots:
            raise _no_snapshot(name, spec.snapshot_id)
        rollback = Rollback.to(line, spec)
        if not spec.force:
            rollback.refuse_loss(name, dag_id, holding(line, self._clock()))
        if not dry_run:
            rollback.carry_out(self._storage)
        return rollback.report()

    def _hint_earliest(self, line: Line, snapshot_id: int | None) -> None:
        """Tell readers where the history begins, unless they are told already."""
        path, content = hint_path(line.folder, "EARLIEST"), str(snapshot_id).encode()
        with suppress(FileNotFoundError), self._storage.filesystem.open_input_stream(path) as hint:
            if hint.read(_LONGEST_HINT) == content:
                return
        if snapshot_id is not None:
            replace_file(self._storage.filesystem, path, content)

    def _table(self, name: TableName) -> PaimonTable:
        return paimon_table(self._metadata.load_table(name))


def _safe_limit(spec: RemoveOrphanFilesSpec, now: datetime) -> datetime:
    """The moment before which orphans were stored: a past one, for others may be writing now."""
    limit = parse_limit(spec.older_than, now)
    if limit >= now:
        raise RequestError(
            ErrorCode.REQUEST_INVALID,
            f"older_than: {spec.older_than} is not before now: files that others are writing "
            "would go.",
            "Give more than the longest write takes, such as 1 d.",
        )
    return limit


def _retention(spec: CreateTagSpec, options: Mapping[str, str]) -> timedelta | None:
    """Of a new tag: the statement's, else the table's."""
    if spec.retention is not None:
        return parse_duration(spec.retention)
    text = options.get(TAG_RETAINED)
    return None if text is None else duration_option(TAG_RETAINED, text)


def _expired_in_batches(
    unneeded: Unneeded, expired: Callable[[Line], frozenset[int]], size: int
) -> Iterator[Plan]:
    """Drop what expires at the first look, the oldest first; each batch looks again before.

    The first one also finishes what an earlier run left, if nothing else.
    """
    ids = sorted(expired(unneeded.line()))
    for start in range(0, max(len(ids), 1), size):
        batch = frozenset(ids[start : start + size])

        def choose(line: Line, batch: frozenset[int] = batch) -> Dropping:
            return Dropping(batch & expired(line))

        plan = unneeded.plan(choose)
        yield unneeded.carry_out(plan)
        if plan.dropping.snapshots != batch:
            return


def _left(plan: Plan, limits: Limits, now: datetime) -> int:
    """How many snapshots stay that the limits and consumers let go."""
    end = first_retained(plan.line, limits, held_from(holding(plan.line, now)))
    return sum(each < end for each in set(plan.line.snapshots) - plan.dropping.snapshots)


def _holders(line: Line, limits: Limits, now: datetime) -> list[Kept]:
    """How many snapshots stay because of each consumer."""
    free = first_retained(line, limits, held_from([]))
    kept = []
    for consumer in holding(line, now):
        held = sum(consumer.next_snapshot <= each < free for each in line.snapshots)
        if held:
            kept.append(Kept(str(consumer), snapshots=held))
    return kept


def _no_snapshot(name: TableName, snapshot_id: int | None) -> CatalogError:
    what = "any snapshot" if snapshot_id is None else f"a snapshot {snapshot_id}"
    return CatalogError(
        ErrorCode.SNAPSHOT_NOT_FOUND,
        f"{name} does not have {what}; it may have expired.",
        "Look at the table's snapshots and tags.",
    )


def _no_tag(name: TableName, tag: str, line: Line) -> CatalogError:
    """The error for a tag that is not there."""
    known = ", ".join(sorted(line.tags)[:20]) or "none"
    return CatalogError(
        ErrorCode.TAG_NOT_FOUND, f"{name} has no tag {tag}.", f"Use one of its tags: {known}."
    )
