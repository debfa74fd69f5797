"""A merge through Airflow: what is asked of the job, and what comes back."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from airflow.models.asset import AssetEvent
from airflow.models.dagrun import DagRun

from airflow_provider_merge.operators._shared.results import result_table
from spark_jobs.contract.request import FileSource, SqlSource, TableSource
from spark_jobs.contract.result import Metrics
from spark_jobs.contract.statements import Assignment, UpdateAction
from tests.airflow.support import DagFile, FakeSubmitter, committed, example_request

pytestmark = pytest.mark.usefixtures("airflow_db", "warehouse")

MERGE = """
MergeIntoOperator(
    task_id="merge",
    target="shop.orders",
    source=file_source("/data/{{ params.day }}/*.csv", "csv", options={"header": True}),
    on="t.id = s.id",
    when=[
        when_matched("s.state = '{{ params.state }}'").delete(),
        when_matched().update({"amount": "s.amount", "address.city": "1"}),
        when_not_matched().insert_all(),
    ],
    target_file_size="{{ params.size }}",
    rewrite_share="{{ params.share }}",
    isolation="{{ params.isolation }}",
    schema_evolution="{{ params.evolve }}",
    type_widening="{{ params.evolve }}",
)
"""
ARGUMENTS = """params={
    "day": "2024-05-06", "state": "gone", "size": "1000", "share": "0.5", "isolation": "snapshot",
    "evolve": "true",
}"""


def test_request_holds_the_rendered_statement(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, warehouse: Path
) -> None:
    run = dag_file(MERGE, arguments=ARGUMENTS).run()

    assert run.state == "success"
    request = submitter.request
    assert str(request.target) == "shop.orders"
    assert request.catalog.connector == "paimon"
    assert request.catalog.warehouse == str(warehouse)
    assert request.sources == (
        FileSource("merge_source", "/data/2024-05-06/*.csv", "csv", {"header": "true"}),
    )
    cases = request.statement.cases
    assert [case.when for case in cases] == ["matched", "matched", "not_matched"]
    assert cases[0].condition == "s.state = 'gone'"
    assert cases[1].action == UpdateAction(
        (Assignment("amount", "s.amount"), Assignment("address.city", "1"))
    )
    assert request.options.target_file_size == 1000
    assert request.options.rewrite_share == 0.5
    assert request.options.isolation == "snapshot"
    assert (request.statement.schema_evolution, request.options.type_widening) == (True, True)
    assert request.options.session_time_zone == "UTC"
    origin = request.origin
    assert (origin.dag_id, origin.run_id, origin.task_id) == (run.dag_id, run.run_id, "merge")
    assert (origin.map_index, origin.try_number, origin.retries) == (-1, 1, 0)


def test_native_rendering_leaves_sql_alone(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    arguments = ARGUMENTS + ", render_template_as_native_obj=True"
    body = MERGE.replace('"1"', "\"'gone'\"")
    assert dag_file(body, arguments=arguments).run().state == "success"
    (_, assignment) = submitter.request.statement.cases[1].action.assignments
    assert assignment.value == "'gone'"


def test_named_sources_come_before_the_query(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    dag_file(
        """
        MergeIntoOperator(
            task_id="merge",
            target="shop.orders",
            source=sql_source(
                "SELECT * FROM new JOIN old USING (id)",
                sources={
                    "new": file_source("/new", "parquet"),
                    "old": {"kind": "table", "table": "shop.`old orders`"},
                },
            ),
            on="t.id = s.id",
            when=[{"when": "not_matched", "action": "insert_all"}],
        )
        """
    ).run()
    new, old, query = submitter.request.sources
    assert isinstance(new, FileSource)
    assert isinstance(old, TableSource)
    assert old.table.table == "old orders"
    assert isinstance(query, SqlSource)
    assert query.name == submitter.request.statement.source


def test_xcom_and_asset_event(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, airflow_db: None
) -> None:
    run = dag_file(MERGE, arguments=ARGUMENTS).run()

    request = submitter.request
    (ti,) = run.get_task_instances()
    result = ti.xcom_pull(task_ids="merge")
    assert result["status"] == "committed"
    assert (result["base_snapshot_id"], result["snapshot_id"]) == (7, 8)
    assert result["metrics"]["updated"] == 2
    (event,) = _asset_events(run)
    assert event.asset.uri == "lakehouse://paimon_default/shop/orders"
    assert event.extra == {
        "operation": "merge",
        "operation_id": request.operation_id,
        "status": "committed",
        "table": "shop.orders",
        "base_snapshot_id": 7,
        "snapshot_id": 8,
        "inserted": 1,
        "updated": 2,
        "deleted": 0,
        "partitions_changed": 0,
        "partitions": [],
    }


def test_result_table_is_logged(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, capsys: pytest.CaptureFixture[str]
) -> None:
    dag_file(MERGE, arguments=ARGUMENTS).run()
    log = capsys.readouterr().out
    assert "shop.orders: committed, snapshot 8" in log
    assert "inserted 1 | updated 2 | deleted 0" in log


def test_attempts_are_in_the_first_line_where_others_were_in_the_way() -> None:
    result = committed(example_request(), metrics=Metrics(attempts=3))

    first, *_ = result_table(result).splitlines()

    assert first == "shop.orders: committed, snapshot 8, in attempt 3"


def test_templated_target_emits_where_the_asset_is_an_outlet(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    body = MERGE.replace('"shop.orders"', '"shop.{{ params.state }}"')
    body = body.replace(" on=", ' outlets=[table_asset("paimon_default", "shop.gone")], on=')
    run = dag_file(body, arguments=ARGUMENTS).run()
    (event,) = _asset_events(run)
    assert event.extra["table"] == "shop.gone"


def test_outlet_of_the_same_table_under_another_name(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    outlet = ' outlets=[Asset(name="gone", uri="lakehouse://paimon_default/shop/named")], on='
    body = MERGE.replace(" on=", outlet).replace("shop.orders", "shop.named")
    run = dag_file(body, arguments=ARGUMENTS).run()
    (event,) = _asset_events(run)
    assert event.asset.name == "gone"
    assert event.extra["snapshot_id"] == 8


def test_templated_target_that_no_dag_names_runs(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    body = MERGE.replace('"shop.orders"', '"shop.{{ params.state }}_unnamed"')
    run = dag_file(body, arguments=ARGUMENTS).run()
    assert run.state == "success"
    assert _asset_events(run) == []


def test_mapped_over_xcom(dag_file: Callable[..., DagFile], submitter: FakeSubmitter) -> None:
    run = dag_file(
        """
        @task
        def paths():
            return [file_source("/a", "orc"), file_source("/b", "orc")]

        MergeIntoOperator.partial(
            task_id="merge",
            target="shop.orders",
            on="t.id = s.id",
            when=[when_not_matched().insert_all()],
        ).expand(source=paths())
        """
    ).run()
    assert run.state == "success"
    requests = [job.work for job in submitter.jobs]
    paths = {request.origin.map_index: request.sources[0].path for request in requests}
    assert paths == {0: "/a", 1: "/b"}
    assert len({request.operation_id for request in requests}) == 2


def test_source_from_another_task(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    run = dag_file(
        """
        @task
        def path():
            return "/computed"

        MergeIntoOperator(
            task_id="merge",
            target="shop.orders",
            source=file_source(path(), "orc"),
            on="t.id = s.id",
            when=[when_not_matched().insert_all()],
        )
        """
    ).run()
    assert run.state == "success"
    assert submitter.request.sources[0].path == "/computed"
    order = [ti.task_id for ti in run.get_task_instances()]
    assert sorted(order) == ["merge", "path"]


def test_unchanged_is_a_success(dag_file: Callable[..., DagFile], submitter: FakeSubmitter) -> None:
    submitter.outcomes = [functools.partial(committed, status="unchanged", new_snapshot_id=None)]
    run = dag_file(MERGE, arguments=ARGUMENTS).run()
    (ti,) = run.get_task_instances()
    assert ti.xcom_pull(task_ids="merge")["status"] == "unchanged"


def _asset_events(run: DagRun) -> Sequence[AssetEvent]:
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select
    from sqlalchemy.orm import joinedload

    query = select(AssetEvent).options(joinedload(AssetEvent.asset))
    with create_session() as session:
        query = query.where(AssetEvent.source_run_id == run.run_id)
        return session.scalars(query.where(AssetEvent.source_dag_id == run.dag_id)).all()
