"""Doing exactly what was approved: the ticket of a dry run, made and checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from spark_jobs.contract.approval import SourceEvidence, Ticket, stale
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import Metrics
from spark_jobs.engine.source.evidence import of_table
from spark_jobs.errors import CommitError
from spark_jobs.spi.tables import TableHandle

if TYPE_CHECKING:
    from spark_jobs.spi.connector import ConnectorMetadata


def ticket_of(
    request: JobRequest,
    table: TableHandle,
    sources: Mapping[str, SourceEvidence],
    metrics: Metrics,
) -> Ticket:
    """The ticket of a dry run of ``request`` on ``table``."""
    return Ticket(
        operation_id=request.operation_id,
        target=str(request.table),
        connector=request.catalog.connector,
        digests=request.part_digests(),
        columns=_columns(table),
        base_snapshot_id=table.snapshot_id,
        base_digest=of_table(table).digest,
        sources=sources,
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
        if _columns(table) != self.ticket.columns:
            raise stale(f"the columns or the partitions of {table.name} are others")
        base = self.ticket.base_snapshot_id
        found = metadata.at_snapshot(table, base)
        if found is None or of_table(found).digest != self.ticket.base_digest:
            seen = "without a snapshot" if base is None else f"of snapshot {base}"
            raise stale(f"the state {seen} is not in the history of {table.name} any more")
        return found

    def require_sources(self, sources: Mapping[str, SourceEvidence]) -> None:
        """Check that the sources are those of the dry run.

        Raises:
            CommitError: APPROVAL_STALE, naming the source.
        """
        for name, was in self.ticket.sources.items():
            now = sources.get(name)
            if now != was:
                raise stale(f"source {name}: it was {was}, and is {now or 'of another kind'} now")

    def conflict(self, error: CommitError) -> CommitError:
        """What a conflict means here: others changed what the statement reads."""
        return stale(
            f"since snapshot {self.ticket.base_snapshot_id}, others have changed what the "
            f"statement reads: {error.problem}"
        )


def _columns(table: TableHandle) -> str:
    columns = [asdict(each) for each in (*table.columns, *table.opaque_columns)]
    fields = [asdict(each) for each in table.partitioned_by]
    text = json.dumps([columns, fields, table.key_columns], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
