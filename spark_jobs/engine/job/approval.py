"""Doing exactly what was approved: the ticket of a dry run, made and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_jobs.contract.approval import SourceEvidence, Ticket, stale
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import Metrics
from spark_jobs.engine.source.pinned_tables import columns_digest, snapshot_digest
from spark_jobs.errors import CommitError, NotSupportedError
from spark_jobs.spi.tables import TableHandle

if TYPE_CHECKING:
    from spark_jobs.contract.statements import Statement
    from spark_jobs.engine.write.statement_run import StatementRun
    from spark_jobs.spi.connector import ConnectorMetadata


def ticket_of(
    request: JobRequest,
    table: TableHandle,
    run: StatementRun[Statement],
    metrics: Metrics,
) -> Ticket:
    """The ticket of a dry ``run`` of ``request`` on ``table``, whose columns it may evolve."""
    changes = tuple(map(str, run.table.schema_changes))
    return Ticket(
        operation_id=request.operation_id,
        target=str(request.table),
        digests=request.part_digests(),
        columns=columns_digest(table),
        base_snapshot_id=table.snapshot_id,
        base_digest=snapshot_digest(table),
        evolved=columns_digest(run.table, stored=False) if changes else "",
        schema_changes=changes,
        sources=run.evidence(),
        inserted=metrics.inserted,
        updated=metrics.updated,
        deleted=metrics.deleted,
    )


@dataclass(frozen=True, slots=True)
class Approval:
    """The ``ticket`` that was approved, for the real run of ``request``."""

    request: JobRequest
    ticket: Ticket

    @classmethod
    def of(cls, request: JobRequest) -> Approval | None:
        """The approval of a request, which is for this request; None: it needs none.

        Raises:
            CommitError: APPROVAL_STALE.
        """
        if request.approved is None:
            return None
        request.approved.require_same(request.part_digests(), str(request.table))
        return cls(request, request.approved)

    def pinned(self, metadata: ConnectorMetadata, table: TableHandle) -> TableHandle:
        """``table`` as the dry run saw it: what others commit since then must not conflict.

        Raises:
            CommitError: APPROVAL_STALE.
        """
        if columns_digest(table) != self.ticket.columns and not self._has_evolved(table):
            raise stale(f"the columns or the partitions of {table.name} are others")
        base = self.ticket.base_snapshot_id
        pinned = metadata.at_snapshot(table, base)
        if pinned is None or snapshot_digest(pinned) != self.ticket.base_digest:
            seen = "without a snapshot" if base is None else f"of snapshot {base}"
            raise stale(f"the state {seen} is not in the history of {table.name} any more")
        return pinned

    def require_same_inputs(
        self, sources: Mapping[str, SourceEvidence], evolved: TableHandle
    ) -> None:
        """Check that the sources, and what they do to the columns, are as in the dry run.

        Raises:
            CommitError: APPROVAL_STALE, naming the source.
            NotSupportedError: what a source reads is not known.
        """
        for name, was in self.ticket.sources.items():
            now = sources.get(name)
            if not was.is_known or (now is not None and not now.is_known):
                raise NotSupportedError(
                    f"approved: whether source {name} has the same rows as in the dry run cannot "
                    "be told: it reads files or tables that are no sources of the statement, or "
                    "files whose time of change is not known.",
                    "Make them sources (file_source, table_source) on a store that the catalog's "
                    "connection knows.",
                )
            if now != was:
                raise stale(f"source {name}: {_difference(was, now)}")
        changes = tuple(map(str, evolved.schema_changes))
        if changes != self.ticket.schema_changes and not self._has_evolved(evolved):
            raise stale(f"the columns of {evolved.name} would change in another way")

    def conflict(self, error: CommitError) -> CommitError:
        """What a conflict means here: others changed what the statement reads."""
        return stale(
            f"since snapshot {self.ticket.base_snapshot_id}, others have changed what the "
            f"statement reads: {error.problem}"
        )

    def require_latest(self, pinned: TableHandle, latest: TableHandle) -> None:
        """Check, of a run that changes nothing and so meets no conflict, that nobody else did.

        Raises:
            CommitError: APPROVAL_STALE.
        """
        if pinned.snapshot_mark != latest.snapshot_mark:
            raise stale(
                f"nothing is to be done since snapshot {self.ticket.base_snapshot_id}, but others "
                "have committed by now"
            )

    def _has_evolved(self, table: TableHandle) -> bool:
        """Whether an earlier try stored the columns that the dry run foretold, and no snapshot."""
        is_retry = self.request.origin.is_retry
        return is_retry and columns_digest(table, stored=False) == self.ticket.evolved


def _difference(was: SourceEvidence, now: SourceEvidence | None) -> str:
    told, other = str(was), str(now) if now is not None else "of another kind"
    if told == other:
        return f"it was {was} and still is, with other columns or other content"
    return f"it was {was}, and is {other} now"
