"""In which partitions a MERGE would insert the rows of its source."""

from __future__ import annotations

from spark_jobs.engine.analysis.analyzed import AnalyzedMerge
from spark_jobs.engine.write.late_rows import Placing
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi import rows


def placing_of(merge: AnalyzedMerge) -> Placing:
    """The partition of each source row: that of the row which NOT MATCHED would insert.

    Raises:
        NotSupportedError: no clause inserts, they store a row in different partitions, or rows are
            changed because no source row matches them, as those that are set aside would not.
    """
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
