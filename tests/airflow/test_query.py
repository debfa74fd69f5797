"""A query through Airflow: what is asked of the job, what comes back, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.lineage.facets import query_lineage
from airflow_provider_merge.metadata.operations import result_location
from airflow_provider_merge.operators.query import QueryOperator
from airflow_provider_merge.operators.sources import file_source, table_source
from spark_jobs.contract.query import QueryColumn, QueryReport, QuerySpec
from spark_jobs.contract.request import FileSource, JobRequest, SqlSource, TableName, TableSource
from spark_jobs.contract.result import ErrorInfo, JobResult
from spark_jobs.errors import JobError
from tests.airflow.support import DagFile, FakeSubmitter, failed, store

LATE = 'QueryOperator(task_id="late", sql="SELECT id, paid FROM shop.orders", {})'
COLUMNS = (QueryColumn("id", "bigint"), QueryColumn("paid", "boolean"))


def answered(*rows: object, **fields: Any) -> Callable[[JobRequest], JobResult]:
    """A job that finds ``rows``."""

    def outcome(request: JobRequest) -> JobResult:
        report = QueryReport(COLUMNS, **{"row_count": len(rows), "rows": rows, **fields})
        return JobResult(
            request.operation_id,
            "unchanged",
            "",
            request.digest(),
            try_number=request.origin.try_number,
            query=report,
        )

    return outcome


def made(**parameters: Any) -> QueryOperator:
    return QueryOperator(**{"task_id": "q", "sql": "SELECT 1 AS a", **parameters})


@pytest.mark.usefixtures("airflow_db", "warehouse")
class TestRuns:
    def test_the_request_and_what_comes_back(
        self, dag_file: Callable[..., DagFile], submitter: FakeSubmitter
    ) -> None:
        submitter.outcomes = [answered((1, True), (2, None), truncated=True)]
        run = dag_file(
            """
            QueryOperator(
                task_id="late",
                sql="SELECT n.id, paid FROM orders JOIN new AS n ON n.id = {{ params.id }}",
                sources={"new": file_source("/new/{{ params.id }}", "parquet")},
                database="shop",
                limit="{{ params.limit }}",
                session_time_zone="Europe/Berlin",
            )
            """,
            arguments='params={"id": "7", "limit": "2"}',
        ).run()

        request = submitter.request
        assert request.target is None
        assert request.statement == QuerySpec("query", limit=2)
        query = "SELECT n.id, paid FROM shop__orders AS orders JOIN new AS n ON n.id = 7"
        assert request.sources == (
            FileSource("new", "/new/7", "parquet"),
            TableSource("shop__orders", TableName("shop", "orders")),
            SqlSource("query", query),
        )
        assert request.options.session_time_zone == "Europe/Berlin"
        (ti,) = run.get_task_instances()
        assert ti.xcom_pull(task_ids="late") == {
            "operation_id": request.operation_id,
            "columns": [{"name": "id", "type": "bigint"}, {"name": "paid", "type": "boolean"}],
            "row_count": 2,
            "rows": [[1, True], [2, None]],
            "truncated": True,
            "location": None,
        }
        assert not Path(result_location(request)).exists()

    def test_rows_in_files(
        self, dag_file: Callable[..., DagFile], submitter: FakeSubmitter
    ) -> None:
        submitter.outcomes = [answered(row_count=5, rows=None, location="/out/op-1")]
        body = LATE.format('output_path="/out/{{ ds }}", output_format="csv"')
        run = dag_file(body).run()

        assert submitter.request.statement.output_path.startswith("/out/2")
        assert submitter.request.statement.output_format == "csv"
        (ti,) = run.get_task_instances()
        found = ti.xcom_pull(task_ids="late")
        assert (found["rows"], found["row_count"]) == (None, 5)
        assert found["location"] == "/out/op-1"

    @pytest.mark.parametrize(
        ("check", "rows", "state"),
        [
            ("all_true", [(True, True)], "success"),
            ("all_true", [(1, True)], "failed"),
            ("all_true", [], "failed"),
            ("no_rows", [], "success"),
            ("no_rows", [(1, True)], "failed"),
        ],
    )
    def test_a_check_decides_what_follows(
        self,
        dag_file: Callable[..., DagFile],
        submitter: FakeSubmitter,
        check: str,
        rows: list[tuple[bool | int, bool]],
        state: str,
    ) -> None:
        submitter.outcomes = [answered(*rows)]
        body = f"{LATE.format(f'check={check!r}, retries=3')} >> DeleteFromOperator(\n"
        body += '    task_id="after", target="shop.orders")'
        if state == "success":
            submitter.outcomes.append(lambda _: None)
        run = dag_file(body).run()

        states = {ti.task_id: ti.state for ti in run.get_task_instances()}
        assert states["late"] == state
        assert len(submitter.jobs) == (2 if state == "success" else 1)

    def test_a_downstream_task_reads_the_rows(
        self, dag_file: Callable[..., DagFile], submitter: FakeSubmitter
    ) -> None:
        submitter.outcomes = [answered((3, False))]
        body = """
        late = QueryOperator(task_id="late", sql="SELECT id, paid FROM shop.orders")

        @task.short_circuit
        def goes_on(found):
            return found["rows"][0][1]

        @task
        def after():
            pass

        goes_on(late.output) >> after()
        """
        run = dag_file(body).run()
        states = {ti.task_id: ti.state for ti in run.get_task_instances()}
        assert states == {"late": "success", "goes_on": "success", "after": "skipped"}

    def test_a_failed_job_fails_the_task(
        self, dag_file: Callable[..., DagFile], submitter: FakeSubmitter
    ) -> None:
        error = ErrorInfo("RESULT_TOO_LARGE", "limit: too many bytes", "Use files.", False)
        submitter.outcomes = [lambda request: failed(request, error, target="")]
        submitter.process_fails = True
        run = dag_file(LATE.format("retries=3")).run()
        assert run.state == "failed"
        assert len(submitter.jobs) == 1

    def test_a_result_of_another_try_is_not_taken(
        self, dag_file: Callable[..., DagFile], submitter: FakeSubmitter
    ) -> None:
        def of_another_try(request: JobRequest) -> None:
            result = answered((1, True))(request)
            store(
                request,
                JobResult.from_json(result.to_json().replace('try_number": 1', 'try_number": 0')),
            )

        submitter.outcomes = [of_another_try]
        assert dag_file(LATE.format("")).run().state == "failed"


def test_no_asset_is_written_and_tables_that_are_read_are_inlets() -> None:
    operator = made(
        sql="SELECT * FROM shop.orders JOIN new USING (id)",
        sources={"new": table_source("shop.new")},
    )
    assert operator.outlets == []
    assert [each.uri for each in operator.inlets] == [
        "lakehouse://paimon_default/shop/new",
        "lakehouse://paimon_default/shop/orders",
    ]


def test_openlineage_is_told_what_is_read() -> None:
    operator = made(
        sql="SELECT * FROM shop.orders JOIN new USING (id)",
        sources={"new": file_source("s3://landing/new", "parquet")},
    )
    told = operator.get_openlineage_facets_on_start()
    assert [(each.namespace, each.name) for each in told.inputs] == [
        ("lakehouse://paimon_default", "shop.orders"),
        ("s3://landing", "new"),
    ]
    assert told.outputs == []
    assert told.job_facets["sql"].query == operator.sql
    assert query_lineage("c", (), "SELECT 1").inputs == []


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"sql": "DELETE FROM a.b"}, "sql: line 1, column 1: DELETE is not a part of a query"),
        ({"sql": None}, "sql: is None"),
        ({"sql": "SELECT * FROM orders"}, "sql: line 1, column 15: orders is neither"),
        ({"limit": 0}, "limit: 0 is not a positive whole number"),
        ({"limit": 20_000}, "limit: 20000 is not between 1 and 10,000"),
        ({"output_path": "out"}, "output_path: 'out' is not an absolute path"),
        ({"output_path": "s3://me:hunter2@b/out"}, "output_path: holds a secret"),
        ({"output_format": "orc"}, "output_format: 'orc' is not one of"),
        ({"output_format": "orc", "sql": "{{ x }}"}, "output_format: 'orc' is not one of"),
        ({"check": "true"}, "check: 'true' is not one of: all_true, no_rows"),
        ({"check": "all_true", "output_path": "/out"}, "check: the rows in files are not"),
        ({"sources": {"a": {"kind": "x"}}}, "sources.a.kind: 'x' is not one of"),
    ],
)
def test_what_the_dag_file_refuses(parameters: dict[str, Any], problem: str) -> None:
    with pytest.raises(JobError) as caught:
        made(**parameters)
    assert caught.value.message.startswith(f"task 'q': {problem}")
    assert "hunter2" not in str(caught.value)
