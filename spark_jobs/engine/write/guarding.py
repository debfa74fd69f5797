"""Guards: limits of what a statement may do, checked before it writes and before it publishes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Final

from spark_jobs.contract.approval import Ticket, stale
from spark_jobs.contract.guards import Guards, Limit, exact, percent
from spark_jobs.contract.result import GuardReport, Metrics, PartitionMetrics
from spark_jobs.errors import DataError, ErrorCode
from spark_jobs.spi.connector import ConnectorScan
from spark_jobs.spi.tables import PlannedFile, TableHandle

# What counts of rows say of a limit, by the end of its name.
_COUNTS: Final = {
    "deleted_rows": "deleted",
    "updated_rows": "updated",
    "inserted_rows": "inserted",
}
# The parameter that has checks of rows.
_CHECKS: Final = "checks"


@dataclass(frozen=True, slots=True)
class CheckReports:
    """What checks of rows have found; ``failures`` are for people, a sentence for each."""

    reports: tuple[GuardReport, ...] = ()
    failures: tuple[str, ...] = ()


NO_CHECKS: Final = CheckReports()


@dataclass(frozen=True)
class Guarding:
    """The guards of one run on the files ``planned`` of ``table``.

    ``reports_only``: what does not hold is no error, as in a dry run. ``approved``: the changes are
    exactly those of the dry run.
    """

    guards: Guards
    table: TableHandle
    scan: ConnectorScan
    planned: Sequence[PlannedFile]
    reports_only: bool
    approved: Ticket | None = None

    def before_writing(self, metrics: Metrics, touched: Sequence[PlannedFile]) -> Metrics:
        """Check what is known before the first byte is written.

        ``touched`` are the files that may be rewritten or replaced. Returns ``metrics`` with the
        guards that were checked.

        Raises:
            DataError: GUARD_FAILED.
        """
        return self._held(metrics, [*self._source_rows(metrics), *self._costs(touched)])

    def before_publishing(
        self,
        metrics: Metrics,
        checks: CheckReports,
        by_partition: Sequence[PartitionChange] = (),
    ) -> Metrics:
        """Check what the statement has done, which nobody sees yet; as ``before_writing``.

        ``checks``: what the checks of rows have found. ``by_partition``: what it did in each
        partition.

        Raises:
            DataError: GUARD_FAILED, for all guards and checks that do not hold.
            CommitError: APPROVAL_STALE.
        """
        self._require_approved(metrics)
        found = [*self._counts(metrics), *self._shares(metrics), *self._partitions(by_partition)]
        return self._held(metrics, found, checks)

    def _held(
        self, metrics: Metrics, found: Sequence[GuardReport], checks: CheckReports = NO_CHECKS
    ) -> Metrics:
        tripped = [each for each in found if not each.held]
        failed = [*map(_sentence, tripped), *checks.failures]
        if failed and not self.reports_only:
            raise DataError(
                ErrorCode.GUARD_FAILED,
                f"{'; '.join(failed)}. Nothing of it was published.",
                "Look at what it would do with dry_run, and correct the source or the statement; "
                "change the guard or the check if the rows are right.",
                name=tripped[0].name if tripped else _CHECKS,
            )
        return replace(metrics, guards=(*metrics.guards, *found, *checks.reports))

    def _require_approved(self, metrics: Metrics) -> None:
        if self.approved is None:
            return
        for name in ("inserted", "updated", "deleted"):
            was, now = getattr(self.approved, name), getattr(metrics, name)
            if was != now:
                raise stale(f"{was:,} rows would have been {name}, and {now:,} would be now")

    def _source_rows(self, metrics: Metrics) -> Iterator[GuardReport]:
        for name in ("min_source_rows", "max_source_rows"):
            limit: Limit | None = getattr(self.guards, name)
            if limit is not None:
                yield self._compared(name, limit, metrics.source_rows)

    def _counts(self, metrics: Metrics) -> Iterator[GuardReport]:
        for ending, count in _COUNTS.items():
            for name in (f"min_{ending}", f"max_{ending}"):
                limit: Limit | None = getattr(self.guards, name)
                if limit is not None:
                    yield self._compared(name, limit, getattr(metrics, count))

    def _compared(self, name: str, limit: Limit, seen: int) -> GuardReport:
        bound = limit.number if limit.number is not None else limit.of(self._table_rows)
        held = seen >= bound if name.startswith("min_") else seen <= bound
        return GuardReport(name, str(limit), f"{seen:,}", held)

    def _costs(self, touched: Sequence[PlannedFile]) -> Iterator[GuardReport]:
        files, size = self.guards.max_files_rewritten, self.guards.max_bytes_rewritten
        if files is not None:
            held = len(touched) <= files.of(len(self.planned))
            yield GuardReport("max_files_rewritten", str(files), f"{len(touched):,}", held)
        if size is not None:
            seen = sum(file.size for file in touched)
            yield GuardReport("max_bytes_rewritten", f"{size:,}", f"{seen:,}", seen <= size)

    def _shares(self, metrics: Metrics) -> Iterator[GuardReport]:
        changed = metrics.deleted + metrics.updated
        for name, count in (("max_deleted_share", metrics.deleted), ("max_changed_share", changed)):
            limit: float | None = getattr(self.guards, name)
            if limit is not None:
                share = _share(count, self._table_rows if count else 0)
                held = share <= exact(limit)
                yield GuardReport(name, percent(limit), percent(float(share)), held)

    def _partitions(self, changes: Sequence[PartitionChange]) -> Iterator[GuardReport]:
        limits = {
            "max_partition_deleted_share": self.guards.max_partition_deleted_share,
            "max_partition_changed_share": self.guards.max_partition_changed_share,
        }
        given = {name: limit for name, limit in limits.items() if limit is not None}
        totals = [self._rows(each.files) if given and each.changed else 0 for each in changes]
        for name, limit in given.items():
            most, place = Fraction(0), ""
            for change, total in zip(changes, totals, strict=True):
                metrics = change.metrics
                count = metrics.deleted if name.endswith("deleted_share") else change.changed
                share = _share(count, total)
                if share > most:
                    most, place = share, metrics.name
            held = most <= exact(limit)
            seen = percent(float(most))
            yield GuardReport(name, percent(limit), seen, held, "" if held else place)

    @cached_property
    def _table_rows(self) -> int:
        """The table's rows before the statement; where files do not tell them, they are read."""
        return self._rows(self.planned)

    def _rows(self, files: Sequence[PlannedFile]) -> int:
        return row_count(self.scan, self.table, files)


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """What a statement does in a partition, whose ``files`` were there before."""

    metrics: PartitionMetrics
    files: Sequence[PlannedFile]

    @property
    def changed(self) -> int:
        """The rows that were there, and are deleted, updated or moved away."""
        return self.metrics.deleted + max(self.metrics.updated, self.metrics.left)


def _share(count: int, total: int) -> Fraction:
    return Fraction(count, total) if total else Fraction(int(count > 0))


def _sentence(report: GuardReport) -> str:
    place = f" in partition {report.partition}" if report.partition else ""
    most = "least" if report.name.startswith("min_") else "most"
    return f"{report.name}: {report.seen}{place}, allowed at {most} {report.limit}"


def row_count(scan: ConnectorScan, table: TableHandle, files: Sequence[PlannedFile]) -> int:
    """The exact number of rows in ``files``; only those without an exact count are read."""
    unknown = [file for file in files if not file.has_exact_count]
    known = sum(file.live_row_count for file in files if file.has_exact_count)
    return known + (scan.count_rows(table, unknown) if unknown else 0)
