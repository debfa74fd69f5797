"""What the tests of the operators share."""

from __future__ import annotations

import importlib.util
import itertools
import json
import textwrap
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.metadata.operations import result_location
from airflow_provider_merge.submit.submitter import SparkJob, SubmissionError
from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.request import CatalogSpec, JobRequest, TableName, TableSource
from spark_jobs.contract.result import ErrorInfo, JobResult, Metrics
from spark_jobs.contract.statements import DeleteAction, MergeCase, MergeSpec

# Planted in connections; it must never be seen outside of the credentials.
PASSWORD = "hunter2-planted"

_HEADER = """
from datetime import datetime
from airflow.sdk import DAG, Asset, task
from airflow_provider_merge.assets import table_asset
from airflow_provider_merge.operators.clauses import (
    when_matched, when_not_matched, when_not_matched_by_source
)
from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.drop_partitions import DropPartitionsOperator
from airflow_provider_merge.operators.insert_into import InsertIntoOperator
from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.query import QueryOperator
from airflow_provider_merge.operators.sources import file_source, sql_source, table_source
from airflow_provider_merge.operators.statement_list import (
    create_table, delete_from, insert_overwrite, merge_into, sql_statement, update
)
from airflow_provider_merge.operators.statements import StatementsOperator
from airflow_provider_merge.operators.truncate_table import TruncateTableOperator
from airflow_provider_merge.operators.update import UpdateOperator

with DAG({dag_id!r}, schedule=None, start_date=datetime(2024, 1, 1), {arguments}) as dag:
"""
_numbers = itertools.count()


def connection(monkeypatch: pytest.MonkeyPatch, conn_id: str, **fields: Any) -> None:
    """Define a connection through the environment."""
    monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(fields))


def committed(request: JobRequest, **changes: Any) -> JobResult:
    """The result of a job that made snapshot 8."""
    fields = {
        "operation_id": request.operation_id,
        "status": "committed",
        "target": str(request.target),
        "request_digest": request.digest(),
        "metrics": Metrics(source_rows=3, inserted=1, updated=2, seconds={"join": 0.5}),
        "base_snapshot_id": 7,
        "new_snapshot_id": 8,
        "try_number": request.origin.try_number,
    }
    return JobResult(**{**fields, **changes})


def failed(request: JobRequest, error: ErrorInfo, **changes: Any) -> JobResult:
    """The result of a job that failed."""
    fields = {"status": "failed", "error": error, "new_snapshot_id": None, "metrics": Metrics()}
    return committed(request, **{**fields, **changes})


def store(request: JobRequest, result: JobResult) -> None:
    """Leave the result where a job leaves it."""
    path = Path(result_location(request))
    path.parent.mkdir(exist_ok=True)
    path.write_text(result.to_json())


@dataclass
class FakeSubmitter:
    """Records the jobs; ``outcomes`` play them in turn, the last one for all further jobs."""

    outcomes: list[Callable[[JobRequest], JobResult | None]] = field(
        default_factory=lambda: [committed]
    )
    process_fails: bool = False
    jobs: list[SparkJob] = field(default_factory=list)
    kills: int = 0

    def submit(self, job: SparkJob) -> None:
        self.jobs.append(job)
        for request in job.work.requests if isinstance(job.work, JobBatch) else (job.work,):
            outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
            result = outcome(request)
            if result is not None:
                store(request, result)
        if self.process_fails:
            raise SubmissionError("Cannot execute: spark-submit. Error code is: 1.")

    def kill(self) -> None:
        self.kills += 1

    @property
    def request(self) -> JobRequest:
        """The only request."""
        (job,) = self.jobs
        assert isinstance(job.work, JobRequest)
        return job.work


@dataclass(frozen=True)
class DagFile:
    """A DAG file that Airflow's own parser and ``dag.test()`` see."""

    path: Path
    dag_id: str

    @classmethod
    def write(cls, folder: Path, body: str, arguments: str = "") -> DagFile:
        dag_id = f"dag_{next(_numbers)}"
        path = folder / f"{dag_id}.py"
        header = _HEADER.format(dag_id=dag_id, arguments=arguments)
        path.write_text(header + textwrap.indent(textwrap.dedent(body), "    "))
        return cls(path, dag_id)

    def dag(self) -> Any:
        """The DAG; errors of the file are raised as they are."""
        spec = importlib.util.spec_from_file_location(self.dag_id, self.path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            self.path.unlink()  # the next dag.test() parses the whole folder
            raise
        return module.dag

    def run(self, **options: Any) -> Any:
        """Run the DAG in this process; returns the DagRun."""
        try:
            return self.dag().test(**options)
        finally:
            self.path.unlink(missing_ok=True)


def example_request(**changes: Any) -> JobRequest:
    """A small merge."""
    case = MergeCase("matched", DeleteAction())
    fields: dict[str, Any] = {
        "operation_id": str(uuid.uuid4()),
        "target": TableName("shop", "orders"),
        "catalog": CatalogSpec("paimon", "/warehouse"),
        "statement": MergeSpec("updates", "t.id = s.id", (case,), "t", "s"),
        "sources": (TableSource("updates", TableName("shop", "updates")),),
    }
    return JobRequest(**{**fields, **changes})
