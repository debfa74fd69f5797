"""Runs random statements on real tables and compares everything with the oracle."""

from __future__ import annotations

import dataclasses
import pprint
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import JobRequest, TableName
from spark_jobs.contract.result import JobResult, Metrics, PlanReport
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.errors import ErrorCode
from tests.oracle.merge import Merge, Outcome, multiset
from tests.oracle.statements import InsertRows, Statement, apply
from tests.property.cases import Chain, Step, Table
from tests.property.census import Census, features
from tests.property.checked import require_changes
from tests.property.edges import edged_chain
from tests.property.evolving import evolving_chain, may_be_refused, may_store_nothing
from tests.property.folder_tables import FolderTable
from tests.property.iceberg_tables import IcebergTable
from tests.property.paimon_tables import DATABASE, PaimonTable, Warehouse, arrow_table
from tests.property.planned import is_refused, planned_chain
from tests.property.requests import request_of
from tests.property.row_ids import checked_rows, tracked_rows
from tests.property.shrink import smallest
from tests.property.sql import SOURCE
from tests.support.forced_plans import forced_plan
from tests.support.metadata_verdict import require_no_other_verdict
from tests.support.recorded_changes import READING_ALL, seen_by_checks
from tests.support.table_kinds import FOLDER, ICEBERG, TableKind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.engine.merge.physical_plan import Plan

AnyTable = PaimonTable | FolderTable | IcebergTable


@dataclasses.dataclass(frozen=True)
class Look:
    """What can be seen of a table from outside."""

    snapshot_id: int | None
    parent_id: int | None
    rows: list[str]
    files: set[Path]
    index_files: set[Path]
    live_index_files: set[Path]

    @classmethod
    def at(cls, table: AnyTable) -> Look:
        """The table as it is now."""
        return cls(
            table.snapshot_id(),
            table.parent_id(),
            multiset(table.rows(), table.columns),
            table.files(),
            table.index_files(),
            table.live_index_files(),
        )


@dataclasses.dataclass(frozen=True)
class Runner:
    """A session and a warehouse for all examples of a run.

    ``kinds``: those of all tables; none: tables are of the kinds of their seeds. Ids of rows are
    compared with Paimon's Java reader. ``plan``: the only one that runs; None: each statement has
    its own. ``checks``: every statement has checks of rows, and what they see is compared, too.
    ``plans_first``: what a statement does is within the bounds of its plan.
    """

    spark: SparkSession
    warehouse: Warehouse
    census: Census = dataclasses.field(default_factory=Census)
    kinds: tuple[TableKind, ...] = ()
    plan: Plan | None = None
    checks: bool = False
    plans_first: bool = False

    def run_seed(self, seed: int) -> None:
        """Run the chain of a seed and count what it met; a failure comes with a small chain."""
        kind = self.kinds[seed % len(self.kinds)] if self.kinds else None
        if self.plan is not None:
            chain = planned_chain(edged_chain(seed, kind, merge_share=1), self.plan)
        else:
            chain = edged_chain(seed, kind)
        if chain.table.kind.evolves_columns:
            chain = evolving_chain(chain, seed)
        self.census.seeds.append(seed)
        try:
            for met, _ in self.results(chain):
                self.census.add(met)
        except Exception as error:
            found = smallest(chain, self._fails)
            raise AssertionError(f"seed {seed}: {error}\n{pprint.pformat(found)}") from error

    def run(self, chain: Chain) -> None:
        """Run the statements of ``chain`` one after another, each as the oracle says."""
        for _ in self.results(chain):
            pass

    def results(self, chain: Chain) -> Iterator[tuple[set[str], JobResult]]:
        """Run statement by statement; yields what each has met, and its result."""
        table = self._create(chain.table)
        rows, tracks_rows = chain.table.rows, chain.table.kind.tracks_rows
        if tracks_rows:
            rows = tracked_rows(table)
        for number, step in enumerate(chain.steps, start=1):
            next_id = table.next_row_id() if tracks_rows else 0
            outcome = apply(step.statement, chain.table.columns, rows, step.source)
            before = Look.at(table)
            with seen_by_checks() as seen:
                result = self._run_step(step, table, number, chain)
            by_table = _is_refused(result) and may_be_refused(step.statement, chain.table)
            if by_table or is_refused(result, chain):
                _require_same(Look.at(table), before)
                continue
            expected = multiset(outcome.rows, chain.table.columns)
            after = Look.at(table)
            if self._has_checks(step, chain.table) and not result.error:
                require_changes(seen, chain.table.columns, outcome)
            commits = _commits(step.statement, chain.table, result, outcome)
            _compare(before, after, result, expected, outcome, commits=commits)
            if isinstance(step.statement, Merge) and not result.error:
                assert result.metrics.source_rows == len(step.source)
            yield features(chain.table, rows, step, outcome) | _work(result), result
            rows = outcome.rows
            if tracks_rows:
                rows = checked_rows(table, outcome.rows, next_id, after.snapshot_id)

    def _create(self, table: Table) -> AnyTable:
        if table.kind not in (FOLDER, *ICEBERG):
            return self.warehouse.create(table)
        name = self.warehouse.new_name()
        if table.kind in ICEBERG:
            return IcebergTable.create(self.spark, self.warehouse.path, name, table)
        return FolderTable.create(self.spark, self.warehouse.path, DATABASE, name, table)

    def _has_checks(self, step: Step, table: Table) -> bool:
        return self.checks and not _upserts(step.statement, table)

    def _fails(self, chain: Chain) -> bool:
        try:
            self.run(chain)
        except Exception:  # noqa: BLE001 - whatever it is
            return True
        return False

    def _run_step(
        self,
        step: Step,
        table: AnyTable,
        number: int,
        chain: Chain,
    ) -> JobResult:
        source = self.warehouse.path.parent / f"{table.name}-source{number}.parquet"
        pq.write_table(arrow_table(step.source_columns, step.source), source)
        name = TableName(DATABASE, table.name)
        request = request_of(step, self.warehouse.path, name, source)
        if self._has_checks(step, chain.table):
            request = dataclasses.replace(request, guards=READING_ALL)
        planned = self._planned(request, table, chain) if self.plans_first else None
        with forced_plan(chain.plan) as tally:
            result = self._ran(request, table, chain)
        tally.require_ran(result)
        if planned is not None and result.error is None:
            _require_bounds(planned, result.metrics)
        columns = {each.name: each.type for each in chain.table.columns}
        read = {SOURCE: {each.name: each.type for each in step.source_columns}}
        keys = [chain.table.partition] if chain.table.partition else []
        require_no_other_verdict(request, result, columns, keys, read)
        return result

    def _ran(self, request: JobRequest, table: AnyTable, chain: Chain) -> JobResult:
        if not isinstance(table, PaimonTable):
            return table.run(request, chain.limits)
        connector = open_connector(request.catalog, {})
        return Job(request, self.spark, connector, limits=chain.limits).run()

    def _planned(self, request: JobRequest, table: AnyTable, chain: Chain) -> PlanReport | None:
        """The plan of a request, which changes nothing; None: it fails as the statement does."""
        before = Look.at(table)
        planned = dataclasses.replace(
            request, operation_id=f"{request.operation_id}-plan", dry_run=True, plan_only=True
        )
        result = self._ran(planned, table, chain)
        _require_same(Look.at(table), before)
        assert (result.plan is None) == (result.error is not None)
        return result.plan


def _require_bounds(plan: PlanReport, metrics: Metrics) -> None:
    assert metrics.inserted <= plan.inserted
    assert metrics.updated <= plan.updated
    assert metrics.deleted <= plan.deleted
    assert metrics.files_rewritten <= plan.files_rewritten
    # A rewritten file of which nothing is left counts as removed.
    assert metrics.files_removed <= plan.files_rewritten + plan.files_removed


def _upserts(statement: Statement, table: Table) -> bool:
    """Whether nobody knows which rows an INSERT INTO changes, so that it can have no checks."""
    has_key = any(column.is_key for column in table.columns)
    return has_key and isinstance(statement, InsertRows) and statement.mode == "append"


def _is_refused(result: JobResult) -> bool:
    return result.error is not None and result.error.code == ErrorCode.NOT_SUPPORTED.name


def _work(result: JobResult) -> set[str]:
    metrics = result.metrics
    done = {
        "pruned files": 0 < metrics.files_scanned < metrics.files_total,
        "rewrote files": metrics.files_rewritten > 0,
        "carried rows": metrics.carried > 0,
        "marked rows": metrics.deletion_vectors_added > 0,
        "join plan": metrics.plan.startswith("join"),
        "located plan": metrics.plan.startswith("located"),
        "prepared plan": metrics.plan.startswith("prepared"),
    }
    return {name for name, is_met in done.items() if is_met}


def _commits(statement: Statement, table: Table, result: JobResult, outcome: Outcome) -> bool:
    """Whether there is something to commit."""
    if outcome.changed and may_store_nothing(statement, table):
        return result.status != "unchanged"
    # With a primary key, a replaced partition may have files all of whose rows are deleted.
    has_key = any(column.is_key for column in table.columns)
    return outcome.changed or (has_key and result.metrics.files_removed > 0)


def _compare(
    before: Look,
    after: Look,
    result: JobResult,
    expected: list[str],
    outcome: Outcome,
    *,
    commits: bool,
) -> None:
    if outcome.errors:
        assert result.error is not None, f"expected {outcome.errors}"
        assert result.status == "failed"
        assert result.error.code in outcome.errors, result.error
        assert result.new_snapshot_id is None
        _require_same(after, before)
        return
    assert result.error is None, result.error
    assert after.rows == expected
    metrics = result.metrics
    assert (metrics.inserted, metrics.updated, metrics.deleted) == (
        outcome.inserted,
        outcome.updated,
        outcome.deleted,
    )
    assert len(after.files - before.files) == metrics.files_added
    assert before.files <= after.files, "a file of an older snapshot is gone"
    assert before.index_files <= after.index_files, "an index of an older snapshot is gone"
    assert after.index_files - before.index_files <= after.live_index_files, "files were left"
    if commits:
        assert result.status == "committed"
        assert after.snapshot_id == result.new_snapshot_id
        assert after.parent_id == before.snapshot_id
    else:
        assert result.status == "unchanged"
        assert result.new_snapshot_id is None
        _require_same(after, before)


def _require_same(after: Look, before: Look) -> None:
    assert after.snapshot_id == before.snapshot_id
    assert after.rows == before.rows
    assert after.files == before.files, "files were left behind"
    assert after.index_files == before.index_files, "index files were left behind"
