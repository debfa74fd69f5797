"""Which partitions a statement replaces, and whether it may (rule 13).

Files that it replaces in part are read, and the rows that go are deleted. Driver only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from spark_jobs.contract.inserts import (
    DropPartitionsSpec,
    InsertIntoSpec,
    InsertOverwriteSpec,
    PartitionStatement,
    TruncateTableSpec,
)
from spark_jobs.contract.partition_names import partition_name
from spark_jobs.contract.result import PlanReport
from spark_jobs.contract.sql_text import sql_conditions
from spark_jobs.engine.analysis.partition_specs import Constants, PartitionSpecs, belongs
from spark_jobs.engine.insert.partition_shares import (
    Occurring,
    Partition,
    Share,
    partition_of,
    share_of,
)
from spark_jobs.engine.insert.replaced_rows import (
    ReplacedPartitions,
    ReplacedReport,
    ReplacedRows,
    specs_of,
)
from spark_jobs.engine.write.change_writer import REPORT_SCHEMA
from spark_jobs.engine.write.expected_partitions import not_expected
from spark_jobs.engine.write.partition_counts import placement
from spark_jobs.engine.write.recorder import Recording
from spark_jobs.engine.write.statement_run import StatementRun
from spark_jobs.errors import DataError, ErrorCode, NotSupportedError
from spark_jobs.spi.arrow_tasks import map_tasks
from spark_jobs.spi.sinks import MergeHandle
from spark_jobs.spi.tables import PlannedFile, TableHandle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class ReplacedFiles:
    """Files that a statement changes: ``whole`` ones are removed without being read.

    ``partial`` are those of which some rows may belong to replaced partitions. ``shares``: of each
    spec, the largest share of a file's rows that belongs to it.
    """

    whole: tuple[PlannedFile, ...]
    partial: tuple[PlannedFile, ...]
    shares: tuple[Share, ...] = ()

    @property
    def all(self) -> tuple[PlannedFile, ...]:
        """The files of both kinds."""
        return (*self.whole, *self.partial)

    def plan(self, new_rows: int) -> PlanReport:
        """What the statement would do at most, with ``new_rows`` to insert."""
        return PlanReport(
            files_rewritten=len(self.partial),
            bytes_rewritten=sum(file.size for file in self.partial),
            files_removed=len(self.whole),
            inserted=new_rows,
            deleted=sum(file.live_row_count for file in self.all),
        )


@dataclass(frozen=True, slots=True)
class Replacement:
    """What a statement replaces in ``table``.

    ``specs`` select the partitions that it may touch; an empty spec selects the whole table.
    ``dynamic``: it replaces only partitions that occur in the new rows. ``appends``: it replaces
    nothing. ``expected`` are the specs of the partitions that may change; None allows any.
    ``all_found``: each of ``specs`` must have rows.
    """

    table: TableHandle
    specs: tuple[Constants, ...]
    dynamic: bool = False
    appends: bool = False
    expected: tuple[Constants, ...] | None = None
    all_found: bool = False

    @classmethod
    def of(cls, spec: PartitionStatement, table: TableHandle, specs: PartitionSpecs) -> Replacement:
        """What ``spec`` replaces.

        Raises:
            AnalysisError, DataError: a partition spec that does not fit the table.
            NotSupportedError: mode dynamic on a table without partitions.
        """
        if isinstance(spec, DropPartitionsSpec):
            named = enumerate(spec.partitions)
            found = tuple(specs.constants(each, f"partitions[{i}]") for i, each in named)
            return cls(table, found, all_found=not spec.if_exists)
        constants = specs.constants(spec.partition, "PARTITION")
        if isinstance(spec, TruncateTableSpec):
            return cls(table, (constants,))
        specs.require_keys(spec.partition_columns, "PARTITION")
        if isinstance(spec, InsertIntoSpec):
            return cls(table, (constants,), appends=True)
        is_refused = spec.mode == "dynamic" and not spec.whole_if_unpartitioned
        if is_refused and not table.partitioned_by:
            raise NotSupportedError(
                f"mode dynamic replaces partitions, but {table.name} has none.",
                "Use mode table to replace all rows.",
            )
        # A full spec is one partition, which is replaced with or without new rows; but of no rows,
        # Spark's dynamic mode replaces nothing, whatever the spec and the table.
        is_open = len(constants) < len(table.partitioned_by) or spec.whole_if_unpartitioned
        dynamic = spec.mode == "dynamic" and is_open
        return cls(table, (constants,), dynamic, expected=_expected(spec, specs))

    def replaced(self, files: Sequence[PlannedFile], new: Sequence[Partition]) -> ReplacedFiles:
        """The files that change when rows of the partitions ``new`` are added."""
        whole, partial = list[PlannedFile](), list[PlannedFile]()
        largest = [Share.NONE] * len(self.specs)
        occurring = Occurring(self._fields, new) if self.dynamic else None
        for file in () if self.appends else files:
            shares = [share_of(file, spec) for spec in self.specs]
            largest = list(map(max, largest, shares))
            share = max(shares, default=Share.NONE)
            if occurring is not None and share is not Share.NONE:
                share = min(share, occurring.share(file))
            is_known = self.expected is None or partition_of(file, self._fields) is not None
            is_known &= not (self.all_found and Share.SOME in shares)
            if share is not Share.NONE:
                (whole if share is Share.ALL and is_known else partial).append(file)
        return ReplacedFiles(tuple(whole), tuple(partial), tuple(largest))

    def partitions(self, new: Sequence[Partition]) -> ReplacedPartitions:
        """What decides about rows of the files of which only some may go."""
        expected = None if self.expected is None else specs_of(map(_values, self.expected))
        occurring = Occurring(self._fields, new).partitions if self.dynamic else None
        return ReplacedPartitions(
            self._fields, specs_of(map(_values, self.specs)), occurring, expected
        )

    def check(self, replaced: ReplacedFiles, new: Sequence[Partition]) -> None:
        """Refuse new rows outside the specs, and changes to partitions that are not expected.

        Raises:
            DataError: ROW_OUTSIDE_PARTITION, PARTITION_NOT_EXPECTED.
        """
        for partition in map(self._named, new):
            if not any(belongs(partition, spec) for spec in self.specs):
                wanted = _values(self.specs[0])
                raise DataError(
                    ErrorCode.ROW_OUTSIDE_PARTITION,
                    f"The source has rows of the partition {sql_conditions(partition)}, outside of "
                    f"the partition {sql_conditions(wanted)} that the statement names.",
                    "Filter the source, or name the partition that is meant.",
                )
        if self.expected is None:
            return
        old = (partition_of(file, self._fields) for file in replaced.whole)
        for partition in map(self._named, [*new, *(each for each in old if each is not None)]):
            if not any(belongs(partition, spec) for spec in self.expected):
                raise not_expected(partition)

    def require_found(
        self, replaced: ReplacedFiles, among_rows: Collection[int] | None = None
    ) -> None:
        """Refuse a spec that matches no partition of the table.

        ``among_rows``: the indexes of specs to which rows of files belonged that had to be read;
        None: they have not been read yet.

        Raises:
            DataError: PARTITION_NOT_FOUND.
        """
        for number, (spec, share) in enumerate(zip(self.specs, replaced.shares, strict=True)):
            is_missing = among_rows is not None and number not in among_rows
            if share is Share.NONE or (share is Share.SOME and is_missing):
                raise DataError(
                    ErrorCode.PARTITION_NOT_FOUND,
                    f"{self.table.name} has no partition {sql_conditions(_values(spec))}.",
                    "Check the values, or say IF EXISTS (if_exists=True).",
                )

    def names(self, partitions: Sequence[Partition]) -> list[str]:
        """The names of ``partitions``."""
        return [partition_name(each) for each in self.valued(partitions)]

    def valued(self, partitions: Sequence[Partition]) -> list[Mapping[str, Any]]:
        """The values of ``partitions`` by field."""
        return [self._named(each) for each in partitions]

    @property
    def _fields(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.table.partitioned_by)

    def _named(self, partition: Partition) -> Mapping[str, Any]:
        return dict(zip(self._fields, partition, strict=True))


def _values(spec: Constants) -> dict[str, Any]:
    return {name: constant.value for name, constant in spec.items()}


def _expected(spec: InsertOverwriteSpec, specs: PartitionSpecs) -> tuple[Constants, ...] | None:
    if spec.expected_partitions is None:
        return None
    return tuple(
        specs.constants(each, f"expected_partitions[{index}]")
        for index, each in enumerate(spec.expected_partitions)
    )


def rows_replaced(
    run: StatementRun[Any],
    spark: SparkSession | None,
    handle: MergeHandle,
    partitions: ReplacedPartitions,
    files: Sequence[PlannedFile],
    recording: Recording | None = None,
) -> list[ReplacedReport]:
    """Delete the rows of ``partitions`` in ``files``, and record them; nothing is published.

    Without a session, this process reads the files, one after another.

    Raises:
        DataError: PARTITION_NOT_EXPECTED.
        NotSupportedError: the rows of the table tell no partitions; the message names a file.
    """
    if not files:
        return []
    metadata, table = run.connector.metadata, run.table
    layout = metadata.insert_layout(table)
    names = () if layout.derived is None else layout.derived.inputs
    recorded = recording.old if recording else ()
    names = (*names, *(name for name in recorded if name not in names))
    read = run.connector.scan.arrow_rows(spark, table, files, names)
    if read is None or layout.derived is None:
        raise NotSupportedError(
            f"{table.name} has files whose partition is not known, such as {files[0].path}.",
            "Rewrite older files by the table's partitions of today, or replace the whole table.",
        )
    run.progress.say(f"{len(files)} files of older partitions to read")
    placed = placement(table, metadata.update_layout(table), layout) if run.dry_run else None
    function = ReplacedRows(
        read, layout.derived, partitions, handle.sinks, placed, names, recording
    )
    if spark is None:
        return [function.stored([_numbers(len(read.files))], lambda: "0")]
    reports = map_tasks(spark, len(read.files), function, REPORT_SCHEMA)
    return [ReplacedReport.from_json(row["report"]) for row in reports.collect()]


def _numbers(tasks: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": pa.array(range(tasks), pa.int64())})
