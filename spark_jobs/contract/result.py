"""JobResult v1: what a job leaves in the workspace and hands to the operator."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from spark_jobs.contract import codec
from spark_jobs.contract.alter_table import AlterTableReport
from spark_jobs.contract.approval import Ticket
from spark_jobs.contract.compaction import CompactionReport
from spark_jobs.contract.maintenance import MaintenanceReport
from spark_jobs.contract.query import QueryReport
from spark_jobs.contract.side_outputs import SideOutput
from spark_jobs.contract.statements import When
from spark_jobs.contract.undo import UndoReport
from spark_jobs.errors import JobError

VERSION = 1

Status = Literal["committed", "unchanged", "failed", "dry_run", "planned"]


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """A ``JobError`` as data; ``retryable`` tells whether the same request may succeed later.

    ``message`` begins with ``places``, which are those of the error, as ``name`` is.
    """

    code: str
    message: str
    remedy: str
    retryable: bool
    places: tuple[str, ...] = ()
    name: str = ""

    @classmethod
    def of(cls, error: JobError) -> ErrorInfo:
        """The data of ``error``."""
        code, places = error.code.name, error.places
        return cls(code, error.message, error.remedy, error.retryable, places, error.name)


@dataclass(frozen=True, slots=True)
class SourceMetrics:
    """What was read of one file source.

    ``files`` and ``bytes`` are the number and stored size of the files that were read. ``records``
    counts their records, bad ones included, header lines excluded; None: they are not counted, as
    those of files in which two snapshots of a table differ. ``lost_values`` counts values
    that the source's own options turned into NULL, ``lost_records`` records that its options
    dropped or emptied. ``quarantined`` counts records that were set aside in the file
    ``quarantine`` (path or URI; None if there is no such file). ``left_files`` and ``left_bytes``
    are new files that the limits of a source of new files left to the next run. ``skipped_events``
    are change events that were left aside: of other tables, tombstones, ignored operations.
    """

    files: int = 0
    bytes: int = 0
    records: int | None = 0
    lost_values: int = 0
    lost_records: int = 0
    quarantined: int = 0
    quarantine: str | None = None
    left_files: int = 0
    left_bytes: int = 0
    skipped_events: int = 0


@dataclass(frozen=True, slots=True)
class ClauseMetrics:
    """A WHEN clause of a MERGE, and how many target rows it inserted, updated or deleted."""

    when: When
    action: Literal["insert", "update", "delete"]
    rows: int


@dataclass(frozen=True, slots=True)
class PartitionMetrics:
    """What a statement would change in one partition, of a ``name`` as ``day=2026-01-31``.

    Rows that an UPDATE moves count as updated in the partition where they are afterwards, and as
    ``left`` where they were, as do rows that it stores anew in the same partition.
    """

    name: str
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    files_added: int = 0
    files_removed: int = 0
    left: int = 0


@dataclass(frozen=True, slots=True)
class PlanReport:
    """What a statement would do at most, by metadata and its source.

    ``files_rewritten`` of ``bytes_rewritten`` bytes may have to be read, and rewritten or marked;
    ``files_removed`` lose all their rows, unread. ``inserted``, ``updated`` and ``deleted`` are
    rows.
    """

    files_rewritten: int = 0
    bytes_rewritten: int = 0
    files_removed: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class GuardReport:
    """A guard, as texts for people: its ``limit`` and what was ``seen``, and whether it ``held``.

    ``partition``: the name of the first partition where it did not hold, if it is about partitions.
    """

    name: str
    limit: str
    seen: str
    held: bool
    partition: str = ""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Counts of one statement (rule 15). Rows unless another unit is named.

    ``matched`` counts pairs of a source row and a target row that ON joined; ``inserted``,
    ``updated`` and ``deleted`` count target rows, each once; ``carried`` rows were copied unchanged
    into rewritten files. ``partitions_changed`` counts partitions in which files were added or
    removed or had rows marked; it is 0 for an unpartitioned table. ``files_total`` is the number of
    the table's files at the base snapshot, ``files_scanned`` how many were left after pruning.
    ``bytes_added`` counts data files and deletion vectors. ``attempts`` counts the runs of the
    statement; for the last one, ``publish_attempts`` counts the tries to make its snapshot, 0 if it
    makes none, and ``snapshots_met`` the snapshots that other writers made since its base.
    ``seconds`` is wall time per phase. ``sources`` has the metrics of file sources by name.
    ``plan`` tells how a MERGE, UPDATE or DELETE ran, and why, as a text for people. ``clauses`` are
    those of a MERGE, in their order. ``guards`` are those that were checked.
    """

    source_rows: int = 0
    matched: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    carried: int = 0
    partitions_changed: int = 0
    files_total: int = 0
    files_scanned: int = 0
    files_added: int = 0
    files_removed: int = 0
    files_rewritten: int = 0
    bytes_added: int = 0
    bytes_removed: int = 0
    deletion_vectors_added: int = 0
    attempts: int = 1
    seconds: Mapping[str, float] = field(default_factory=dict)
    sources: Mapping[str, SourceMetrics] = field(default_factory=dict)
    publish_attempts: int = 0
    snapshots_met: int = 0
    plan: str = ""
    clauses: tuple[ClauseMetrics, ...] = ()
    guards: tuple[GuardReport, ...] = ()


@dataclass(frozen=True, slots=True)
class TimedPhase:
    """A phase of a job that has ended: when it began, in seconds since 1970, and its seconds."""

    name: str
    began: float
    seconds: float


@dataclass(frozen=True, slots=True)
class JobResult:
    """The outcome of one job.

    ``status``: ``committed`` (a new snapshot), ``unchanged`` (nothing to do, no snapshot),
    ``dry_run`` (``metrics`` are those that a real run would have, no snapshot), ``planned`` (the
    same of a dry run that ends with its ``plan``) or ``failed`` (``error`` is set). Snapshot ids
    are the table's own; None if there is no snapshot.
    ``partitions`` are the names (``day=2026-01-31/hour=7``) of the first 100 partitions that
    changed, or would change, sorted; empty if the result is reconstructed from a snapshot.
    ``partition_metrics`` says what a dry run would change in each of them.
    ``schema_changes`` are those that schema evolution made to the table, or would make, as texts
    such as ``added city STRING``; a try after one that failed makes only the missing ones.
    ``maintenance`` is the report of a maintenance statement, for which ``committed`` means that it
    changed anything; None for other statements. ``compaction`` is the report of a compaction,
    ``alteration`` that of an ALTER TABLE, for which ``committed`` means the same, and so is
    ``undo`` of the undo of a run. ``dropped``: the table is gone.
    ``query`` is what a query found, which has the status ``unchanged`` and an empty ``target``.
    ``settings`` are the Spark settings that affect results, as fixed by the job. ``warnings`` are
    texts for people. ``phases`` are the first 200 that ended, by the driver's clock; of a job that
    failed, ``metrics`` have the seconds and the attempts. ``ticket``: of a dry run, what can be
    approved. ``plan``: of a dry run that only plans, instead of counts. ``row_preview``: a dry run
    has kept some of the changed rows (``contract.row_preview``). ``side_outputs``: the rows that
    the statement leaves in other tables.
    """

    operation_id: str
    status: Status
    target: str
    request_digest: str
    metrics: Metrics = field(default_factory=Metrics)
    base_snapshot_id: int | None = None
    new_snapshot_id: int | None = None
    error: ErrorInfo | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    try_number: int = 1
    retries: int = 0
    partitions: tuple[str, ...] = ()
    maintenance: MaintenanceReport | None = None
    warnings: tuple[str, ...] = ()
    query: QueryReport | None = None
    schema_changes: tuple[str, ...] = ()
    compaction: CompactionReport | None = None
    partition_metrics: tuple[PartitionMetrics, ...] = ()
    alteration: AlterTableReport | None = None
    dropped: bool = False
    phases: tuple[TimedPhase, ...] = ()
    ticket: Ticket | None = None
    plan: PlanReport | None = None
    undo: UndoReport | None = None
    row_preview: bool = False
    side_outputs: tuple[SideOutput, ...] = ()
    version: int = VERSION

    @property
    def is_dry(self) -> bool:
        """Whether nothing was changed because that was asked for."""
        return self.status in ("dry_run", "planned")

    @property
    def made_table(self) -> bool:
        """Whether a table was created: the only change without a snapshot that has no report."""
        reports = (self.maintenance, self.compaction, self.query, self.alteration, self.undo)
        is_change = self.status == "committed" and self.new_snapshot_id is None
        return is_change and not self.dropped and not any(each is not None for each in reports)

    def to_json(self) -> str:
        """The result as a JSON document; keys in declaration order."""
        return json.dumps(codec.encode(self), indent=2, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> JobResult:
        """The result in a JSON document.

        Raises:
            RequestError: REQUEST_VERSION_UNKNOWN, or REQUEST_INVALID with the JSON path.
        """
        return codec.decode(cls, codec.load_versioned(text, VERSION))
