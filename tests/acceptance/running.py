"""Runs a case on one kind of table and says what differed from what it expects."""

from __future__ import annotations

import dataclasses
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.inserts import InsertOverwriteSpec, InsertStatement
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.statements import Cardinality, MergeSpec
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.run import run
from tests.acceptance.cases import CATEGORIES, EVOLUTION, Case, Expected
from tests.acceptance.tables import CaseTable, Warehouse, normal_type
from tests.acceptance.values import as_arrow, comparable, difference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOT_SUPPORTED = ErrorCode.NOT_SUPPORTED.name
# What tells a user that the statement or the data is wrong.
_FINAL = frozenset(each.name for each in ErrorCode if not each.retryable) - {NOT_SUPPORTED}


@dataclass(frozen=True)
class Attempt:
    """One run of a case: ``expected`` is what it shall do in this mode of cardinality.

    ``problem`` says why it cannot be run, ``unchecked`` what of it nobody can check.
    """

    case: Case
    expected: Expected
    cardinality: Cardinality = "effective"
    problem: str = ""
    unchecked: str = ""

    @property
    def label(self) -> str:
        """The case's id, with the mode where it matters."""
        has_rule = self.case.cardinality_error_in is not None
        return f"{self.case.id} [{self.cardinality}]" if has_rule else self.case.id


@dataclass(frozen=True)
class Verdict:
    """What came of an attempt; ``difference`` is empty where it held, ``code`` that of an error.

    ``is_judged``: the statement was run, and its tables were looked at.
    """

    attempt: Attempt
    difference: str
    code: str | None
    seconds: float
    is_judged: bool = True


@dataclass
class Bench:
    """A session and a warehouse for all cases."""

    spark: SparkSession
    warehouse: Warehouse
    runs: int = field(default=0)

    def run(self, attempt: Attempt) -> Verdict:
        """Run an attempt in a database of its own."""
        if attempt.problem:
            return Verdict(attempt, attempt.problem, None, 0.0, is_judged=False)
        started = time.monotonic()
        self.runs += 1
        try:
            code, problem = _Run(self.spark, self.warehouse, f"case{self.runs}", attempt).judged()
        except Exception as error:  # noqa: BLE001 - the other cases are run nevertheless
            problem = f"{type(error).__name__}: {error}"
            return Verdict(attempt, problem, None, time.monotonic() - started, is_judged=False)
        return Verdict(attempt, problem, code, time.monotonic() - started)


@dataclass(frozen=True)
class _Done:
    """What a statement did; ``target`` is unknown where the text was refused."""

    target: str | None = None
    changed_rows: int = 0
    code: str | None = None
    message: str = ""


@dataclass(frozen=True)
class _Run:
    spark: SparkSession
    warehouse: Warehouse
    database: str
    attempt: Attempt

    def judged(self) -> tuple[str | None, str]:
        """The code of the error, if there was one, and what differed."""
        tables = {
            each.table: self.warehouse.create(self.database, each)
            for each in self.attempt.case.create
            if each.kind == "table"
        }
        before = {name: table.look() for name, table in tables.items()}
        done = self._run_statement()
        after = {name: table.look() for name, table in tables.items()}
        changed = [name for name in tables if before[name] != after[name]]
        return done.code, "; ".join(filter(None, self._problems(done, tables, changed)))

    def _problems(
        self, done: _Done, tables: Mapping[str, CaseTable], changed: list[str]
    ) -> Iterator[str]:
        category = self.attempt.expected.category
        target = (done.target or "").lower()
        for name in changed:
            if name.lower() != target or done.code or category:
                yield f"{name} changed"
        if category is not None:
            if done.code not in CATEGORIES.get(category, _FINAL):
                wanted = " or ".join(sorted(CATEGORIES.get(category, ["a final error"])))
                yield f"expected {wanted}, got {done.code or 'no error'}"
        elif done.code is not None:
            yield f"{done.code}: {done.message}"
        else:
            (table,) = (each for name, each in tables.items() if name.lower() == target)
            if self.attempt.expected.rows is not None:
                yield self._row_problem(table)
            if self.attempt.expected.columns is not None:
                yield self._column_problem(table)
            expected = self.attempt.case.update_count
            if expected not in (None, done.changed_rows):
                yield f"{done.changed_rows} rows reported as changed, not {expected}"

    def _run_statement(self) -> _Done:
        try:
            request = self._request()
        except JobError as error:
            return _Done(code=error.code.name, message=error.message)
        result = run(request, self.spark)
        target = request.target.table
        if result.error is not None:
            return _Done(target, code=result.error.code, message=result.error.message)
        metrics = result.metrics
        return _Done(target, metrics.inserted + metrics.updated + metrics.deleted)

    def _request(self) -> JobRequest:
        case = self.attempt.case
        views = [each for each in case.create if each.kind == "view"]
        sources = [self.warehouse.view(self.database, view) for view in views]
        names = [source.name for source in sources]
        parsed = parse_statement(case.statement, names, self.database)
        statement = parsed.statement
        if isinstance(statement, MergeSpec):
            statement = dataclasses.replace(statement, cardinality=self.attempt.cardinality)
        if case.settings.get(EVOLUTION) and isinstance(statement, MergeSpec | InsertStatement):
            statement = dataclasses.replace(statement, schema_evolution=True)
        policy = case.settings.get("partition_overwrite_mode", parsed.overwrites)
        if isinstance(statement, InsertOverwriteSpec) and policy == "dynamic":
            statement = dataclasses.replace(statement, mode="dynamic")
        return JobRequest(
            operation_id=str(uuid.uuid4()),
            target=parsed.target,
            catalog=self.warehouse.spec,
            statement=statement,
            sources=(*sources, *parsed.sources),
            options=JobOptions(type_widening=self._widens() or None),
        )

    def _widens(self) -> bool:
        """Whether the case expects another type of a column that it starts with."""
        case = self.attempt.case
        before = {
            name.lower(): normal_type(kind)
            for table in case.create
            if table.kind == "table"
            for name, kind in table.columns
        }
        after = dict(self.attempt.expected.columns or ())
        atoms = {name.lower(): normal_type(kind) for name, kind in after.items()}
        return any(
            before.get(name, kind) != kind and "<" not in kind for name, kind in atoms.items()
        )

    def _column_problem(self, table: CaseTable) -> str:
        wanted = tuple(
            (name, normal_type(kind)) for name, kind in self.attempt.expected.columns or ()
        )
        found = table.columns
        return "" if found == wanted else f"columns {found}, not {wanted}"

    def _row_problem(self, table: CaseTable) -> str:
        expected = self.attempt.expected
        found = table.rows()
        if expected.select:
            found = self.spark.createDataFrame(found).selectExpr(*expected.select).toArrow()
        assert expected.rows is not None
        return difference(comparable(found), comparable(as_arrow(expected.rows, found.schema)))
