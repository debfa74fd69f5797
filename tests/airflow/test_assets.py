"""Tables as assets: the URI scheme, lineage, and what events of writing tasks tell."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from airflow.models.asset import AssetEvent
from airflow.models.dagrun import DagRun
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_3_PLUS
from airflow.sdk import Asset

from airflow_provider_merge.assets import (
    SCHEMES,
    convert_asset_to_openlineage,
    create_asset,
    dataset_name,
    same_asset,
    table_asset,
)
from airflow_provider_merge.hooks.catalog import catalog_hook
from airflow_provider_merge.operators._shared.asset_events import partition_keys
from airflow_provider_merge.operators._shared.table_operator import TableOperator
from airflow_provider_merge.operators.clauses import when_matched
from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.insert_into import InsertIntoOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.query import QueryOperator
from airflow_provider_merge.operators.sources import file_source, sql_source, table_source
from airflow_provider_merge.operators.truncate_table import TruncateTableOperator
from airflow_provider_merge.operators.update import UpdateOperator
from spark_jobs.contract.request import TableName
from spark_jobs.contract.result import Metrics
from spark_jobs.errors import NotSupportedError
from tests.airflow.support import DagFile, FakeSubmitter, committed, example_request
from tests.support.paimon_metadata import TableFiles

MERGE = """
MergeIntoOperator(
    task_id="merge", target="shop.orders", source=table_source("shop.updates"),
    on="t.id = s.id", when=[when_matched().update_all()], {}
)
"""
CATALOGS = ("paimon_default", "iceberg_default")
PARTITIONS = ("day=", "day=2026-01-30", "day=2026-01-31", "day=NULL", f"day={'x' * 251}")


def test_the_scheme_is_known_to_airflow() -> None:
    uri = "lakehouse://paimon_default/shop/orders"
    assert table_asset("paimon_default", "shop.orders").uri == uri
    made = create_asset(catalog_conn_id="paimon_default", table="shop.orders", extra={"a": 1})
    assert (made.uri, made.extra) == (uri, {"a": 1})
    assert Asset(uri=f"{uri}/").uri == uri
    assert made.normalized_uri == uri


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("rest", ["lake", "/shop/orders", "lake/orders", "lake/shop/a/b"])
def test_uris_that_name_no_table(scheme: str, rest: str) -> None:
    wanted = rf"must be {scheme}://<connection id>/<database>/<table>"
    with pytest.raises(ValueError, match=wanted):
        Asset(uri=f"{scheme}://{rest}")


def test_the_first_scheme_names_the_same_table() -> None:
    old = Asset(uri="paimon://lake/shop/orders")
    assert old.uri == "paimon://lake/shop/orders"
    assert dataset_name(old.uri) == ("lakehouse://lake", "shop.orders")
    assert same_asset([Asset("else"), old], table_asset("lake", "shop.orders")) is old
    assert same_asset([old], table_asset("lake", "shop.other")) is None
    assert same_asset([old], table_asset("other", "shop.orders")) is None


def test_a_declared_outlet_of_the_first_scheme_gets_the_event() -> None:
    old = Asset(uri="paimon://paimon_default/shop/orders")
    merge = MergeIntoOperator(
        task_id="merge",
        target="shop.orders",
        source=table_source("shop.updates"),
        on="t.id = s.id",
        when=[when_matched().update_all()],
        outlets=[old],
    )
    assert merge.outlets == [old]


def test_the_dataset_of_openlineage() -> None:
    asset = table_asset("lake", "shop.`a.b$branch_c`")
    expected = ("lakehouse://lake", "shop.a.b$branch_c")
    assert dataset_name(asset.uri) == expected
    dataset = convert_asset_to_openlineage(asset, None)
    # None where OpenLineage is not installed.
    assert dataset is None or (dataset.namespace, dataset.name) == expected  # type: ignore[redundant-expr]


INLETS = {
    "merge": (
        MergeIntoOperator,
        {
            "target": "shop.orders",
            "source": sql_source(
                "SELECT * FROM a JOIN b USING (id)",
                sources={
                    "a": table_source("shop.`a.b`"),
                    "b": sql_source("TABLE x", sources={"x": table_source("shop.updates")}),
                    "c": table_source("shop.{{ ds }}"),
                    "d": file_source("/in/{{ ds }}", "parquet"),
                },
            ),
            "on": "t.id = s.id",
            "when": [when_matched().delete()],
        },
        ["shop.`a.b`", "shop.updates"],
    ),
    "insert": (
        InsertIntoOperator,
        {"target": "shop.orders", "source": table_source("shop.updates")},
        ["shop.updates"],
    ),
    "delete": (
        DeleteFromOperator,
        {
            "target": "shop.{{ ds }}",
            "where": "id IN (SELECT id FROM gone) OR id IN (SELECT id FROM shop.old)",
            "sources": {"gone": table_source("shop.gone")},
        },
        ["shop.old", "shop.gone"],
    ),
    "text": (
        DeleteFromOperator,
        {
            "sql": "DELETE FROM shop.orders WHERE id IN (SELECT id FROM shop.old JOIN gone)",
            "sources": {"gone": table_source("shop.gone")},
        },
        ["shop.old", "shop.gone"],
    ),
    "template": (DeleteFromOperator, {"sql": "{{ sql }}"}, []),
    "text with templates": (
        DeleteFromOperator,
        {
            "sql": "DELETE FROM {{ t }} WHERE id IN (SELECT id FROM shop.old JOIN gone ON "
            "old.day = '{{ ds }}' AND old.n > {{ n }}) OR id IN (FROM shop.{{ ds_nodash }})",
            "sources": {"gone": table_source("shop.gone"), "x": table_source("shop.{{ ds }}")},
        },
        ["shop.gone", "shop.old"],
    ),
    "query with templates": (
        QueryOperator,
        {"sql": "SELECT * FROM shop.orders WHERE day = '{{ ds }}' AND a IN (FROM {{ t }})"},
        ["shop.orders"],
    ),
    "connection by template": (
        InsertIntoOperator,
        {
            "target": "shop.orders",
            "source": table_source("shop.updates"),
            "catalog_conn_id": "{{ conn }}",
        },
        [],
    ),
    "no source": (TruncateTableOperator, {"target": "shop.orders"}, []),
}


@pytest.mark.parametrize(("operator", "parameters", "tables"), INLETS.values(), ids=INLETS)
def test_the_tables_that_are_read_are_inlets(
    operator: type[TableOperator],
    parameters: dict[str, Any],
    tables: list[str],
) -> None:
    task = operator(task_id="t", **parameters)
    assert task.inlets == [table_asset("paimon_default", each) for each in tables]


UPDATED = "UPDATE {} SET a = 1 WHERE day = '{{{{ ds }}}}'"
TARGETS = {
    "plain": (UPDATED.format("shop.orders"), True),
    "template": (UPDATED.format("shop.{{ t }}"), False),
    "part of a name": (UPDATED.format("shop.orders_{{ t }}"), False),
    "a comment": ("{# daily #} UPDATE shop.orders SET a = {{ a }}", True),
    "statements of a template": ("{% if a %}UPDATE shop.orders{% endif %} SET a = 1", False),
    "no template after all": ("UPDATE shop.orders SET a = '{{'", False),
    "no SQL": ("{{ a }} shop.orders", False),
}


@pytest.mark.parametrize(("sql", "is_known"), TARGETS.values(), ids=TARGETS)
def test_the_target_of_a_text_with_templates_is_an_outlet(sql: str, is_known: bool) -> None:
    outlets = UpdateOperator(task_id="t", sql=sql).outlets
    assert outlets == ([table_asset("paimon_default", "shop.orders")] if is_known else [])


def test_inlets_that_were_given_stay_as_they_are() -> None:
    given = [
        Asset("other"),
        Asset(name="updates", uri=table_asset("paimon_default", "shop.updates").uri),
    ]
    where = "id IN (SELECT id FROM shop.updates) OR id IN (SELECT id FROM shop.old)"
    task = DeleteFromOperator(task_id="t", target="shop.orders", where=where, inlets=given)
    assert task.inlets == [*given, table_asset("paimon_default", "shop.old")]


@pytest.mark.slow
@pytest.mark.usefixtures("airflow_db", "warehouse", "iceberg_catalog")
class TestEvents:
    def test_extra_tells_operation_partitions_and_rows(
        self, dag_file: Callable[..., DagFile], submitter: FakeSubmitter
    ) -> None:
        metrics = Metrics(source_rows=3, updated=3, partitions_changed=3)
        submitter.outcomes = [functools.partial(committed, metrics=metrics, partitions=PARTITIONS)]
        (event,) = asset_events(dag_file(MERGE.format("")).run())
        assert event.extra["operation"] == "merge"
        assert event.extra["partitions"] == list(PARTITIONS)
        assert (event.extra["updated"], event.extra["partitions_changed"]) == (3, 3)
        assert event.partition_key is None

    @pytest.mark.parametrize("conn_id", CATALOGS)
    def test_a_table_whose_name_was_a_template(
        self, dag_file: Callable[..., DagFile], submitter: FakeSubmitter, conn_id: str
    ) -> None:
        reader = f'@task(inlets=[table_asset("{conn_id}", "shop.orders")])\ndef reader(): ...\n'
        body = MERGE.format(f'catalog_conn_id="{conn_id}"')
        body = body.replace("shop.orders", "{{ params.table }}")
        run = dag_file(f"{body}{reader}reader()", arguments='params={"table": "shop.orders"}').run()
        (event,) = asset_events(run)
        assert event.extra["operation"] == "merge"

    @pytest.mark.parametrize("conn_id", CATALOGS)
    def test_a_mapped_task_has_an_event_of_the_table_that_it_changed(
        self, dag_file: Callable[..., DagFile], submitter: FakeSubmitter, conn_id: str
    ) -> None:
        assets = ", ".join(f'table_asset("{conn_id}", "shop.{each}")' for each in "abc")
        body = f"""
UpdateOperator.partial(
    task_id="t", set={{"a": "1"}}, where="b", outlets=[{assets}], catalog_conn_id="{conn_id}"
).expand(target=["shop.a", "shop.b", "shop.c"])
"""
        events = asset_events(dag_file(body).run())
        assert (len(events), len({event.asset_id for event in events})) == (3, 3)
        assert all(event.extra["operation"] == "update" for event in events)

    @pytest.mark.skipif(not AIRFLOW_V_3_3_PLUS, reason="partition keys of events are Airflow 3.3's")
    def test_partition_keys_by_opt_in(
        self, dag_file: Callable[..., DagFile], submitter: FakeSubmitter
    ) -> None:
        submitter.outcomes = [functools.partial(committed, partitions=PARTITIONS)]
        events = asset_events(dag_file(MERGE.format("emit_partition_keys=True")).run())
        assert {event.partition_key for event in events} == {"2026-01-30", "2026-01-31"}
        assert all(event.extra["snapshot_id"] == 8 for event in events)


ONE_COLUMN = ("day=a/b", "day=a/c=d", "day=e", "day=NULL")
TWO_COLUMNS = ("day=1/hour=2", "day=NULL/hour=3")


@pytest.mark.parametrize(
    ("columns", "names", "keys"),
    [
        (["day"], ONE_COLUMN, ["a/b", "a/c=d", "e"]),
        (["day", "hour"], TWO_COLUMNS, list(TWO_COLUMNS)),
        (None, TWO_COLUMNS, list(TWO_COLUMNS)),
    ],
    ids=["one column", "two columns", "no table that can be read"],
)
def test_partition_keys_of_values_with_a_slash(
    warehouse: Path, columns: list[str] | None, names: tuple[str, ...], keys: list[str]
) -> None:
    if columns is not None:
        TableFiles(warehouse, partition_keys=columns).create()
    result = committed(example_request(), partitions=names)
    hook = catalog_hook("paimon_default")
    assert partition_keys(hook, TableName("shop", "orders"), result) == keys


@pytest.mark.parametrize("changed", [2, 3])
def test_partitions_whose_keys_are_left_out_are_told(
    warehouse: Path, caplog: pytest.LogCaptureFixture, changed: int
) -> None:
    TableFiles(warehouse).create()
    metrics = Metrics(partitions_changed=changed)
    result = committed(example_request(), partitions=("day=a", "day=b"), metrics=metrics)
    partition_keys(catalog_hook("paimon_default"), TableName("shop", "orders"), result)
    assert ("keys of the first 2 only" in caplog.text) == (changed > 2)


@pytest.mark.skipif(AIRFLOW_V_3_3_PLUS, reason="Airflow before 3.3 refuses")
def test_partition_keys_are_refused_before_airflow_3_3(dag_file: Callable[..., DagFile]) -> None:
    with pytest.raises(NotSupportedError, match=r"needs Airflow 3\.3"):
        dag_file(MERGE.format("emit_partition_keys=True")).dag()


def asset_events(run: DagRun) -> Sequence[AssetEvent]:
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        query = select(AssetEvent).where(AssetEvent.source_dag_id == run.dag_id)
        return list(session.scalars(query))
