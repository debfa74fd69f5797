"""How templates of this provider are rendered: as text, and never to nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import MappedOperator
from jinja2 import Undefined

from airflow_provider_merge.nothing import listed
from airflow_provider_merge.run_partition import run_partition
from airflow_provider_merge.templates import is_resolved_later

if TYPE_CHECKING:
    from airflow.sdk import Context
    from jinja2 import Environment

    from airflow_provider_merge.parameters import ParameterOperator


class NothingRenderedError(Exception):
    """An expression of a template is None or undefined."""


def prepare_environment(environment: Environment) -> Environment:
    """Add what templates of this provider have; an expression that is nothing is an error."""
    environment.globals.setdefault("run_partition", run_partition)
    own: Any = environment.finalize
    environment.finalize = _something if own is None else _finalized(own)
    return environment


def _something(value: Any) -> Any:
    if isinstance(value, Undefined):
        raise NothingRenderedError(value._undefined_message)
    if value is None:
        raise NothingRenderedError("an expression in it is None")
    return value


def _finalized(own: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: _something(own(value))


class MappedValues:
    """What a mapped task gives one of its instances.

    ``resolved``: the names whose values other tasks returned: Airflow has them already, and their
    text is never a template.
    """

    def __init__(self, mapped: MappedOperator, given: Collection[str], context: Context) -> None:
        self._value: Any = mapped.expand_input.value
        self._context = context
        self.map_index: int = context["ti"].map_index
        by_name = isinstance(self._value, Mapping)
        # Of expand_kwargs: whole items, whose keys are only known now.
        self.are_items = not by_name
        if by_name:
            self.resolved = {name for name, each in self._value.items() if is_resolved_later(each)}
        elif self.comes_from_a_task():
            self.resolved = set(given) - set(mapped.partial_kwargs)
        else:
            self.resolved = set()

    def comes_from_a_task(self) -> bool:
        """Whether another task wrote the item of ``expand_kwargs``, not the DAG file."""
        if not self.are_items or is_resolved_later(self._value):
            return self.are_items
        return is_resolved_later(self._value[self.map_index])

    def names(self) -> set[str]:
        """The keys of all items of ``expand_kwargs``."""
        items = self._value
        if is_resolved_later(items):
            items = listed(items.resolve(self._context))
        else:
            items = [e.resolve(self._context) if is_resolved_later(e) else e for e in items]
        return {name for each in items if isinstance(each, Mapping) for name in each}


def mapped_values(operator: ParameterOperator, context: Context) -> MappedValues | None:
    """What a mapped task gives ``operator``, if it is one of its instances."""
    dag = operator.get_dag()
    task: Any = dag.task_dict.get(operator.task_id) if dag is not None else None
    if not isinstance(task, MappedOperator):
        return None
    return MappedValues(task, operator.given, context)
