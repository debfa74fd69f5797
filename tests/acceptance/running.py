"""Runs a case on one kind of table and says what differed from what it expects."""

from __future__ import annotations

import dataclasses
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.request import CatalogSpec, JobRequest
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import Cardinality, MergeSpec
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.main import run
from tests.acceptance.cases import CATEGORIES, Case, Expected
from tests.acceptance.tables import Look, PaimonTable, Warehouse
from tests.acceptance.values import as_arrow, comparable, difference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOT_SUPPORTED = ErrorCode.NOT_SUPPORTED.name


@dataclass(frozen=True)
class Attempt:
    """One run of a case: ``expected`` is what it shall do in this mode of cardinality."""

    case: Case
    expected: Expected
    cardinality: Cardinality = "effective"

    @property
    def label(self) -> str:
        """The case's id, with the mode where it matters."""
        has_rule = self.case.cardinality_error_in is not None
        return f"{self.case.id} [{self.cardinality}]" if has_rule else self.case.id


@dataclass(frozen=True)
class Verdict:
    """What came of an attempt; ``difference`` is empty where it held, ``code`` that of an error."""

    attempt: Attempt
    difference: str
    code: str | None
    seconds: float


@dataclass
class Bench:
    """A session and a warehouse for all cases."""

    spark: SparkSession
    warehouse: Warehouse
    runs: int = field(default=0)

    def run(self, attempt: Attempt) -> Verdict:
        """Run an attempt in a database of its own."""
        started = time.monotonic()
        self.runs += 1
        code, problem = _Run(self.spark, self.warehouse, f"case{self.runs}", attempt).judged()
        return Verdict(attempt, problem, code, time.monotonic() - started)


@dataclass(frozen=True)
class _Run:
    spark: SparkSession
    warehouse: Warehouse
    database: str
    attempt: Attempt

    def judged(self) -> tuple[str | None, str]:
        """The code of the error, if there was one, and what differed."""
        case = self.attempt.case
        tables = {
            each.table: self.warehouse.create(self.database, each)
            for each in case.create
            if each.kind == "table"
        }
        before = {name: table.look() for name, table in tables.items()}
        request, result, error = self._run_statement()
        after = {name: table.look() for name, table in tables.items()}
        code = None if error is None else error[0]
        expected = self.attempt.expected
        if expected.category is not None:
            return code, _judge_failure(expected.category, code, before, after)
        if error is not None:
            return code, f"{error[0]}: {error[1]}"
        assert request is not None
        assert result is not None
        (target,) = (name for name in tables if name.lower() == request.target.table.lower())
        problems = [
            self._judge_rows(tables[target]),
            _judge_count(case.update_count, result),
            *(f"{n} changed" for n in tables if n != target and before[n] != after[n]),
        ]
        return code, "; ".join(filter(None, problems))

    def _run_statement(
        self,
    ) -> tuple[JobRequest | None, JobResult | None, tuple[str, str] | None]:
        if self.attempt.case.verb == "INSERT":
            return None, None, (NOT_SUPPORTED, "INSERT OVERWRITE is not built yet")
        try:
            request = self._request()
        except JobError as error:
            return None, None, (error.code.name, error.message)
        result = run(request, self.spark)
        error = None if result.error is None else (result.error.code, result.error.message)
        return request, result, error

    def _request(self) -> JobRequest:
        case = self.attempt.case
        views = [each for each in case.create if each.kind == "view"]
        sources = [self.warehouse.view(self.database, view) for view in views]
        names = [source.name for source in sources]
        parsed = parse_statement(case.statement, names, self.database)
        statement = parsed.statement
        if isinstance(statement, MergeSpec):
            statement = dataclasses.replace(statement, cardinality=self.attempt.cardinality)
        return JobRequest(
            operation_id=str(uuid.uuid4()),
            target=parsed.target,
            catalog=CatalogSpec("paimon", str(self.warehouse.path)),
            statement=statement,
            sources=(*sources, *parsed.sources),
        )

    def _judge_rows(self, table: PaimonTable) -> str:
        expected = self.attempt.expected
        found = table.rows()
        if expected.select:
            found = self.spark.createDataFrame(found).selectExpr(*expected.select).toArrow()
        assert expected.rows is not None
        return difference(comparable(found), comparable(as_arrow(expected.rows, found.schema)))


def _judge_failure(
    category: str, code: str | None, before: Mapping[str, Look], after: Mapping[str, Look]
) -> str:
    wanted = CATEGORIES[category]
    problems = [
        f"{name} changed although it failed" for name in before if before[name] != after[name]
    ]
    if code not in wanted:
        problems.append(f"expected {' or '.join(sorted(wanted))}, got {code or 'no error'}")
    return "; ".join(problems)


def _judge_count(expected: int | None, result: JobResult) -> str:
    metrics = result.metrics
    found = metrics.inserted + metrics.updated + metrics.deleted
    if expected is None or found == expected:
        return ""
    return f"{found} rows reported as changed, not {expected}"
