"""MERGE, DELETE and UPDATE from the statement to one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pyarrow.fs import LocalFileSystem

from spark_jobs.contract.operation_files import new_lookup_folder
from spark_jobs.contract.result import Metrics, PartitionMetrics
from spark_jobs.contract.scd2 import Scd2Source
from spark_jobs.contract.side_outputs import SideOutput
from spark_jobs.contract.statements import DeleteSpec, MergeSpec, UpdateSpec
from spark_jobs.engine.analysis.analyzed import AnalyzedMerge
from spark_jobs.engine.analysis.analyzer import analyze_filtered, analyze_merge
from spark_jobs.engine.analysis.key_columns import inserted_keys
from spark_jobs.engine.changes.changed_rows import ChangeShape, Unpublished
from spark_jobs.engine.changes.late_rows import LateRows, set_aside
from spark_jobs.engine.changes.row_checking import RowChecking
from spark_jobs.engine.merge.general_plan import GeneralPlan, PlanResult
from spark_jobs.engine.merge.located_plan import LocatedPlan
from spark_jobs.engine.merge.merge_reports import (
    clause_metrics,
    nothing_to_do,
    placing_of,
    plan_report,
)
from spark_jobs.engine.merge.physical_plan import PlanChoice, PlanLimits, chosen_plan, physical_plan
from spark_jobs.engine.merge.processors import RowChangeProcessor, processor_for
from spark_jobs.engine.pruning.dynamic_filters import dynamic_filter, with_key_columns
from spark_jobs.engine.pruning.needed_files import NeededFiles, Pruning
from spark_jobs.engine.scd2.versions import Versions, changed_versions
from spark_jobs.engine.source.in_place import in_place
from spark_jobs.engine.source.materialized import MaterializedSource, materialize
from spark_jobs.engine.source.open_source import OpenSource
from spark_jobs.engine.source.subqueries import empty_views, materialize_views
from spark_jobs.engine.write.change_counts import Placement
from spark_jobs.engine.write.change_writer import ChangeWriter, TaskReport
from spark_jobs.engine.write.expected_partitions import ExpectedPartitions, require_few_new
from spark_jobs.engine.write.guarding import Guarding
from spark_jobs.engine.write.partition_counts import (
    changed_partitions,
    partition_changes,
    partition_metrics,
    placement,
)
from spark_jobs.engine.write.repacking import repacked
from spark_jobs.engine.write.statement_run import (
    SparkRun,
    StatementOutcome,
    counted,
    with_publication,
)
from spark_jobs.errors import JobError
from spark_jobs.spi.evidence import DynamicFilter
from spark_jobs.spi.sinks import MergeHandle
from spark_jobs.spi.tables import CommittedSnapshot, PlannedFile
from spark_jobs.spi.writes import Fragment, MergeWrite, ReadSet, WriteLayout, whole_table


@dataclass(frozen=True, slots=True)
class _PlannedMerge:
    """What is to be written, and what must hold of it.

    ``files`` are those that the statement needs, ``read_set`` those whose change by others is a
    conflict.
    """

    plan: GeneralPlan
    files: NeededFiles
    read_set: ReadSet
    expected: ExpectedPartitions
    guarding: Guarding
    checking: RowChecking


@dataclass(frozen=True, slots=True)
class MergeRun(SparkRun[MergeSpec | DeleteSpec | UpdateSpec]):
    """One attempt of MERGE, DELETE or UPDATE."""

    limits: PlanLimits = field(default_factory=PlanLimits)

    def check(self) -> None:
        """Check the statement against the schemas."""
        merge = self._analyzed()
        self._processor(merge, self._checking(merge))
        placing_of(self, merge)
        self.expected_partitions()

    def run(self) -> StatementOutcome:
        """Run the statement."""
        with self.progress.phase("analyze"):
            merge = self._analyzed()
            checking = self._checking(merge)
            processor = self._processor(merge, checking)
            expected, placing = self.expected_partitions(), placing_of(self, merge)
        planned = self.planned_files()
        with self.progress.phase("source"):
            self.sources.land()
            late = None
            if placing is not None and isinstance(self.spec, MergeSpec):
                opened = self.sources[self.spec.source]
                late = set_aside(self, opened, placing, expected.specs or ())
                checking = replace(checking, late=late.side)
            versions = self._versions(planned)
            source, source_rows = self._materialized(merge, checking, late, versions)
            self.sources.require_unchanged()
        self.progress.say(f"{source_rows} source rows")
        with self.progress.phase("prune"):
            keys = dynamic_filter(merge, source, self.limits.broadcast, self.moment)
            pruning = Pruning(self.spark, merge, source, keys, self.moment)
            files = pruning.needed(planned)
        self.progress.say(
            f"{len(files.scanned)} of {len(planned)} files to scan, {len(files.dropped)} to drop"
        )
        metrics = Metrics(
            source_rows=source_rows,
            files_total=len(planned),
            files_scanned=len(files.scanned),
            attempts=self.attempt,
            sources=self.sources.metrics,
        )
        metrics = metrics if late is None else late.reported(metrics)
        guarding = self.guarding(planned)
        # An insert-only MERGE reads files to find what is there, and changes none.
        changed = files.scanned if merge.changes_rows else ()
        metrics = guarding.before_writing(metrics, changed)
        if self.plan_only:
            return StatementOutcome(
                None, metrics, plan=plan_report(merge, processor, files, source_rows)
            )
        if nothing_to_do(merge, files, source) and (self.dry_run or self.publishes_nothing):
            checks = checking.found(Unpublished(self.table, planned))
            metrics = guarding.before_publishing(metrics, checks)
            return StatementOutcome(None, metrics, side=checking.late)
        reads_all = self.reads_itself or checking.reads.target
        touched = pruning.touched if versions is None else versions.read_set
        read_set = whole_table if reads_all else touched
        plan = self._general_plan(merge, processor, files.scanned, source, keys)
        planned_merge = _PlannedMerge(plan, files, read_set, expected, guarding, checking)
        return self._write(planned_merge, metrics)

    def _analyzed(self) -> AnalyzedMerge:
        if isinstance(self.spec, MergeSpec):
            schema = self.sources[self.spec.source].frame.schema
            return analyze_merge(self.spark, self.spec, self.table, schema)
        with empty_views(self.spark, self.sources):
            return analyze_filtered(self.spark, self.spec, self.table)

    def _checking(self, merge: AnalyzedMerge) -> RowChecking:
        evaluated = [self.spec.source] if isinstance(self.spec, MergeSpec) else self.sources
        return RowChecking.of(self, self.spark, ChangeShape.of(merge), self.sources, evaluated)

    def _processor(self, merge: AnalyzedMerge, checking: RowChecking) -> RowChangeProcessor:
        metadata = self.connector.metadata
        metadata.require_writable(self.table)
        paradigm = metadata.row_change_paradigm(self.table)
        travelling = metadata.merge_row_id_columns(self.table, inserted_keys(merge))
        layout = metadata.insert_layout(self.table)
        recorded = tuple(checking.reads.old)
        processor = processor_for(paradigm, merge, layout, travelling, recorded)
        updated = processor.updated_columns
        metadata.require_supported(self.table, updated, deletes=merge.may_delete)
        return processor

    def _materialized(
        self,
        merge: AnalyzedMerge,
        checking: RowChecking,
        late: LateRows | None,
        versions: Versions | None,
    ) -> tuple[MaterializedSource | None, int]:
        """MERGE's source (else None), and the number of rows that were read from sources."""
        storage = self.connector.storage
        if isinstance(self.spec, MergeSpec):
            opened = self.sources[self.spec.source]
            if late is not None:
                opened = OpenSource(late.rest, is_pinned=True)
            if versions is not None:
                opened = OpenSource(versions.frame, is_pinned=False)
            if opened.landed is not None:
                return opened.landed.narrowed(merge.source_columns), opened.landed.row_count
            here = in_place(self.spark, opened, merge.source_columns, self.connector)
            if here is not None:
                return here, here.row_count
            frame, keys = with_key_columns(opened.frame, merge)
            frame = self.moment.fixed(frame) if keys else frame
            needed_columns = merge.source_columns.union(keys)
            needed_columns = needed_columns.union(checking.reads.sources.get(self.spec.source, ()))
            source = materialize(self.spark, frame, needed_columns, storage, self.scratch)
            checking.show_source(self.spec.source, source.frame, opened.frame.schema)
            return source, versions.source_rows if versions else source.row_count
        columns = checking.with_sources(merge.subquery_columns)
        return None, materialize_views(self.spark, self.sources, columns, storage, self.scratch)

    def _versions(self, planned: Sequence[PlannedFile]) -> Versions | None:
        """What becomes of versions, if the source is one of versions."""
        if self._scd2 is None:
            return None
        return changed_versions(self, self._scd2, planned, self.limits.broadcast)

    @property
    def _scd2(self) -> Scd2Source | None:
        last = self.sources.request.sources[-1:]
        return last[0] if last and isinstance(last[0], Scd2Source) else None

    def _merge_write(self, wanted: _PlannedMerge) -> MergeWrite:
        processor, read_set = wanted.plan.processor, wanted.read_set
        return MergeWrite(
            operation=self.operation,
            files=tuple(wanted.files.scanned),
            assigned_columns=processor.assigned_columns,
            on_columns=tuple(sorted(wanted.plan.merge.on.target_columns)),
            target_file_size=self.options.target_file_size,
            rewrite_share=self.options.rewrite_share,
            isolation="serializable" if self._scd2 else self.options.isolation,
            read_set=read_set,
            read_columns=None
            if self._scd2 or read_set is whole_table
            else processor.target_columns,
            dry_run=self.dry_run,
            inserted_keys=inserted_keys(wanted.plan.merge),
        )

    def _write(self, wanted: _PlannedMerge, metrics: Metrics) -> StatementOutcome:
        merge, source, files = wanted.plan.merge, wanted.plan.source, wanted.files
        guarding, checking = wanted.guarding, wanted.checking
        writes, planned = self.connector.writes, guarding.planned
        write = self._merge_write(wanted)
        handle = self.begin(write)
        with self.writing(handle):
            with self.progress.phase("write"):
                result = PlanResult([], 0)
                if files.scanned or merge.has("not_matched"):
                    plan, choice = self._physical_plan(wanted.plan)
                    metrics = replace(metrics, plan=str(choice))
                    self.progress.say(f"plan {choice}")
                    writer = self._writer(merge, handle, write)
                    result = plan.run(replace(writer, recording=checking.recording()))
                if source is not None:
                    source.require_unchanged()
                written = repacked(
                    self.spark, writes, self.table, handle, result.reports, dry_run=self.dry_run
                )
            dropped = TaskReport(
                deleted=sum(file.live_row_count for file in files.dropped),
                fragments=writes.drop_files(self.table, handle, files.dropped),
            )
            reports = [*written, dropped]
            fragments = [each for report in reports for each in report.fragments]
            partitions = changed_partitions(self.connector, self.table, fragments)
            require_few_new(self.options, self.table, partitions, planned)
            metrics = replace(
                counted(metrics, reports),
                matched=result.matched if merge.has_source else 0,
                partitions_changed=len(partitions),
                clauses=clause_metrics(merge, reports),
            )
            self.progress.say(
                f"{metrics.inserted} rows to insert, {metrics.updated} to update, "
                f"{metrics.deleted} to delete, "
                f"{metrics.files_rewritten} of {metrics.files_total} files rewritten"
            )
            if self.guards.expected_partitions is not None:
                changed = writes.changed_partitions(self.table, fragments)
                metrics = wanted.expected.checked(changed, metrics, reports_only=self.dry_run)
            by_partition: tuple[PartitionMetrics, ...] = ()
            if self.counts_by_partition and self._placement() is not None:
                by_partition = partition_metrics(
                    self, handle, reports, files.scanned, files.dropped
                )
            changes = partition_changes(self, handle, metrics, by_partition, planned)
            work = Unpublished(self.table, planned, files.dropped, reports)
            metrics = guarding.before_publishing(metrics, checking.found(work), changes)
            if self.dry_run:
                self.abort(handle)
                return StatementOutcome(None, metrics, partitions, by_partition)
            if not fragments and self.publishes_nothing:
                self.abort(handle)
                return StatementOutcome(None, metrics, partitions, side=checking.late)
            side = checking.kept(work)
        with self.progress.phase("commit"):
            snapshot = self._published(handle, fragments, metrics, side)
        metrics = with_publication(metrics, snapshot)
        return StatementOutcome(snapshot.snapshot_id, metrics, partitions)

    def _published(
        self,
        handle: MergeHandle,
        fragments: Sequence[Fragment],
        metrics: Metrics,
        side: Sequence[SideOutput],
    ) -> CommittedSnapshot:
        try:
            return self.publish(self.table, handle, fragments, metrics, side)
        except JobError as error:
            self.abort_unpublished(handle, error)
            raise

    def _physical_plan(self, general: GeneralPlan) -> tuple[GeneralPlan | LocatedPlan, PlanChoice]:
        """The one place where the physical plan is chosen."""
        choice = chosen_plan(
            general.merge,
            general.processor,
            general.source,
            general.update_layout,
            sum(file.row_count for file in general.files),
            self.limits,
            has_arrow_rows=general.scan.arrow_row_id is not None,
            is_local=isinstance(self.connector.storage.filesystem, LocalFileSystem),
        )
        return physical_plan(
            general,
            choice,
            self.connector.storage,
            new_lookup_folder(self.scratch),
            is_forced=self.limits.plan is not None,
        )

    def _general_plan(
        self,
        merge: AnalyzedMerge,
        processor: RowChangeProcessor,
        files: Sequence[PlannedFile],
        source: MaterializedSource | None,
        keys: DynamicFilter | None,
    ) -> GeneralPlan:
        metadata = self.connector.metadata
        insert_layout = metadata.insert_layout(self.table)
        update_layout = metadata.update_layout(self.table)
        takes_inserts = processor.writes_inserts or update_layout is None
        row_count = sum(file.row_count for file in files)
        filters = source is not None and source.row_count <= self.limits.filter_share * row_count
        return GeneralPlan(
            spark=self.spark,
            merge=merge,
            moment=self.moment,
            processor=processor,
            scan=self.connector.scan,
            files=files,
            source=source,
            dynamic_filter=keys if filters else None,
            update_layout=update_layout,
            insert_layout=insert_layout if takes_inserts else WriteLayout((), ()),
            broadcast_limit=self.limits.broadcast,
            target_file_size=self.options.target_file_size,
        )

    def _writer(self, merge: AnalyzedMerge, handle: MergeHandle, write: MergeWrite) -> ChangeWriter:
        return ChangeWriter(
            sinks=handle.sinks,
            not_null=self.required_columns,
            assigned_columns=write.assigned_columns,
            on_columns=write.on_columns,
            labels=tuple(case.label for case in merge.cases),
            given_values=merge.given_values,
            allows_repeated_matches=merge.allows_repeated_matches,
            key_columns=self.table.key_columns,
            placement=self._placement() if self.counts_by_partition else None,
        )

    def _placement(self) -> Placement | None:
        metadata = self.connector.metadata
        layouts = metadata.update_layout(self.table), metadata.insert_layout(self.table)
        return placement(self.table, *layouts)
