"""A parameter that is given and is nothing ends the task with its name; it never has a default."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jinja2
import pytest
from airflow.sdk.definitions.mappedoperator import MappedOperator
from airflow.sdk.exceptions import AirflowFailException
from jinja2 import StrictUndefined, Undefined

from airflow_provider_merge.operators.clauses import (
    ALL_ROWS,
    when_matched,
    when_not_matched_by_source,
)
from airflow_provider_merge.operators.compact import CompactOperator
from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.drop_partitions import DropPartitionsOperator
from airflow_provider_merge.operators.expire_snapshots import ExpireSnapshotsOperator
from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import file_source, table_source
from airflow_provider_merge.operators.statement_list import delete_from
from airflow_provider_merge.operators.statements import StatementsOperator
from airflow_provider_merge.operators.tags import CreateTagOperator
from airflow_provider_merge.operators.truncate_table import TruncateTableOperator
from airflow_provider_merge.operators.update import UpdateOperator
from airflow_provider_merge.templates import all_known
from spark_jobs.errors import JobError, RequestError
from tests.airflow.contexts import Server, rendered_task

MERGE: dict[str, Any] = {"target": "a.b", "source": table_source("a.s"), "on": "t.id = s.id"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


NOTHING = {
    "where": lambda up: DeleteFromOperator(task_id="t", target="a.b", where=up),
    "where of an update": lambda up: UpdateOperator(
        task_id="t", target="a.b", set={"n": "1"}, where=up
    ),
    "partition": lambda up: TruncateTableOperator(task_id="t", target="a.b", partition=up),
    "partition.day": lambda up: TruncateTableOperator(
        task_id="t", target="a.b", partition={"day": up}
    ),
    "partitions[0].day": lambda up: DropPartitionsOperator(
        task_id="t", target="a.b", partitions=[{"day": up}]
    ),
    "expected_partitions": lambda up: InsertOverwriteOperator(
        task_id="t",
        target="a.b",
        source=table_source("a.s"),
        mode="dynamic",
        expected_partitions=up,
    ),
    "source.max_bad_rows": lambda up: MergeIntoOperator(
        task_id="t",
        **{**MERGE, "source": file_source("/a", "csv", max_bad_rows=up)},
        when=[when_matched().delete()],
    ),
    "when[0].condition": lambda up: MergeIntoOperator(
        task_id="t", **MERGE, when=[when_matched(up).delete()]
    ),
    "when[0].condition by source": lambda up: MergeIntoOperator(
        task_id="t", **MERGE, when=[when_not_matched_by_source(up).delete()]
    ),
    "dry_run": lambda up: DeleteFromOperator(task_id="t", sql="DELETE FROM a.b", dry_run=up),
    "older_than": lambda up: ExpireSnapshotsOperator(task_id="t", target="a.b", older_than=up),
    "retain_min": lambda up: ExpireSnapshotsOperator(task_id="t", target="a.b", retain_min=up),
    "snapshot_id": lambda up: CreateTagOperator(task_id="t", target="a.b", tag="x", snapshot_id=up),
    "partitions": lambda up: CompactOperator(task_id="t", target="a.b", partitions=up),
    "statements[0].where": lambda up: StatementsOperator(
        task_id="t", statements=[delete_from("s", target="a.b", where=up)]
    ),
}


@pytest.mark.parametrize(("name", "make"), NOTHING.items(), ids=NOTHING)
def test_a_task_that_was_skipped(server: Server, name: str, make: Callable[..., Any]) -> None:
    with pytest.raises(AirflowFailException) as raised:
        rendered_task(make)

    place = name.partition(" ")[0]
    assert str(raised.value).startswith(f"REQUEST_INVALID: {place}: is None\n")
    assert "\nRemedy: " in str(raised.value)


@pytest.mark.parametrize("name", ["where", "where of an update"])
def test_every_row_is_said_in_words(server: Server, name: str) -> None:
    server.results = {"up": ALL_ROWS}
    operator = rendered_task(NOTHING[name])

    assert operator.statement().where is None


def test_every_row_in_a_list(server: Server) -> None:
    task = StatementsOperator(
        task_id="t", statements=[delete_from("s", target="a.b", where=ALL_ROWS)]
    )

    with all_known():
        assert task._known_operators()["s"].statement().where is None


@pytest.mark.parametrize("kind", [DeleteFromOperator, TruncateTableOperator])
def test_only_what_the_dag_file_leaves_out_has_its_default(
    server: Server, kind: type[DeleteFromOperator | TruncateTableOperator]
) -> None:
    assert rendered_task(lambda up: kind(task_id="t", target="a.b")).statement()


@pytest.mark.parametrize("value", [None, "", " "])
def test_nothing_in_the_dag_file_is_an_import_error(value: str | None) -> None:
    with pytest.raises(RequestError, match=r"where: is (None|empty) Remedy: .*where=ALL_ROWS"):
        DeleteFromOperator(task_id="t", target="a.b", where=value)


@pytest.mark.parametrize(
    ("source", "clause", "place"),
    [
        ({"schema": None}, {}, "source.schema"),
        ({"max_bad_rows": None}, {}, "source.max_bad_rows"),
        ({}, {"condition": None}, "when[0].condition"),
    ],
)
def test_nothing_in_a_dict_of_the_dag_file(
    source: dict[str, None], clause: dict[str, None], place: str
) -> None:
    with pytest.raises(RequestError, match=re.escape(f"{place}: is None")):
        MergeIntoOperator(
            task_id="t",
            target="a.b",
            source={"kind": "file", "path": "/a", "format": "csv", **source},
            on="t.id = s.id",
            when=[{"when": "matched", "action": "delete", **clause}],
        )


def test_null_is_a_value_of_a_partition_that_the_dag_file_names() -> None:
    operator = TruncateTableOperator(task_id="t", target="a.b", partition={"day": None})

    assert operator.statement().partition == {"day": "NULL"}


def test_a_list_with_nothing_in_it(server: Server) -> None:
    server.results = {"up": [{"day": "1"}, None]}
    operator = rendered_task(NOTHING["partitions"])

    with all_known(), pytest.raises(JobError, match=r"partitions\[1\]: is None"):
        operator.statement()


def mapped(**values: Any) -> Callable[[Any], MappedOperator]:
    return lambda up: DeleteFromOperator.partial(task_id="t", target="a.b").expand(**values)


@pytest.mark.parametrize("values", [["n = 1", None], ["n = 1", ""]])
def test_nothing_among_mapped_values(server: Server, values: list[str | None]) -> None:
    assert rendered_task(mapped(where=values), map_index=0).where == "n = 1"
    with pytest.raises(AirflowFailException, match=r"where: is (None|empty)"):
        rendered_task(mapped(where=values), map_index=1)


def test_nothing_among_values_of_a_task(server: Server) -> None:
    server.results = {"up": ["n = 1", None]}
    make = lambda up: mapped(where=up)(up)  # noqa: E731
    assert rendered_task(make, map_index=0).where == "n = 1"
    with pytest.raises(AirflowFailException, match="where: is None"):
        rendered_task(make, map_index=1)


def of_items(items: list[dict[str, str]] | None, **partial: Any) -> Callable[[Any], MappedOperator]:
    partial = {"task_id": "t", "target": "a.b", **partial}
    return lambda up: DeleteFromOperator.partial(**partial).expand_kwargs(items or up)


ITEMS = [{"where": "n = 1"}, {"alias": "x"}]


def test_a_key_that_is_left_out_of_an_item_of_the_dag_file(server: Server) -> None:
    with pytest.raises(AirflowFailException, match="where: is missing in item 1 of expand_kwargs"):
        rendered_task(of_items(ITEMS), map_index=1)


def test_a_key_that_another_task_leaves_out(server: Server) -> None:
    server.results = {"up": ITEMS}
    with pytest.raises(AirflowFailException, match="alias: is missing in item 0"):
        rendered_task(of_items(None), map_index=0)
    server.results = {"up": [{"alias": "x"}]}
    with pytest.raises(AirflowFailException, match=r"where: is missing in item 0.*another task"):
        rendered_task(of_items(None), map_index=0)
    assert rendered_task(of_items(None, where=ALL_ROWS), map_index=0).alias == "x"


def test_a_statement_that_another_task_returns_says_which_rows(server: Server) -> None:
    server.results = {"up": [{"name": "s", "operation": "delete_from", "target": "a.b"}]}
    operator = rendered_task(lambda up: StatementsOperator(task_id="t", statements=up))

    with all_known(), pytest.raises(JobError, match="statement 's': where: is missing"):
        operator._known_operators()


@pytest.mark.parametrize("undefined", [jinja2.StrictUndefined, jinja2.Undefined])
@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("{{ '' }}", "where: is empty"),
        ("{{ nowhere }}", "where: is nothing: 'nowhere' is undefined"),
        ("n = 1 AND {{ nowhere }}", "where: is nothing: 'nowhere' is undefined"),
        ("n = {{ params.n }}", "where: is nothing: an expression in it is None"),
        ("n = {{ params.nowhere.x }}", "where: "),
        ("n = {{", "where: cannot be rendered: "),
    ],
)
def test_a_template_without_a_value(
    server: Server, where: str, problem: str, undefined: type[StrictUndefined | Undefined]
) -> None:
    with pytest.raises(AirflowFailException, match=f"^REQUEST_INVALID: {problem}"):
        rendered_task(
            lambda up: DeleteFromOperator(task_id="t", target="a.b", where=where),
            params={"n": None},
            template_undefined=undefined,
        )


def test_a_dag_may_say_what_nothing_reads_like(server: Server) -> None:
    operator = rendered_task(
        lambda up: DeleteFromOperator(task_id="t", target="a.b", where="n = {{ params.n }}"),
        params={"n": None},
        jinja_environment_kwargs={"finalize": lambda value: 0 if value is None else value},
    )
    assert operator.where == "n = 0"


@pytest.mark.parametrize("map_index", [-1, 0])
def test_templates_are_text_in_a_dag_of_native_objects(server: Server, map_index: int) -> None:
    def make(up: Any) -> None:
        where = "n = {{ params.n }}"
        if map_index < 0:
            DeleteFromOperator(task_id="t", target="a.b", where=where)
        else:
            DeleteFromOperator.partial(task_id="t", where=where).expand(target=["a.b"])

    native: dict[str, Any] = {"render_template_as_native_obj": True, "params": {"n": 5}}
    assert rendered_task(make, map_index, **native).where == "n = 5"


class Audited(DeleteFromOperator):
    """An operator of somebody's own."""

    template_fields = (*DeleteFromOperator.template_fields, "note")

    def __init__(self, *, note: str | None = None, **kwargs: Any) -> None:
        self.note = note
        super().__init__(**kwargs)


@pytest.mark.parametrize(("note", "rendered"), [(None, None), ("", ""), ("{{ none }}", "None")])
def test_parameters_of_a_subclass_are_its_own(
    server: Server, note: str | None, rendered: str | None
) -> None:
    operator = rendered_task(
        lambda up: Audited(task_id="t", target="a.b", where="n = 1", note=note)
    )

    assert operator.note == rendered
    with pytest.raises(RequestError, match="where: is None"):
        Audited(task_id="t", target="a.b", where=None)
