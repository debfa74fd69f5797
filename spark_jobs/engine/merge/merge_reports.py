"""What a MERGE, DELETE or UPDATE did, would do at most, or has no need to do.

To set late rows of its source aside, it must be known in which partitions it would insert them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from spark_jobs.contract.result import ClauseMetrics, PlanReport
from spark_jobs.contract.statements import DeleteSpec, MergeSpec, UpdateSpec
from spark_jobs.engine.analysis.analyzed import AnalyzedMerge
from spark_jobs.engine.changes.late_rows import Placing, require_quarantine
from spark_jobs.engine.merge.processors import RowChangeProcessor
from spark_jobs.engine.pruning.needed_files import NeededFiles
from spark_jobs.engine.source.materialized import MaterializedSource
from spark_jobs.engine.write.change_writer import TaskReport
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi import rows

if TYPE_CHECKING:
    from spark_jobs.engine.write.statement_run import SparkRun


_ACTIONS: Final[dict[int, Literal["insert", "update", "delete"]]] = {
    rows.INSERT: "insert",
    rows.UPDATE: "update",
    rows.DELETE: "delete",
}


def clause_metrics(
    merge: AnalyzedMerge, reports: Sequence[TaskReport]
) -> tuple[ClauseMetrics, ...]:
    """The clauses of a MERGE with their rows; none of other statements."""
    if not merge.has_source:
        return ()
    return tuple(
        ClauseMetrics(
            case.when,
            _ACTIONS[case.operation],
            sum(report.counts.by_clause[case.number] for report in reports),
        )
        for case in merge.cases
    )


def plan_report(
    merge: AnalyzedMerge, processor: RowChangeProcessor, files: NeededFiles, source_rows: int
) -> PlanReport:
    """Upper bounds of what the statement would change, from the files that it needs."""
    scanned = files.scanned if merge.changes_rows else ()
    rows_scanned = sum(file.live_row_count for file in scanned)
    rows_dropped = sum(file.live_row_count for file in files.dropped)
    return PlanReport(
        files_rewritten=len(scanned),
        bytes_rewritten=sum(file.size for file in scanned),
        files_removed=len(files.dropped),
        inserted=source_rows if merge.has("not_matched") else 0,
        updated=rows_scanned if processor.updated_columns else 0,
        deleted=(rows_scanned if merge.may_delete else 0) + rows_dropped,
    )


def nothing_to_do(
    merge: AnalyzedMerge, files: NeededFiles, source: MaterializedSource | None
) -> bool:
    """Whether the statement certainly changes no row."""
    has_rows = source is None or source.row_count > 0
    can_insert = has_rows and merge.has("not_matched")
    can_match = has_rows and merge.has("matched")
    can_change = bool(files.scanned) and (can_match or merge.has("not_matched_by_source"))
    return not can_insert and not can_change and not files.dropped


def placing_of(
    run: SparkRun[MergeSpec | DeleteSpec | UpdateSpec], merge: AnalyzedMerge
) -> Placing | None:
    """How source rows get into partitions, as NOT MATCHED would insert them.

    None: late ones are not set aside.

    Raises:
        JobError: as ``require_quarantine``.
        NotSupportedError: no clause inserts, they store a row in different partitions, or rows are
            changed because no source row matches them, as those that are set aside would not.
    """
    if run.guards.quarantine_table is None or not isinstance(run.spec, MergeSpec):
        return None
    require_quarantine(run, run.sources[run.spec.source])
    if merge.has("not_matched_by_source"):
        raise NotSupportedError(
            "quarantine_table: WHEN NOT MATCHED BY SOURCE would change rows whose source rows are "
            "set aside.",
            "Write these clauses in another statement, or take outside_partitions='fail'.",
        )
    inserting = [case for case in merge.cases if case.operation == rows.INSERT]
    if not inserting:
        raise NotSupportedError(
            "quarantine_table: without WHEN NOT MATCHED THEN INSERT, it is not known to which "
            "partition a row of the source belongs.",
            "Filter the source, or take outside_partitions='fail'.",
        )
    values = inserting[0].values
    for field in merge.table.partitioned_by:
        if len({case.values[field.source].text for case in inserting}) > 1:
            raise NotSupportedError(
                f"quarantine_table: the INSERT clauses have different values for {field.name}, so "
                "it is not known to which partition a row of the source belongs.",
                "Write one expression for it, or take outside_partitions='fail'.",
            )
    return Placing(merge.source_alias, values, merge.stored_types)
