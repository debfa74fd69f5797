"""``CompactOperator``: its request, wrong input, and how its result is told."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.transforms import BucketTransform, IdentityTransform, TruncateTransform
from pyiceberg.types import BinaryType, LongType, NestedField, TimeType

from airflow_provider_merge.checks.requests import MetadataCheck
from airflow_provider_merge.hooks.iceberg import IcebergHook
from airflow_provider_merge.hooks.paimon import PaimonHook
from airflow_provider_merge.lineage.facets import task_lineage
from airflow_provider_merge.operators._shared.results import result_table, xcom_value
from airflow_provider_merge.operators.compact import CompactOperator
from airflow_provider_merge.submit.spark_submit import SparkSubmitSubmitter
from spark_jobs.contract.compaction import CompactedPartition, CompactionReport, CompactSpec
from spark_jobs.contract.guards import Guards
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.request import TableName
from spark_jobs.contract.result import Metrics
from spark_jobs.errors import JobError, NotSupportedError, RequestError
from tests.airflow.support import DagFile, FakeSubmitter, committed, example_request
from tests.airflow.test_metadata import Table
from tests.support.paimon_metadata import TableFiles

TARGET: dict[str, Any] = {"task_id": "t", "target": "shop.orders"}
REPORT = CompactionReport(
    partitions=(CompactedPartition({"day": "2026-01-31"}, 12, 1, 4_000, 1_500, 30),),
    partitions_compacted=1,
    partitions_left=2,
    files_before=12,
    files_after=1,
    bytes_before=4_000,
    bytes_after=1_500,
    rows=30,
    snapshots=(8, 9),
)


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"mode": "tiny"}, "mode: 'tiny' is not one of: minor, full, deletes"),
        ({"mode": 1}, "mode: expected text, found int"),
        ({"target_file_size": "128"}, "target_file_size: '128' has no unit: write 128 mb"),
        ({"target_file_size": 2**27}, "target_file_size: expected text, found int"),
        ({"target_file_size": "9 gb"}, "target_file_size: 9 gb is more than 8 gb"),
        ({"target_file_size": "0 mb"}, "target_file_size: 0 mb is not positive"),
        ({"max_bytes": "much"}, "max_bytes: 'much' is not a size such as 128 mb"),
        ({"max_bytes": "5", "target": "{{ params.table }}"}, "max_bytes: '5' has no unit"),
        ({"max_partitions": 0}, "max_partitions: 0 is not a positive whole number"),
        ({"min_files": 1}, "min_files: 1 is less than 2"),
        ({"sorted_runs": 2.5}, "sorted_runs: 2.5 is not a positive whole number"),
        ({"small_file_share": 70}, "small_file_share: 70 is not a number from 0 to 1"),
        ({"deleted_share": "20%"}, "deleted_share: '20%' is not a number from 0 to 1"),
        ({"include_pending": "maybe"}, "include_pending: 'maybe' is neither true nor false"),
        ({"manifests": "some"}, "manifests: 'some' is not one of: keep, rewrite, only"),
        ({"manifests": "only", "partitions": [{}]}, "partitions: has no effect if manifests is"),
        ({"manifests": "only", "mode": "full"}, "mode: has no effect if manifests is 'only'"),
        ({"manifests": "only", "max_bytes": "1 gb"}, "max_bytes: has no effect if manifests is"),
        ({"manifests": "only", "sort_by": ["a"]}, "sort_by: has no effect if manifests is 'only'"),
        ({"dry_run": "perhaps"}, "dry_run: 'perhaps' is neither"),
        ({"sort_by": "a"}, "sort_by: expected a list of names of columns"),
        ({"sort_by": ["a DOWN"]}, "sort_by[0]: 'a DOWN' does not name one column"),
        ({"sort_by": ["a", "n.x"]}, "sort_by[1]: n.x is a nested field"),
        ({"sort_by": ["a"], "zorder_by": ["b"]}, "zorder_by: is given beside sort_by"),
        ({"zorder_by": ["a DESC"]}, "zorder_by[0]: 'a DESC' has a direction"),
        ({"partitions": {"day": 1}}, "partitions: expected a list of partitions, found dict"),
        ({"partitions": []}, "partitions: is empty"),
        ({"partitions": [{"day": 1.5}]}, "partitions[0].day: float is not a partition value"),
    ],
)
def test_wrong_input_is_named_when_the_dag_is_parsed(
    parameters: dict[str, Any], problem: str
) -> None:
    with pytest.raises(RequestError) as raised:
        CompactOperator(**{**TARGET, **parameters})
    assert raised.value.message.startswith(f"task 't': {problem}")


def test_parameters_become_the_statement() -> None:
    parameters: dict[str, Any] = {
        "partitions": [{"day": "2026-01-31"}, {"day": None}, {"day": ""}, {}],
        "mode": "full",
        "target_file_size": "256 mb",
        "min_files": "10",
        "small_file_share": "0.5",
        "deleted_share": 0.1,
        "sorted_runs": 3,
        "max_bytes": "10 gb",
        "max_partitions": "7",
        "include_pending": "true",
        "sort_by": ["a", "b DESC NULLS FIRST"],
        "manifests": "rewrite",
    }
    operator = CompactOperator(**TARGET, **parameters, session_time_zone="Europe/Paris")
    assert operator.statement() == CompactSpec(
        partitions=({"day": "'2026-01-31'"}, {"day": "NULL"}, {"day": "''"}, {}),
        mode="full",
        target_file_size="256 mb",
        min_files=10,
        small_file_share=0.5,
        deleted_share=0.1,
        sorted_runs=3,
        max_bytes="10 gb",
        max_partitions=7,
        include_pending=True,
        sort_by=("a", "b DESC NULLS FIRST"),
        manifests="rewrite",
    )
    assert operator.job_options() == JobOptions(session_time_zone="Europe/Paris")
    assert {*parameters, "zorder_by"} <= set(operator.template_fields)


def test_without_parameters_the_table_decides() -> None:
    operator = CompactOperator(**TARGET)
    assert operator.statement() == CompactSpec()
    assert type(operator.get_submitter()) is SparkSubmitSubmitter


def test_nothing_is_told_of_rows_that_stay_the_same() -> None:
    operator = CompactOperator(**TARGET)
    assert operator.outlets == []
    assert task_lineage(operator, None) is None


@pytest.mark.usefixtures("airflow_db", "warehouse")
def test_the_report_is_the_xcom(dag_file: Callable[..., DagFile], submitter: FakeSubmitter) -> None:
    submitter.outcomes = [lambda request: committed(request, compaction=REPORT)]
    body = (
        "from airflow_provider_merge.operators.compact import CompactOperator\n"
        'CompactOperator(task_id="t", target="shop.orders", mode="{{ params.mode }}",'
        ' partitions=[{"day": "{{ params.day }}"}])'
    )
    run = dag_file(body, arguments='params={"mode": "full", "day": "2026-01-31"}').run()

    assert run.state == "success"
    spec = CompactSpec(partitions=({"day": "'2026-01-31'"},), mode="full")
    assert submitter.request.statement == spec
    (ti,) = run.get_task_instances()
    value = ti.xcom_pull(task_ids="t")
    assert (value["status"], value["files_before"], value["files_after"]) == ("committed", 12, 1)
    assert value["snapshots"] == [8, 9]
    assert value["partitions"][0]["values"] == {"day": "2026-01-31"}


def test_the_log_tells_files_and_bytes() -> None:
    metrics = Metrics(seconds={"plan": 0.5})
    done = committed(example_request(), compaction=REPORT, metrics=metrics)
    counts = "  rows 30 | vectors removed 0 | indexes lost 0 | changelog files 0"
    day = "  day=2026-01-31: 12 files of 4,000 bytes -> 1 of 1,500"
    assert result_table(done).splitlines()[1:] == [
        "  partitions 1: 12 files of 4,000 bytes became 1 of 1,500",
        counts,
        "  partitions beyond the limits of the run: 2 left",
        day,
        "  seconds: plan 0.5",
    ]
    dry = dataclasses.replace(done, status="dry_run", metrics=Metrics())
    assert result_table(dry).splitlines()[1:] == [
        "  partitions 1: 12 files of 4,000 bytes would become about 1 of 1,500",
        counts,
        "  partitions beyond the limits of the run: 2 would be left",
        day,
    ]
    assert "seconds" in xcom_value(done)
    again = dataclasses.replace(done, metrics=Metrics(attempts=3))
    assert xcom_value(again)["rounds"] == 3


def check(operator: CompactOperator, hook: IcebergHook | None = None) -> None:
    """What is checked before Spark starts; by default of a table in Paimon."""
    request = SimpleNamespace(
        target=TableName("shop", "orders"), table=TableName("shop", "orders"),
        statement=operator.statement(), sources=(), options=JobOptions(), dry_run=False,
        origin=SimpleNamespace(try_number=1),
        approved=None, guards=Guards(),
    )  # fmt: skip
    found = MetadataCheck(hook or PaimonHook("paimon_default"), True)
    operator.require_valid(request, found)  # type: ignore[arg-type]


def test_a_table_with_data_evolution_is_refused_before_spark_starts(warehouse: Path) -> None:
    TableFiles(warehouse, "orders").create(**{"data-evolution.enabled": "true"})

    with pytest.raises(NotSupportedError, match=r"shop\.orders stores columns apart"):
        check(CompactOperator(**TARGET))


def test_an_iceberg_table_in_an_order_that_is_not_supported_is_refused_before_spark_starts(
    iceberg_catalog: Any,
) -> None:
    iceberg_catalog.create_namespace("shop")
    columns = (
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "key", BinaryType(), required=False),
        NestedField(3, "at", TimeType(), required=False),
    )
    table = iceberg_catalog.create_table("shop.orders", IcebergSchema(*columns))
    with table.update_sort_order() as change:
        change.asc("id", BucketTransform(4)).desc("key", IdentityTransform())
    check(CompactOperator(**TARGET), IcebergHook("iceberg_default"))

    with table.update_sort_order() as change:
        change.asc("key", TruncateTransform(4)).asc("at", IdentityTransform())

    with pytest.raises(
        NotSupportedError, match=r"shop\.orders has a sort order with identity of at \(time\)"
    ):
        check(CompactOperator(**TARGET), IcebergHook("iceberg_default"))


@pytest.mark.parametrize(
    ("partition", "code", "problem"),
    [
        ({"id": 1}, "COLUMN_NOT_FOUND", "id is not a partition column of shop.orders"),
        ({"hour": 1}, "COLUMN_NOT_FOUND", "hour is not a column of shop.orders"),
        ({}, "REQUEST_INVALID", "is empty"),
    ],
)
def test_a_wrong_partition_is_told_before_spark_starts(
    warehouse: Path, partition: dict[str, int], code: str, problem: str
) -> None:
    TableFiles(warehouse, "orders").create()
    operator = CompactOperator(**TARGET, partitions=[{"day": "2026-01-31"}, partition])
    with pytest.raises(JobError) as raised:
        check(operator)
    assert raised.value.code.name == code
    assert raised.value.message == f"partitions[1]: {problem}"


@pytest.mark.parametrize(
    ("parameters", "code", "problem"),
    [
        (
            {"sort_by": ["id", "x"]},
            "COLUMN_NOT_FOUND",
            "sort_by[1]: x is not a column of shop.orders",
        ),
        ({"zorder_by": ["tags"]}, "TYPE_MISMATCH", "zorder_by[0]: tags of shop.orders is ARRAY<"),
    ],
)
def test_a_wrong_order_is_told_before_spark_starts(
    warehouse: Path, parameters: dict[str, Any], code: str, problem: str
) -> None:
    tags = {"type": "ARRAY", "element": "STRING"}
    TableFiles(warehouse, more_columns={"tags": tags}).create()
    check(CompactOperator(**TARGET, sort_by=["ID DESC"]))
    with pytest.raises(JobError) as raised:
        check(CompactOperator(**TARGET, **parameters))
    assert raised.value.code.name == code
    assert raised.value.message.startswith(problem)


def test_tables_with_an_order_of_their_own_are_refused_before_spark_starts(warehouse: Path) -> None:
    table = TableFiles(warehouse).create(bucket="4", **{"bucket-key": "id"})
    operator = CompactOperator(**TARGET, zorder_by=["id"])
    with pytest.raises(NotSupportedError, match=r"zorder_by: shop\.orders has fixed buckets"):
        check(operator)

    schema = table.folder / "schema" / "schema-0"
    document = {**json.loads(schema.read_text()), "primaryKeys": ["day", "id"]}
    schema.write_text(json.dumps(document))
    with pytest.raises(NotSupportedError, match=r"has a primary key \(day, id\)"):
        check(operator)


def test_facts_of_a_table_without_partitions_are_what_to_compact(warehouse: Path) -> None:
    TableFiles(warehouse, partition_keys=()).create().add()
    (facts,) = PaimonHook("paimon_default").compaction_facts("shop.orders")
    operator = CompactOperator(**TARGET, partitions=[dict(facts.values)])
    check(operator)
    assert operator.statement() == CompactSpec(partitions=({},))


def test_facts_of_a_partition_with_an_empty_text_are_what_to_compact(warehouse: Path) -> None:
    table = TableFiles(warehouse, day_type="STRING").create()
    for value in ("", None, "x"):
        table.add({value: 1})
    facts = PaimonHook("paimon_default").compaction_facts("shop.orders")
    operator = CompactOperator(**TARGET, partitions=[dict(each.values) for each in facts])
    check(operator)
    found = {each["day"] for each in operator.statement().partitions}
    assert found == {"''", "NULL", "'x'"}


def test_the_snapshot_of_a_group_is_no_result(warehouse: Path) -> None:
    table = Table(str(warehouse / "shop.db" / "orders"))
    properties = {"merge.operation-id": "op", "merge.statement": "compact"}
    table.guard("op", 7)
    table.add(8, properties=properties)
    assert PaimonHook("paimon_default").recorded_result(TableName("shop", "orders"), "op") is None

    table.add(9, properties={**properties, "merge.statement": "merge"})
    found = PaimonHook("paimon_default").recorded_result(TableName("shop", "orders"), "op")
    assert found.new_snapshot_id == 9
