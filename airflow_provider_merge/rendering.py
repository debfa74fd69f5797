"""How templates of this provider are rendered: as text, and never to nothing.

The branch on which a run prepares what it publishes gets its name here, too.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from airflow.providers.common.compat.sdk import (
    AirflowNotFoundException,
    AirflowSkipException,
    MappedOperator,
    XComNotFound,
)
from airflow.sdk.definitions._internal.expandinput import MappedArgument
from airflow.sdk.definitions._internal.types import ArgNotSet
from airflow.sdk.definitions.param import DagParam
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from jinja2 import TemplateError, Undefined, pass_context

from airflow_provider_merge.exceptions import airflow_exception, invalid
from airflow_provider_merge.nothing import is_nothing
from airflow_provider_merge.run_partition import run_partition
from airflow_provider_merge.templates import is_resolved_later
from spark_jobs.errors import RequestError

if TYPE_CHECKING:
    from airflow.sdk import Context
    from jinja2 import Environment

    from airflow_provider_merge.parameters import ParameterOperator


_UNSAFE: Final = re.compile(r"[^A-Za-z0-9]+")
_READABLE: Final = 60
_DIGEST: Final = 8
_GIVE: Final = "Give the run, or every item of the mapped group, a value for it."
_DEFINE: Final = "Define it in Airflow, or correct its name in the template."
_NOT_FOUND: Final = (ErrorType.VARIABLE_NOT_FOUND, ErrorType.CONNECTION_NOT_FOUND)
_CALL: Final = "Call it with () if it is a function, or name one of its values."
_JOIN: Final = (
    "Join its items, as in {{ ... | join(', ') }}, or give the parameter the task's result itself."
)


@pass_context
def _run_branch(context: Mapping[str, Any], prefix: str = "wap") -> str:
    """A name for a branch that is the same for all tries of a run, and that of no other run.

    Templates of this provider's operators have it as ``{{ run_branch() }}``. It consists of
    letters, digits and ``_``: the prefix, what is readable of the run's id, and a digest of DAG,
    run, and the index of a mapped task group.

    Raises:
        AirflowFailException: a template was imported without its context.
    """
    run, ti = context.get("dag_run"), context.get("ti")
    if run is None or ti is None:
        raise airflow_exception(
            invalid(
                "run_branch",
                "the template has no context, and so no run",
                "Import a file of macros with context: {% import 'x.sql' as x with context %}.",
            )
        )
    index = getattr(ti, "map_index", None)
    parts = [ti.dag_id, run.run_id, -1 if index is None else index]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGEST]
    names = (_UNSAFE.sub("_", each).strip("_") for each in (prefix, run.run_id[:_READABLE]))
    return "_".join([*names, digest])


class NothingRenderedError(Exception):
    """An expression of a template is None or undefined."""


class NoTextError(Exception):
    """An expression of a template is something that has no text of its own.

    ``remedy`` says what to write instead.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.remedy = remedy


class NoValueError(Exception):
    """There is no value of this name: in the run, in an item of a mapped task group, in Airflow.

    ``remedy`` says where to give it.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.remedy = remedy


RENDERING_ERRORS: Final = (
    NothingRenderedError,
    NoTextError,
    NoValueError,
    TemplateError,
    XComNotFound,
    # What expressions raise of values that they do not expect.
    ArithmeticError,
    LookupError,
    TypeError,
    ValueError,
)


def prepare_environment(environment: Environment) -> Environment:
    """Add what templates of this provider have; an expression that is nothing is an error."""
    with_run_partition(environment)
    environment.keep_trailing_newline = True
    own: Any = environment.finalize
    environment.finalize = _something if own is None else lambda value: _something(own(value))
    return environment


def with_documents(environment: Environment) -> Environment:
    """The same environment, in which an expression may be a dict or a list: its text is JSON."""
    own: Any = environment.finalize

    def finalize(value: Any) -> Any:
        return json.dumps(value) if isinstance(value, Mapping | list) else own(value)

    return environment.overlay(finalize=finalize)


def with_run_partition(environment: Environment) -> Environment:
    """Add the functions of runs, unless the DAG has a macro of that name."""
    environment.globals.setdefault("run_partition", run_partition)
    environment.globals.setdefault("run_branch", _run_branch)
    return environment


def has_marks(text: str, environment: Environment) -> bool:
    """Whether Jinja would find anything to do in ``text``."""
    marks = (
        environment.variable_start_string,
        environment.block_start_string,
        environment.comment_start_string,
        environment.line_statement_prefix,
        environment.line_comment_prefix,
    )
    return any(mark in text for mark in marks if mark)


def _something(value: Any) -> Any:
    if isinstance(value, Undefined):
        raise NothingRenderedError(value._undefined_message)  # noqa: SLF001 - its only way
    if value is None:
        raise NothingRenderedError("an expression in it is None")
    if isinstance(value, ArgNotSet):
        raise NothingRenderedError("a value that an expression in it asks for is not there")
    if isinstance(value, Mapping | list | set):
        raise NoTextError(f"an expression in it is a {type(value).__name__}, not a text", _JOIN)
    if callable(value) or isinstance(value, Iterator | ModuleType) or _has_no_text(value):
        raise NoTextError(f"an expression in it is a {type(value).__name__}, not a text", _CALL)
    return value


def _has_no_text(value: Any) -> bool:
    """Whether Python would write where in memory it is."""
    kind: Any = type(value)
    return kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__


def rendered_part(render: Callable[[Any], Any], part: Any, step: str) -> Any:
    """A part of a list or dict; errors note the ``step`` to it, such as ``.day`` or ``[0]``."""
    try:
        return render(part)
    except RENDERING_ERRORS as error:
        noted: Any = error
        noted.place = step + getattr(error, "place", "")
        raise


def rendering_error(name: str, error: Exception, remedy: str) -> RequestError:
    """What a user sees of an error in the templates of the parameter ``name``."""
    place = name + getattr(error, "place", "")
    if isinstance(error, NothingRenderedError):
        return is_nothing(place, f"nothing: {error}", remedy)
    if isinstance(error, NoTextError):
        return invalid(place, str(error), error.remedy)
    if isinstance(error, NoValueError):
        return invalid(place, f"has no value: {error}", error.remedy)
    return invalid(place, f"cannot be rendered: {error}", "Check the names in its template.")


@contextmanager
def values_of_names() -> Iterator[None]:
    """Turn what Airflow raises of variables and connections that it lacks into ``NoValueError``.

    Its other errors may pass, and stay as they are.
    """
    try:
        yield
    except AirflowNotFoundException as error:
        raise NoValueError(str(error), _DEFINE) from None
    except AirflowRuntimeError as error:
        if error.error.error not in _NOT_FOUND:
            raise
        raise NoValueError(str((error.error.detail or {}).get("message", error)), _DEFINE) from None


def value_of_run(param: DagParam, context: Context) -> Any:
    """The value of ``dag.param(…)`` in this run."""
    try:
        return param.resolve(context)
    except RuntimeError as error:
        raise NoValueError(str(error), _GIVE) from None


def argument_of_group(argument: MappedArgument, context: Context) -> tuple[Any, bool]:
    """The value of an argument of a mapped task group, and whether the DAG file has it.

    Airflow leaves templates in such values as they are.
    """
    try:
        value = argument.resolve(context)
    except KeyError as error:
        raise NoValueError(f"no argument {error} in this item", _GIVE) from None
    # Airflow tells only the value.
    written: Any = argument._input.value  # noqa: SLF001
    name = argument._key  # noqa: SLF001
    if isinstance(written, Mapping):
        return value, not is_resolved_later(written[name])
    if is_resolved_later(written):
        return value, False
    return value, not is_resolved_later(written[context["ti"].map_index or 0])


def written_parts(value: Any, context: Context) -> Any:
    """``value`` with what the DAG file gives to a mapped group in place of its arguments."""
    if isinstance(value, MappedArgument):
        found, is_literal = argument_of_group(value, context)
        return written_parts(found, context) if is_literal else value
    if isinstance(value, Mapping):
        return {key: written_parts(each, context) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [written_parts(each, context) for each in value]
    return value


class MappedValues:
    """What a mapped task gives one of its instances.

    ``resolved``: the names whose values other tasks returned: Airflow has them already, and their
    text is never a template. ``expanded``: the names in ``expand``. ``are_items``: of
    ``expand_kwargs``, whose keys are only known now.
    """

    def __init__(self, mapped: MappedOperator, given: Collection[str], context: Context) -> None:
        self._value: Any = mapped.expand_input.value
        self._context = context
        self.map_index: int = context["ti"].map_index or 0
        self.are_items = not isinstance(self._value, Mapping)
        self.resolved: set[str] = set()
        self.expanded: set[str] = set()
        if isinstance(self._value, Mapping):
            self.expanded = set(self._value)
            self.resolved = {name for name, each in self._value.items() if is_resolved_later(each)}
        elif self.comes_from_a_task():
            self.resolved = set(given) - set(mapped.partial_kwargs)

    def comes_from_a_task(self) -> bool:
        """Whether another task wrote the item of ``expand_kwargs``, not the DAG file."""
        if not self.are_items or is_resolved_later(self._value):
            return self.are_items
        return is_resolved_later(self._value[self.map_index])

    def names(self) -> set[str]:
        """The keys of all items of ``expand_kwargs``."""
        items = self._value
        if is_resolved_later(items):
            items = _not_skipped(items.resolve(self._context))
        else:
            items = [e.resolve(self._context) if is_resolved_later(e) else e for e in items]
        return {name for each in items if isinstance(each, Mapping) for name in each}


def _not_skipped(items: Sequence[Any]) -> Iterator[Any]:
    """The items but those for which a function of ``map`` skips the instance."""
    for index in range(len(items)):
        try:
            yield items[index]
        except AirflowSkipException:
            continue


def mapped_values(operator: ParameterOperator, context: Context) -> MappedValues | None:
    """What a mapped task gives ``operator``, if it is one of its instances."""
    dag = operator.get_dag()
    task: Any = dag.task_dict.get(operator.task_id) if dag is not None else None
    if not isinstance(task, MappedOperator):
        return None
    return MappedValues(task, operator.given, context)
