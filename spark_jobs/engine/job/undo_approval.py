"""Undoing exactly what was approved: the ticket of a dry run of an undo, made and checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, cast

from spark_jobs.contract.approval import SourceEvidence, Ticket, stale
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.undo import TableUndo

if TYPE_CHECKING:
    from spark_jobs.contract.undo import UndoRunSpec


def undo_ticket(request: JobRequest, plans: Sequence[TableUndo]) -> Ticket:
    """The ticket of a dry run: its sources are the tables, with what is planned for each."""
    return Ticket(
        operation_id=request.operation_id,
        target=str(request.table),
        digests=request.part_digests(),
        columns="",
        sources={each.table: _evidence(each) for each in plans},
        inserted=sum(each.deleted for each in plans),
        updated=sum(each.updated for each in plans),
        deleted=sum(each.inserted for each in plans),
    )


@dataclass(frozen=True, slots=True)
class UndoApproval:
    """The ``ticket`` that was approved, if there is one, for the undo of ``request``."""

    ticket: Ticket | None

    @classmethod
    def of(cls, request: JobRequest) -> UndoApproval:
        """The approval of a request, which is for this request.

        Raises:
            CommitError: APPROVAL_STALE, naming what differs.
        """
        ticket = request.approved
        if ticket is not None:
            spec = cast("UndoRunSpec", request.statement)
            known, asked = set(ticket.sources), set(spec.tables)
            if known != asked:
                more, fewer = (", ".join(sorted(each)) for each in (asked - known, known - asked))
                differences = [f"{more} had no commit of the run"] if more else []
                differences += [f"{fewer} has none any more"] if fewer else []
                raise stale("; ".join(differences))
            ticket.require_same(request.part_digests(), str(request.table))
        return cls(ticket)

    def require(self, table: TableUndo) -> None:
        """Check that what is planned for a table is what was approved.

        Raises:
            CommitError: APPROVAL_STALE, naming the table.
        """
        if self.ticket is None:
            return
        was, now = self.ticket.sources.get(table.table), _evidence(table)
        if was == now:
            return
        untouched = f"Nothing was done to {table.table}."
        if table.outcome == "refused":
            raise stale(f"{table.table} can not be undone any more: {table.reason}", untouched)
        raise stale(
            f"{table.table}: of the run, {_told(was)} would have been taken back, and {_told(now)} "
            "would be now",
            untouched,
        )


def _told(evidence: SourceEvidence | None) -> str:
    if evidence is None or evidence.snapshot_id is None:
        return "nothing"
    return f"snapshot {evidence.snapshot_id} and what is before it ({evidence.files} files)"


def _evidence(table: TableUndo) -> SourceEvidence:
    """What decides about an undo: the snapshots, and what happens to files and rows.

    Not which snapshots have expired besides, nor how a refusal is told.
    """
    outcome = "planned" if table.outcome == "undone" else table.outcome
    meant = replace(table, outcome=outcome, snapshot_id=None, oldest=None, reason="")
    canonical = json.dumps(asdict(meant), sort_keys=True, separators=(",", ":"))
    return SourceEvidence(
        snapshot_id=table.commits[0].snapshot_id if table.commits else None,
        files=table.files_removed + table.files_restored + table.deletes_restored,
        bytes=table.bytes_copied,
        digest=hashlib.sha256(canonical.encode()).hexdigest(),
    )
