"""Values that Airflow lets one write, and that once became something else on their way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, Asset, ObjectStoragePath, task_group
from airflow.sdk.definitions.asset import AssetNameRef, AssetUriRef
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_merge.assets import is_table, table_asset
from airflow_provider_merge.operators.compact import CompactOperator
from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.drop_partitions import DropPartitionsOperator
from airflow_provider_merge.operators.insert_into import InsertIntoOperator
from airflow_provider_merge.operators.sources import file_source, table_source
from airflow_provider_merge.operators.statement_list import (
    delete_from,
    insert_into,
    sql_statement,
)
from airflow_provider_merge.operators.statements import StatementsOperator
from airflow_provider_merge.operators.update import UpdateOperator
from airflow_provider_merge.sensors.compaction import CompactionSensor
from airflow_provider_merge.sensors.freshness import FreshnessSensor
from airflow_provider_merge.sensors.partition import PartitionSensor
from airflow_provider_merge.sensors.snapshot import SnapshotSensor
from airflow_provider_merge.templates import all_known
from spark_jobs.errors import RequestError
from tests.airflow.contexts import Server, rendered_task


@pytest.fixture(autouse=True)
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


def known(operator: StatementsOperator) -> list[Any]:
    with all_known():
        return list(operator._known_operators().values())


def delete(**parameters: Any) -> DeleteFromOperator:
    return DeleteFromOperator(**{"task_id": "t", "target": "a.b", "where": "n = 1", **parameters})


REFUSED = {
    "None in conf": (
        lambda: delete(conf={"spark.x": None}),
        r"task 't': conf\.spark\.x: is None Remedy: ",
    ),
    "a list in conf": (lambda: delete(conf={"spark.x": [1]}), r"conf\.spark\.x: expected text"),
    "None in options": (
        lambda: InsertIntoOperator(
            task_id="t", target="a.b", source=file_source("/x", "csv", options={"sep": None})
        ),
        r"source\.options\.sep: is None",
    ),
    "None as a kind": (
        lambda: SnapshotSensor(task_id="t", table="a.b", after_id=1, statements=[None]),  # type: ignore[list-item]
        r"task 't': statements\[0\]: is None Remedy: ",
    ),
    "a number as a kind": (
        lambda: SnapshotSensor(task_id="t", table="a.b", after_id=1, statements=["merge", 3]),  # type: ignore[list-item]
        r"statements\[1\]: expected text, found int",
    ),
    "None as a property": (
        lambda: SnapshotSensor(task_id="t", table="a.b", after_id=1, properties={"a": None}),  # type: ignore[dict-item]
        r"properties\.a: is None",
    ),
    "a connection of a path": (
        lambda: InsertIntoOperator(
            task_id="t",
            target="a.b",
            source=file_source(ObjectStoragePath("s3://b/x", conn_id="aws"), "csv"),  # type: ignore[arg-type]
        ),
        r"task 't': source\.path: names a connection of Airflow, which Spark cannot use Remedy: ",
    ),
    "the kind of a statement": (
        lambda: StatementsOperator(
            task_id="t", statements=[{"name": "s", "operation": DAG("e").param("x")}]
        ),
        r"statements\[0\]\.operation: cannot be the result of a task Remedy: ",
    ),
}


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_when_the_dag_is_parsed(make: Callable[..., Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        make()


SENSORS: dict[type, dict[str, Any]] = {
    PartitionSensor: {},
    FreshnessSensor: {"max_age": 60},
    CompactionSensor: {"min_small_files": 5},
}


@pytest.mark.parametrize("sensor", SENSORS)
@pytest.mark.parametrize("value", [[1], 1.5, b"x", {"a": 1}])
def test_what_is_no_value_of_a_partition(
    sensor: type[PartitionSensor | FreshnessSensor | CompactionSensor],
    value: list[int] | float | bytes | dict[str, int],
) -> None:
    message = rf"partition\.day: {type(value).__name__} is not a partition value Remedy: "
    with pytest.raises(RequestError, match=message):
        sensor(task_id="t", table="a.b", partition={"day": value}, **SENSORS[sensor])


@pytest.mark.parametrize("value", [Decimal("1E+3"), 1000, True, "x", None])
def test_operators_and_sensors_show_a_value_alike(value: Decimal | int | bool | str | None) -> None:
    gate = PartitionSensor(task_id="t", table="a.b", partition={"day": value}).gate({})
    drop = DropPartitionsOperator(task_id="t", target="a.b", partitions=[{"day": value}])
    (shown,) = gate.partitions
    (literal,) = drop.statement().partitions
    assert literal["day"] == ("NULL" if shown["day"] is None else f"'{shown['day']}'")
    assert shown["day"] != "1E+3"


MISSING = {
    "a parameter of the run": lambda dag: dag.param("nowhere"),
    "a variable": lambda dag: "n = {{ var.value.nowhere }}",
    "a variable of JSON": lambda dag: "n = {{ var.json.nowhere.n }}",
    "a connection": lambda dag: "n = {{ conn.nowhere.host }}",
}


@pytest.mark.parametrize("give", MISSING.values(), ids=MISSING)
def test_a_name_without_a_value_names_the_parameter(give: Callable[..., Any]) -> None:
    with pytest.raises(
        AirflowFailException,
        match=r"(?s)where: has no value: .*nowhere.*Where: task d\.t\nRemedy: ",
    ):
        rendered_task(lambda up: delete(where=give(up.operator.dag)))


def test_a_list_of_statements_among_others(server: Server, tmp_path: Path) -> None:
    (tmp_path / "d.sql").write_text("DELETE FROM a.e")
    server.results = {"up": [sql_statement(each, f"TRUNCATE TABLE a.{each}") for each in "bc"]}

    operator = rendered_task(
        lambda up: StatementsOperator(
            task_id="t", statements=[sql_statement("a", "TRUNCATE TABLE a.a"), up, "d.sql"]
        ),
        template_searchpath=[str(tmp_path)],
    )

    with all_known():
        assert list(operator._known_operators()) == ["a", "b", "c", "d"]
    # The file is the author's own: its DELETE may have no WHERE.
    assert operator._returned == {1, 2}


def test_lists_of_statements_of_mapped_tasks(server: Server) -> None:
    lists = [[sql_statement(each, "TRUNCATE TABLE a.b")] for each in "bc"]
    server.results = {"ups": lists}

    operator = rendered_task(
        lambda up: StatementsOperator(
            task_id="t", statements=up.operator.dag.task_dict["ups"].output
        )
    )

    assert operator.statements == [*lists[0], *lists[1]]


def test_the_name_of_a_statement_is_the_result_of_a_task(server: Server) -> None:
    server.results = {"up": "daily"}
    operator = rendered_task(
        lambda up: StatementsOperator(task_id="t", statements=[delete_from(up, target="a.b")])
    )
    with all_known():
        assert list(operator._known_operators()) == ["daily"]


@pytest.mark.parametrize("name", [None, "", "a b", ["x"]])
def test_a_result_that_is_no_name_of_a_statement(
    server: Server, name: str | list[str] | None
) -> None:
    server.results = {"up": name}
    with pytest.raises((AirflowFailException, RequestError), match=r"statements\[0\]\.name: "):
        known(
            rendered_task(
                lambda up: StatementsOperator(
                    task_id="t", statements=[delete_from(up, target="a.b")]
                )
            )
        )


def test_sizes_of_other_operators_are_ignored() -> None:
    with DAG("d", schedule=None, default_args={"target_file_size": 4_096}):
        compact = CompactOperator(task_id="c", target="a.b")
        sensor = CompactionSensor(task_id="s", table="a.b", min_small_files=5)
    assert compact.statement().target_file_size is None
    assert sensor.gate({}).target_file_size is None
    with DAG("d", schedule=None, default_args={"target_file_size": "64 mb"}):
        compact, statement = CompactOperator(task_id="c", target="a.b"), delete()
        listed = StatementsOperator(task_id="l", statements=[delete_from("s", target="a.b")])
    assert compact.statement().target_file_size == "64 mb"
    default = DeleteFromOperator(task_id="t", target="a.b").job_options().target_file_size
    assert statement.job_options().target_file_size == default
    assert known(listed)[0].job_options().target_file_size == default


def test_a_size_of_nobody_is_an_error() -> None:
    with (
        DAG("d", schedule=None, default_args={"target_file_size": "big"}),
        pytest.raises(RequestError, match="target_file_size: 'big' is not a positive"),
    ):
        delete()


def test_a_text_by_default_is_ignored_beside_parts() -> None:
    operator = rendered_task(lambda up: delete(), default_args={"sql": "x.sql"})
    assert operator.statement().where == "n = 1"
    listed = rendered_task(
        lambda up: StatementsOperator(
            task_id="t", statements=[delete_from("s", target="a.b", where="n = 2")]
        ),
        default_args={"sql": "x.sql"},
    )
    assert known(listed)[0].statement().where == "n = 2"
    table = rendered_task(
        lambda up: CreateTableOperator(task_id="t", target="a.b", columns=[column("a", "INT")]),
        default_args={"sql": "x.sql"},
    )
    assert str(table.target_table()) == "a.b"


def test_a_text_by_default_is_used_where_the_task_has_no_parts(tmp_path: Path) -> None:
    (tmp_path / "x.sql").write_text("DELETE FROM a.b WHERE n = 3")
    operator = rendered_task(
        lambda up: DeleteFromOperator(task_id="t"),
        default_args={"sql": "x.sql"},
        template_searchpath=str(tmp_path),
    )
    assert operator.statement().where == "n = 3"


def in_group(operator: Callable[..., Any], value: Callable[..., Any]) -> Callable[[Any], Any]:
    """Makes a mapped group with an ``operator`` of its argument, and one item."""

    def make(up: Any) -> None:
        @task_group
        def group(argument: Any) -> None:
            operator(argument)

        group.expand(argument=[value(up)])

    return make


def listed(argument: Any) -> None:
    StatementsOperator(task_id="t", statements=argument)


def test_statements_that_the_dag_file_gives_to_a_mapped_group() -> None:
    make = in_group(listed, lambda up: [delete_from("s", target="a.b")])
    assert known(rendered_task(make, 0))[0].statement().where is None


def test_statements_that_another_task_gives_to_a_mapped_group(server: Server) -> None:
    server.results = {"up": [[delete_from("s", target="a.b")]]}

    def make(up: Any) -> None:
        @task_group
        def group(argument: Any) -> None:
            listed(argument)

        group.expand(argument=up)

    with pytest.raises(RequestError, match="where: is missing in a statement that another task"):
        known(rendered_task(make, 0))


PATHS = {
    "a parameter": (lambda a: UpdateOperator(task_id="t", sql=a), lambda up: "x.sql"),
    "a list": (listed, lambda up: ["x.sql"]),
    "a statement": (listed, lambda up: [sql_statement("s", "x.sql")]),
    "an item": (lambda a: listed([a]), lambda up: "x.sql"),
    "the text of a statement": (lambda a: listed([sql_statement("s", a)]), lambda up: "x.sql"),
}


@pytest.mark.parametrize(("operator", "value"), PATHS.values(), ids=PATHS)
def test_paths_that_the_dag_file_gives_to_a_mapped_group(
    tmp_path: Path, operator: Callable[..., Any], value: Callable[..., Any]
) -> None:
    (tmp_path / "x.sql").write_text("UPDATE a.b SET n = {{ 1 + 1 }}")
    found = rendered_task(in_group(operator, value), 0, template_searchpath=str(tmp_path))
    one = known(found)[0] if isinstance(found, StatementsOperator) else found
    assert one.statement().assignments[0].value == "2"
    assert one.sql_file == "x.sql"


def test_results_of_mapped_tasks_in_arguments_of_a_mapped_group(server: Server) -> None:
    server.results = {"ups": ["x", "y"]}

    def value(up: Any) -> list[Any]:
        columns = up.operator.dag.task_dict["ups"].output
        return [insert_into("s", target="a.b", source=table_source("a.s"), columns=columns)]

    operator = known(rendered_task(in_group(listed, value), 0))[0]
    assert operator.statement().columns == ("x", "y")


def uris(assets: Iterable[Asset]) -> list[str]:
    return [each.uri for each in assets]


TABLE, READ = table_asset("paimon_default", "a.b").uri, table_asset("paimon_default", "a.s").uri
ANNOUNCED = {
    "a text of a list": lambda: listed(
        [sql_statement("s", "UPDATE a.b SET n = {{ 1 }} WHERE n IN (SELECT n FROM a.s)")]
    ),
    "a file of a list": lambda: listed(["x.sql"]),
    "a condition": lambda: delete(where="n = {{ 1 }} AND n IN (SELECT n FROM a.s)"),
    "a value": lambda: UpdateOperator(
        task_id="t", target="a.b", set={"n": "(SELECT n + {{ 1 }} FROM a.s)"}, where="n = 1"
    ),
}


@pytest.mark.parametrize("make", ANNOUNCED.values(), ids=ANNOUNCED)
def test_plain_names_beside_templates_are_announced(
    tmp_path: Path, make: Callable[..., Any]
) -> None:
    text = "DELETE FROM a.b WHERE n = {{ 1 }} AND n IN (SELECT n FROM a.s)"
    (tmp_path / "x.sql").write_text(text)
    operator = rendered_task(lambda up: make(), template_searchpath=str(tmp_path))
    assert (uris(operator.inlets), uris(operator.outlets)) == ([READ], [TABLE])


def test_names_that_are_templates_are_not_announced() -> None:
    operator = rendered_task(
        lambda up: delete(where="n IN (SELECT n FROM a.s{{ 1 }}) AND n IN (SELECT n FROM x)"),
    )
    assert operator.inlets == []


REFERENCES = [
    Asset.ref(uri=TABLE),
    Asset.ref(name=TABLE),
    Asset.ref(uri="paimon://paimon_default/a/b"),
]


@pytest.mark.parametrize("reference", REFERENCES, ids=str)
def test_a_reference_is_the_table(reference: AssetUriRef | AssetNameRef) -> None:
    assert is_table(reference)
    assert delete(outlets=[reference]).outlets == [reference]
    read = DeleteFromOperator(
        task_id="t", target="a.c", where="n IN (SELECT n FROM a.b)", inlets=[reference]
    )
    assert read.inlets == [reference]


def test_a_reference_to_something_else_is_not_the_table() -> None:
    other = Asset.ref(name="orders")
    assert not is_table(other)
    assert delete(outlets=[other]).outlets == [other, Asset(TABLE)]


@pytest.mark.parametrize("path", [ObjectStoragePath("s3://b/x"), Path("/land/x")], ids=str)
def test_path_objects_are_paths(path: ObjectStoragePath | Path) -> None:
    operator = rendered_task(
        lambda up: InsertIntoOperator(task_id="t", target="a.b", source=file_source(path, "csv"))  # type: ignore[arg-type]
    )
    assert operator.request_sources()[0].path == str(path)


@pytest.mark.parametrize("given", ["tz=none", "tz=''", "param=none"])
def test_run_partition_is_given_nothing(given: str) -> None:
    name = given.partition("=")[0]
    with pytest.raises(AirflowFailException, match=f"run_partition: {name} is (None|empty)"):
        rendered_task(lambda up: delete(where=f"day = '{{{{ run_partition({given}) }}}}'"))


def test_a_path_is_no_template(tmp_path: Path) -> None:
    (tmp_path / "x.sql").write_text("UPDATE a.b SET n = {{ 1 + 1 }}")
    for make in (lambda sql: UpdateOperator(task_id="t", sql=sql), lambda sql: listed([sql])):
        with pytest.raises(RequestError, match=r"the path '{{ params.n }}.sql' is a template"):
            rendered_task(lambda up, make=make: make("{{ params.n }}.sql"), params={"n": "x"})  # type: ignore[misc]
    operator = rendered_task(
        lambda up: UpdateOperator(task_id="t", sql="{% include params.n ~ '.sql' %}"),
        params={"n": "x"},
        template_searchpath=str(tmp_path),
    )
    assert operator.statement().assignments[0].value == "2"
