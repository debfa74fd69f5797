"""What a compaction of one table goes by: the statement, the table's options, Paimon's defaults."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.shared.compaction.bins import FileSizes
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.formats.paimon.compaction import CompactionThresholds


@dataclass(frozen=True, slots=True)
class CompactionOptions(FileSizes):
    """The options of one compaction; ``deleted_share`` is from 0 to 1, as in ``CompactSpec``.

    ``sorts``: the rows of new files are sorted.
    """

    deleted_share: float
    sorted_runs: int
    include_pending: bool
    sorts: bool

    @classmethod
    def of(cls, table: PinnedTable, spec: CompactSpec) -> CompactionOptions:
        """What ``spec`` asks for; where it does not, the table's options or Paimon's defaults.

        Raises:
            NotSupportedError: an option of the table that is needed has an invalid value.
        """
        has_key = bool(table.schema.primary_keys)
        thresholds = CompactionThresholds.of(spec, table.options, has_primary_key=has_key)
        return cls(
            mode=spec.mode,
            target_file_size=thresholds.target_file_size,
            min_files=thresholds.min_files,
            small_file_share=thresholds.small_file_share,
            deleted_share=thresholds.deleted_share,
            sorted_runs=thresholds.sorted_runs,
            include_pending=spec.include_pending,
            sorts=spec.asked_order is not None,
        )
