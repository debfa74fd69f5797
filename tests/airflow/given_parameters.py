"""Every parameter of every operator and sensor, given in every way that Airflow has.

A case is a class, a parameter, a way to give it a value (or nothing), and a place: a task, a mapped
one, a statement of a list, a task of a group, ``default_args``. The DAG is serialized, and its task
rendered, as Airflow's own worker does it. A value arrives as it was given and asks for the same as
when it is written in the DAG file; or an error names the parameter and a remedy.
"""

from __future__ import annotations

import inspect
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jinja2
from airflow.sdk import DAG, TaskGroup, literal, task, task_group
from airflow.serialization.serialized_objects import DagSerialization

from airflow_provider_merge.operators._shared.run_tables import WantedTables
from airflow_provider_merge.operators.query import QueryOperator
from airflow_provider_merge.operators.statement_list import statement_parameters
from airflow_provider_merge.operators.statements import StatementsOperator
from airflow_provider_merge.operators.table_care import TableCareOperator
from airflow_provider_merge.operators.undo_run import UndoRunOperator
from airflow_provider_merge.parameters import ParameterOperator
from airflow_provider_merge.sensors.base import TableSensor
from airflow_provider_merge.task_errors import task_failure
from airflow_provider_merge.templates import all_known
from spark_jobs.errors import JobError
from tests.airflow.contexts import DAY, Server, context_of
from tests.airflow.parameter_values import LISTED, base_of, classes, value_of

BRACES, SQL_ENDING = "a {{ b", "x.sql"


@dataclass(frozen=True)
class Way:
    """How a parameter is given: ``give`` makes it of the value, inside of the DAG.

    ``returned`` is what the task ``up`` returned, None: it was skipped. ``expected`` arrives or an
    error names the parameter. ``dag``: arguments of the DAG.
    """

    give: Callable[[DAG, Any], Any]
    returned: Callable[[Any], Any] = lambda value: None
    expected: Callable[[Any], Any] = lambda value: value
    is_nothing: bool = False
    same_request: bool = False
    dag: tuple[tuple[str, Any], ...] = ()


def _up(dag: DAG, value: Any) -> Any:
    return dag.task_dict["up"].output


def _ups(dag: DAG, value: Any) -> Any:
    return dag.task_dict["ups"].output


def _items(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


TEMPLATE = "{{ params.value }}"
WAYS = {
    "plain": Way(lambda dag, value: value, same_request=True),
    "XCom": Way(_up, lambda value: value, same_request=True),
    "mapped XCom": Way(_ups, expected=_items),
    "dag.param": Way(lambda dag, value: dag.param("value"), same_request=True),
    "literal": Way(lambda dag, value: literal(value), same_request=True),
    "template": Way(lambda dag, value: TEMPLATE, expected=str),
    "native": Way(
        lambda dag, value: TEMPLATE, expected=str, dag=(("render_template_as_native_obj", True),)
    ),
    "None": Way(lambda dag, value: None, is_nothing=True),
    "None by XCom": Way(_up, is_nothing=True),
    "empty by template": Way(lambda dag, value: "{{ '' }}", is_nothing=True),
    "None by template": Way(lambda dag, value: "{{ none }}", is_nothing=True),
    "[]": Way(_up, lambda value: [], lambda value: [], is_nothing=True),
    "{}": Way(_up, lambda value: {}, lambda value: {}, is_nothing=True),
    "undefined": Way(lambda dag, value: "{{ nowhere }}", is_nothing=True),
    "lenient undefined": Way(
        lambda dag, value: "{{ nowhere }}",
        is_nothing=True,
        dag=(("template_undefined", jinja2.Undefined),),
    ),
    "braces": Way(_up, lambda value: BRACES, lambda value: BRACES),
    ".sql": Way(lambda dag, value: SQL_ENDING, expected=lambda value: SQL_ENDING),
    ".sql by XCom": Way(_up, lambda value: SQL_ENDING, lambda value: SQL_ENDING),
}


@dataclass(frozen=True)
class Case:
    """One parameter, given in one way in one place."""

    kind: type[ParameterOperator]
    name: str
    way: str
    place: str

    def __str__(self) -> str:
        return f"{self.kind.__name__}({self.name}=…), {self.way}, {self.place}"


PLACES = ("task", "mapped", "item", "missing item", "list", "group", "mapped group", "default_args")


def cases() -> Iterator[Case]:
    """All of them."""
    for kind in classes():
        for name, way, place in itertools.product(sorted(kind.parameter_names), WAYS, PLACES):
            if place == "list" and (kind not in LISTED or name not in statement_parameters()):
                continue
            if place == "missing item" and way not in ("plain", "XCom"):
                continue
            # The same as a mapped task of theirs.
            if place in ("item", "mapped group") and way in ("mapped XCom", "native"):
                continue
            yield Case(kind, name, way, place)


def value(case: Case) -> Any:
    """What the parameter is given, before the way."""
    return value_of(case.kind, case.name)


def played(case: Case, server: Server) -> tuple[Any, Any]:
    """What arrived, and what the task then asks for.

    Raises:
        JobError, AirflowFailException: the error that a user sees.
    """
    way, given = WAYS[case.way], value(case)
    server.results = {"up": way.returned(given), "ups": _items(given)}
    if case.place in ("mapped", "mapped group") and way.give is _up:
        server.results = {"up": [way.returned(given)]}
    if case.place == "item" and way.give is _up:
        server.results = {"up": [{case.name: way.returned(given)}]}
    if case.place == "missing item" and case.way == "XCom":
        server.results = {"up": [{}, {case.name: given}]}
    dag = _dag(case, way, given)
    text = json.dumps(DagSerialization.to_dict(dag))
    assert text == json.dumps(DagSerialization.to_dict(dag))
    DagSerialization.from_dict(json.loads(text))
    return _rendered(case, dag)


def _dag(case: Case, way: Way, given: Any) -> DAG:
    base = base_of(case.kind, case.name)
    dag = DAG("d", schedule=None, start_date=DAY, params={"value": given}, **dict(way.dag))
    dag.fileloc = __file__
    with dag:
        _upstream()
        if case.name == "dry_run_of":
            case.kind(task_id=given, **base_of(case.kind, ""))
        parameter = way.give(dag, given)
        if case.place == "default_args":
            dag.default_args = {case.name: parameter}
        _PLACED[case.place](case, base, parameter)
    dag.resolve_template_files()
    return dag


def _upstream() -> None:
    @task(task_id="up")
    def up() -> None: ...

    @task(task_id="ups")
    def ups(number: int) -> None: ...

    up()
    ups.expand(number=[1, 2])


def _task(case: Case, base: dict[str, Any], parameter: Any) -> None:
    case.kind(task_id="t", **{**base, case.name: parameter})


def _group(case: Case, base: dict[str, Any], parameter: Any) -> None:
    with TaskGroup("g"):
        _task(case, base, parameter)


def _default(case: Case, base: dict[str, Any], parameter: Any) -> None:
    case.kind(task_id="t", **{name: each for name, each in base.items() if name != case.name})


def _partial(case: Case, base: dict[str, Any]) -> Any:
    others = {name: each for name, each in base.items() if name != case.name}
    return case.kind.partial(task_id="t", **others)


def _mapped(case: Case, base: dict[str, Any], parameter: Any) -> None:
    is_list = WAYS[case.way].give is _up
    _partial(case, base).expand(**{case.name: parameter if is_list else [parameter]})


def _item(case: Case, base: dict[str, Any], parameter: Any) -> None:
    is_list = WAYS[case.way].give is _up
    _partial(case, base).expand_kwargs(parameter if is_list else [{case.name: parameter}])


def _missing_item(case: Case, base: dict[str, Any], parameter: Any) -> None:
    items = parameter if case.way == "XCom" else [{}, {case.name: parameter}]
    # What else the parameter needs would name it.
    others = base_of(case.kind, "") if case.name.endswith("_alias") else base
    _partial(case, others).expand_kwargs(items)


def _list(case: Case, base: dict[str, Any], parameter: Any) -> None:
    statement = {"name": "s", "operation": LISTED[case.kind], **base, case.name: parameter}
    StatementsOperator(task_id="t", statements=[statement])


def _mapped_group(case: Case, base: dict[str, Any], parameter: Any) -> None:
    @task_group(group_id="g")
    def group(argument: Any) -> None:
        _task(case, base, argument)

    group.expand(argument=parameter if WAYS[case.way].give is _up else [parameter])


_PLACED = {
    "task": _task,
    "mapped": _mapped,
    "item": _item,
    "missing item": _missing_item,
    "list": _list,
    "group": _group,
    "mapped group": _mapped_group,
    "default_args": _default,
}


def _rendered(case: Case, dag: DAG) -> tuple[Any, Any]:
    in_group = case.place in ("group", "mapped group")
    found = dag.task_dict["g.t" if in_group else "t"].prepare_for_execution()
    is_mapped = case.place in ("mapped", "item", "missing item", "mapped group")
    context = context_of(found, map_index=0 if is_mapped else -1)
    context["task"] = found
    # As Airflow's worker does it: with the environment of the DAG.
    found.render_template_fields(context, dag.get_template_env())
    operator = context["task"]
    try:
        with all_known():
            if case.place == "list":
                (operator,) = operator._known_operators().values()
            return getattr(operator, case.name), asked(operator)
    except JobError as error:
        raise task_failure(error, context) from None


def asked(operator: Any) -> Any:
    """What the task asks for, of rendered parameters."""
    if isinstance(operator, TableSensor):
        return None if getattr(operator, "after_last", False) else operator.gate({})
    settings = operator.spark_settings()
    if isinstance(operator, QueryOperator):
        name, sources = operator._query()
        return settings, sources, operator._spec(name), operator._check()
    if isinstance(operator, StatementsOperator):
        operator._check_parameters()
        known = operator._known_operators().values()
        return settings, [asked(each) for each in known], operator._most_at_once()
    if isinstance(operator, TableCareOperator):
        operator._check_parameters()
        tables = operator._wanted(), operator._excluded(), operator._catalogs(), operator.plan
        limits = operator._most_bytes(), operator._most_at_once(), operator.on_failure
        return settings, operator._statements(), tables, limits, operator._is_dry_run()
    if isinstance(operator, UndoRunOperator):
        operator._check_parameters()
        wanted = WantedTables.of("tables", operator.tables)
        flags = operator.is_dry_run(), operator.needs_session()
        return settings, operator._spec(["a.b"]), wanted, flags
    operator.check_request()
    return (
        settings,
        operator.target_table(),
        operator.statement(),
        operator.request_sources(),
        operator.job_options(),
        operator.is_dry_run(),
        operator.needs_session(),
    )


def signature_names(kind: type) -> set[str]:
    """The keyword parameters of this provider's constructors, as Python tells them."""
    own = [each for each in kind.__mro__ if each.__module__.startswith("airflow_provider_merge.")]
    found = set()
    for each in own:
        if "__init__" in vars(each):
            parameters = inspect.signature(vars(each)["__init__"]).parameters.values()
            found |= {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    return found
