"""What the runs of statements whose rows Spark computes have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from spark_jobs.contract.approval import SourceEvidence
from spark_jobs.engine.analysis.partition_specs import PartitionSpecs
from spark_jobs.engine.analysis.spark_constants import SparkConstants
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.marks.marks import NewMark
from spark_jobs.engine.runtime.stragglers import wait_for_stragglers
from spark_jobs.engine.source.evidence import evidence_of
from spark_jobs.engine.source.pinned_tables import read_snapshots
from spark_jobs.engine.source.sources import Sources
from spark_jobs.engine.write.expected_partitions import ExpectedPartitions
from spark_jobs.engine.write.statement_run import Spec_co, StatementRun


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkRun(StatementRun[Spec_co]):
    """One attempt of a statement that reads and writes rows with Spark.

    ``sources`` are the request's sources, each with a temporary view. ``moment`` is the statement's
    current time. ``reads_itself``: a source may read the target.
    """

    spark: SparkSession
    sources: Sources
    moment: StatementTime
    reads_itself: bool = False

    def evidence(self) -> Mapping[str, SourceEvidence]:
        """What the sources are."""
        return evidence_of(self.sources)

    def read_tables(self) -> Mapping[str, Sequence[int]]:
        """The snapshots of the tables that sources read, by name; the base is none of them."""
        return read_snapshots(self.sources.read_tables, self.table)

    def new_marks(self) -> Sequence[NewMark]:
        """The marks of incremental sources that the snapshot is to record."""
        return self.sources.new_marks

    @property
    def required_columns(self) -> tuple[str, ...]:
        """The table's NOT NULL columns, which the primary key belongs to."""
        keys = self.table.key_columns
        return tuple(c.name for c in self.table.columns if not c.nullable or c.name in keys)

    def expected_partitions(self) -> ExpectedPartitions:
        """The partitions that may change; raises as ``PartitionSpecs.constants``."""
        constants = SparkConstants(self.spark, self.table, self.moment)
        return ExpectedPartitions.of(self.guards, PartitionSpecs(self.table, constants))

    def wait_for_tasks(self) -> None:
        """Wait for tasks that go on after a failure."""
        wait_for_stragglers(self.spark)
