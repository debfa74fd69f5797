"""SQL texts through Airflow: files, rendering, the request, and errors before Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.models.asset import AssetEvent
from airflow.models.dagrun import DagRun

from spark_jobs.contract.request import FileSource, SqlSource, TableName, TableSource
from spark_jobs.contract.statements import DeleteSpec, UpdateSpec
from tests.airflow.support import DagFile, FakeSubmitter

pytestmark = pytest.mark.usefixtures("airflow_db", "warehouse")

FILE_MERGE = """
MergeIntoOperator(
    task_id="merge",
    sql="{file}",
    sources={{"updates": file_source("/data/{{{{ params.day }}}}", "parquet")}},
)
"""
TEXT = """\
-- the day's updates
MERGE INTO shop.orders AS t
USING (SELECT * FROM updates WHERE day = DATE '{{ params.day }}') AS s
ON t.id = s.id
WHEN MATCHED THEN UPDATE SET note = 'WHEN {{ params.day }}', amount = s.amount
WHEN NOT MATCHED THEN INSERT *
"""
ARGUMENTS = 'params={"day": "2024-05-06"}'


@pytest.fixture
def sql_file(dag_file: Callable[..., DagFile]) -> Iterator[Callable[..., DagFile]]:
    """Writes a DAG file and, beside it, the SQL file that it names."""
    written: list[Path] = []

    def write(text: str, body: str = FILE_MERGE, **options: Any) -> DagFile:
        name = f"statement_{len(written)}.sql"
        file = dag_file(body.format(file=name), **options)
        (file.path.parent / name).write_text(text)
        written.append(file.path.parent / name)
        return file

    yield write
    for path in written:
        path.unlink()


def test_a_file_is_rendered(sql_file: Callable[..., DagFile], submitter: FakeSubmitter) -> None:
    run = sql_file(TEXT, arguments=ARGUMENTS).run()

    assert run.state == "success"
    request = submitter.request
    assert request.target == TableName("shop", "orders")
    assert request.sources == (
        FileSource("updates", "/data/2024-05-06", "parquet"),
        SqlSource("merge_source", "SELECT * FROM updates WHERE day = DATE '2024-05-06'"),
    )
    update, _ = request.statement.cases
    assert [each.value for each in update.action.assignments] == ["'WHEN 2024-05-06'", "s.amount"]
    assert request.statement.source == "merge_source"


def test_the_rendered_text_is_shown_as_sql(
    sql_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    from airflow.models.renderedtifields import RenderedTaskInstanceFields

    file = sql_file(TEXT, arguments=ARGUMENTS)
    assert file.dag().task_dict["merge"].template_fields_renderers["sql"] == "sql"
    (ti,) = file.run().get_task_instances()
    shown = RenderedTaskInstanceFields.get_templated_fields(ti)["sql"]
    assert shown == TEXT.replace("{{ params.day }}", "2024-05-06")


def test_a_rendered_file_gives_an_asset_event_where_the_asset_is_an_outlet(
    sql_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    outlet = 'outlets=[table_asset("paimon_default", "shop.orders")], sources='
    body = FILE_MERGE.replace("sources=", outlet)
    run = sql_file(TEXT, body, arguments=ARGUMENTS).run()
    assert run.state == "success"
    assert [event.extra["table"] for event in _asset_events(run)] == ["shop.orders"]


def test_a_file_without_templates_names_the_outlet_itself(
    sql_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    file = sql_file(TEXT.replace("{{ params.day }}", "2024-05-06"), arguments=ARGUMENTS)
    dag = file.dag()
    dag.resolve_template_files()
    assert [each.uri for each in dag.task_dict["merge"].outlets] == [
        "lakehouse://paimon_default/shop/orders"
    ]
    file.path.unlink()


def test_a_wrong_file_without_templates_is_an_import_error(
    sql_file: Callable[..., DagFile],
) -> None:
    from airflow.dag_processing.dagbag import DagBag

    file = sql_file("MERGE INTO shop.orders\nUSNG updates ON true", arguments=ARGUMENTS)
    bag = DagBag(dag_folder=str(file.path))
    file.path.unlink()
    (error,) = bag.import_errors.values()
    assert re.search(
        r"SYNTAX_ERROR: task 'merge': sql \(\S+\.sql\): line 2, column 6: expected USING", error
    )


WRONG = {
    "syntax": ("USNG", "SYNTAX_ERROR: sql: line 1, column 29: expected USING, found 'shop'"),
    "empty": ("", "SYNTAX_ERROR: sql: line 1, column 25: expected an alias, found a name of 2"),
    "two": (
        "; DELETE FROM",
        "SYNTAX_ERROR: sql: line 1, column 24: expected USING, found ';'",
    ),
}


@pytest.mark.parametrize(("using", "message"), WRONG.values(), ids=WRONG)
def test_a_rendered_text_is_checked_before_spark(
    dag_file: Callable[..., DagFile],
    submitter: FakeSubmitter,
    capsys: pytest.CaptureFixture[str],
    using: str,
    message: str,
) -> None:
    body = """
    MergeIntoOperator(
        task_id="merge",
        sql="MERGE INTO shop.orders {{ params.using }} shop.updates ON true",
        retries=1,
    )
    """
    run = dag_file(body, arguments=f'params={{"using": {using!r}}}').run()
    (ti,) = run.get_task_instances()
    assert (ti.state, ti.try_number) == ("failed", 1), "a final error is not retried"
    assert submitter.jobs == []
    assert message in capsys.readouterr().out.replace("\\'", "'")


def test_delete_with_a_source(dag_file: Callable[..., DagFile], submitter: FakeSubmitter) -> None:
    body = """
    DeleteFromOperator(
        task_id="forget",
        target="shop.{{ params.table }}",
        where="customer IN (SELECT id FROM gone) AND day < '{{ ds }}'",
        sources={"gone": file_source("/gone", "csv")},
    )
    """
    run = dag_file(body, arguments='params={"table": "orders"}').run(
        logical_date=_day("2024-03-01")
    )
    assert run.state == "success"
    request = submitter.request
    assert request.statement == DeleteSpec(
        "orders", "customer IN (SELECT id FROM gone) AND day < '2024-03-01'"
    )
    assert request.sources == (FileSource("gone", "/gone", "csv"),)


def test_update_reads_a_table(dag_file: Callable[..., DagFile], submitter: FakeSubmitter) -> None:
    body = """
    UpdateOperator(
        task_id="settle",
        sql=\"\"\"
        WITH paid AS (SELECT order_id FROM shop.payments WHERE day = '{{ ds }}')
        UPDATE shop.orders AS o SET state = 'paid' WHERE id IN (SELECT order_id FROM paid)
        \"\"\",
    )
    """
    run = dag_file(body).run(logical_date=_day("2024-03-01"))
    assert run.state == "success"
    request = submitter.request
    assert isinstance(request.statement, UpdateSpec)
    assert request.statement.where == "id IN (SELECT order_id FROM paid)"
    assert request.sources == (
        TableSource("shop__payments", TableName("shop", "payments")),
        SqlSource(
            "paid", "SELECT order_id FROM shop__payments AS payments WHERE day = '2024-03-01'"
        ),
    )


def test_mapped_over_texts(dag_file: Callable[..., DagFile], submitter: FakeSubmitter) -> None:
    run = dag_file(
        """
        DeleteFromOperator.partial(task_id="clean").expand(
            sql=["DELETE FROM shop.a WHERE x", "DELETE FROM shop.b"]
        )
        """
    ).run()
    assert run.state == "success"
    assert {str(job.work.target) for job in submitter.jobs} == {"shop.a", "shop.b"}


def _day(text: str) -> datetime:
    from datetime import UTC, datetime

    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _asset_events(run: DagRun) -> Sequence[AssetEvent]:
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    query = select(AssetEvent).where(AssetEvent.source_run_id == run.run_id)
    with create_session() as session:
        return session.scalars(query.where(AssetEvent.source_dag_id == run.dag_id)).all()


def test_a_table_is_made_from_a_file(
    sql_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    body = 'CreateTableOperator(task_id="create", sql="{file}", database="shop")'
    text = "CREATE TABLE {{ params.table }} (id INT, day DATE) PARTITIONED BY (day)"

    run = sql_file(text, body, arguments='params={"table": "orders"}').run()

    assert run.state == "success"
    request = submitter.request
    assert request.target == TableName("shop", "orders")
    assert request.statement.partition_keys == ("day",)
    assert [column.type for column in request.statement.columns] == ["INT", "DATE"]
