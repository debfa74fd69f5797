"""In which partitions a MERGE would insert the rows of its source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.contract.statements import DeleteSpec, MergeSpec, UpdateSpec
from spark_jobs.engine.analysis.analyzed import AnalyzedMerge
from spark_jobs.engine.changes.late_rows import Placing, require_quarantine
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi import rows

if TYPE_CHECKING:
    from spark_jobs.engine.write.spark_run import SparkRun


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
