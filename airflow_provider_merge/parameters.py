"""The base of all operators and sensors: what became of each parameter that they were given.

A parameter that the DAG file leaves out has its default. One that is given has a value, or is an
error that names it: when the DAG is parsed if its value stands in the file, else when the task's
parameters are rendered, before anything else. That is decided here, once for all parameters.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.common.compat.sdk import BaseOperator
from airflow.sdk.definitions._internal.expandinput import MappedArgument
from airflow.sdk.definitions._internal.types import ArgNotSet
from airflow.sdk.definitions.param import DagParam

from airflow_provider_merge.exceptions import invalid, no_text
from airflow_provider_merge.nothing import (
    NO_DEFAULT,
    is_nothing,
    kind_of_nothing,
    listed,
    settled,
)
from airflow_provider_merge.rendering import (
    RENDERING_ERRORS,
    MappedValues,
    argument_of_group,
    has_marks,
    mapped_values,
    prepare_environment,
    rendered_part,
    rendering_error,
    value_of_run,
    values_of_names,
    with_documents,
    with_run_partition,
    written_parts,
)
from airflow_provider_merge.task_errors import NamesItsTask, task_failure
from airflow_provider_merge.templates import is_template, when_rendered
from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from airflow.sdk import DAG, Context
    from jinja2 import Environment

_OWN = "airflow_provider_merge."


class ParameterOperator(NamesItsTask, BaseOperator):
    """An operator or sensor of this provider.

    ``parameter_names`` are those of this provider's constructors, not Airflow's;
    ``text_parameters`` the ones of them that are nothing but text, ``required_parameters`` those
    without a default. ``given`` are
    those that the task was given, ``from_defaults`` the ones of them that ``default_args`` gave.
    ``remedies`` are for parameters that are nothing. Without those in ``selects_rows``, a statement
    changes every row. ``unusable_defaults``: which values of ``default_args`` mean something to
    other operators only, and are ignored. ``rendered_like``: template fields that hold parameters,
    with the name that errors give them. ``document_parameters``: an expression in them may be a
    dict or a list; ``nested_documents``: the same of what parameters have below such a name.
    """

    parameter_names: ClassVar[frozenset[str]] = frozenset()
    text_parameters: ClassVar[frozenset[str]] = frozenset()
    required_parameters: ClassVar[frozenset[str]] = frozenset()
    remedies: ClassVar[Mapping[str, str]] = {}
    selects_rows: ClassVar[tuple[str, ...]] = ()
    unusable_defaults: ClassVar[Mapping[str, Callable[[Any], bool]]] = {}
    rendered_like: ClassVar[Mapping[str, str]] = {}
    document_parameters: ClassVar[frozenset[str]] = frozenset()
    nested_documents: ClassVar[frozenset[str]] = frozenset()

    given: set[str]
    from_defaults: set[str]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # Spark SQL text must stay text: native rendering turns 'x' into x, '007' into 7.
        self.render_template_as_native_obj = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        for base in reversed(cls.__bases__):
            cls.remedies = {**getattr(base, "remedies", {}), **cls.remedies}
        for kind in ("parameter_names", "text_parameters", "required_parameters"):
            inherited = (getattr(base, kind, ()) for base in cls.__bases__)
            setattr(cls, kind, frozenset().union(*inherited))
        if cls.__module__.startswith(_OWN) and "__init__" in vars(cls):
            code = cls.__init__.__code__
            first = code.co_argcount
            names = code.co_varnames[first : first + code.co_kwonlyargcount]
            types = cls.__init__.__annotations__
            cls.parameter_names |= set(names)
            defaults = cls.__init__.__kwdefaults__ or {}
            cls.required_parameters |= set(names) - set(defaults)
            cls.text_parameters |= {name for name in names if types[name] in ("str", "str | None")}
            cls.__init__ = _noting(cls.__init__, names)  # type: ignore[method-assign]
        super().__init_subclass__(**kwargs)

    def get_template_env(self, dag: DAG | None = None) -> Environment:
        """Templates are text in every DAG, know ``run_partition``, and are never nothing."""
        return prepare_environment(super().get_template_env(dag))

    def refuse(self, name: str, problem: str, remedy: str = "") -> None:
        """Ignore a parameter that is of no use here if ``default_args`` gave it, as Airflow does.

        Raises:
            RequestError: REQUEST_INVALID: the task itself was given it.
        """
        if name not in self.from_defaults:
            raise invalid(name, problem, remedy)
        self.given.discard(name)
        setattr(self, name, None)

    def before_rendering(self, resolved: Collection[str]) -> None:
        """Read what is rendered; ``resolved`` has the names of parameters that are not."""

    def after_rendering(self) -> None:
        """Do what rendered parameters decide before the task is reported as running."""

    def render_template(
        self,
        content: Any,
        context: Context,
        jinja_env: Environment | None = None,
        seen_oids: set[int] | None = None,
    ) -> Any:
        """As Airflow does it, also in literals of mapped groups; errors tell their place."""
        render = functools.partial(
            self.render_template, context=context, jinja_env=jinja_env, seen_oids=seen_oids
        )
        if isinstance(content, dict):
            own = jinja_env and with_documents(jinja_env)
            of_document = functools.partial(render, jinja_env=own)
            return {
                key: rendered_part(
                    of_document if key in self.nested_documents else render, each, f".{key}"
                )
                for key, each in content.items()
            }
        if content.__class__ in (list, tuple):
            parts = enumerate(content)
            return [rendered_part(render, each, f"[{index}]") for index, each in parts]
        if isinstance(content, str) and jinja_env and not has_marks(content, jinja_env):
            # Jinja would change line ends, and drop the last one.
            return content
        if isinstance(content, MappedArgument):
            value, is_literal = argument_of_group(content, context)
            return render(value) if is_literal else value
        if isinstance(content, DagParam):
            return value_of_run(content, context)
        with values_of_names():
            return super().render_template(content, context, jinja_env, seen_oids)

    def _do_render_template_fields(
        self,
        parent: Any,
        template_fields: Iterable[str],
        context: Context,
        jinja_env: Environment,
        seen_oids: set[int],
    ) -> None:
        if parent is not self:
            super()._do_render_template_fields(
                parent, template_fields, context, jinja_env, seen_oids
            )
            return
        try:
            mapped = mapped_values(self, context)
            if mapped is not None:
                self._require_keys(mapped)
            resolved = mapped.resolved if mapped is not None else set()
            own = self._own_fields(template_fields)
            for name in own - resolved:
                self._take_arguments(name, context)
            self.before_rendering(resolved)
            # Not Airflow's, which is that of the DAG: it may render native objects.
            environment = self.get_template_env()
            for name in template_fields:
                if name in resolved:
                    setattr(self, name, listed(getattr(self, name)))
                elif name in own:
                    self._render_parameter(name, context, environment)
                else:
                    self._render_other(name, context)
            for name in self.given:
                self.require_usable(name, getattr(self, name))
            when_rendered(self.after_rendering)()
        except JobError as error:
            raise task_failure(error, context) from None

    def _own_fields(self, names: Iterable[str]) -> set[str]:
        return set(names) & (self.parameter_names | self.rendered_like.keys())

    def _take_arguments(self, name: str, context: Context) -> None:
        """Put in what the DAG file gives to a mapped group, as if it were written here."""
        with self._naming(name):
            setattr(self, name, written_parts(getattr(self, name), context))

    def _render_parameter(self, name: str, context: Context, environment: Environment) -> None:
        before = getattr(self, name)
        if name in self.document_parameters:
            environment = with_documents(environment)
        with self._naming(name):
            super()._do_render_template_fields(self, (name,), context, environment, set())
        place = self.rendered_like.get(name, name)
        setattr(self, name, settled(before, getattr(self, name), place))

    @contextmanager
    def _naming(self, name: str) -> Iterator[None]:
        """Errors of templates name the parameter."""
        try:
            yield
        except RENDERING_ERRORS as error:
            place = self.rendered_like.get(name, name)
            raise rendering_error(place, error, self._remedy(name)) from None

    def _render_other(self, name: str, context: Context) -> None:
        """A template field that a subclass of somebody's own adds may be nothing."""
        environment = with_run_partition(super().get_template_env())
        super()._do_render_template_fields(self, (name,), context, environment, set())

    def _require_keys(self, mapped: MappedValues) -> None:
        """Check that an item of ``expand_kwargs`` has all keys that others have.

        One that another task returned also says which rows it means.
        """
        for name in sorted(mapped.expanded & self.parameter_names - self.given):
            raise is_nothing(name, f"left out in instance {mapped.map_index}", self._remedy(name))
        if not mapped.are_items:
            return
        missing = (mapped.names() & self.parameter_names) - self.given
        problem = f"is missing in item {mapped.map_index} of expand_kwargs"
        for name in sorted(missing):
            raise invalid(name, f"{problem}, but not in others", "Give it in every item.")
        if mapped.comes_from_a_task():
            self.require_selection(f"{problem}, which another task returned")

    def require_selection(self, problem: str) -> None:
        """Check that the parameters tell which rows the statement changes.

        Raises:
            RequestError: REQUEST_INVALID, with the ``problem`` of a missing one.
        """
        for name in self.selects_rows:
            if name not in self.given and "sql" not in self.given:
                raise invalid(name, problem, self._remedy(name))

    def _require_given(self, name: str, value: Any) -> None:
        """Check a parameter of the DAG file, of which a template is seen later."""
        if not is_template(value):
            self.require_usable(name, value)
        elif name not in self.template_fields:
            problem = "cannot be a template or the result of a task"
            raise invalid(name, problem, "Write its value in the DAG file.")

    def require_usable(self, name: str, value: Any) -> None:
        """Check that a value that is given is something, and text where only that can be used.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
        if kind := kind_of_nothing(name, value):
            without = NO_DEFAULT if self._is_required(name) else ""
            raise is_nothing(name, kind, self._remedy(name) or without)
        if name in self.text_parameters and not isinstance(value, str):
            # The remedy of what selects rows is about nothing.
            raise no_text(name, value, "" if name in self.selects_rows else self._remedy(name))

    def _is_required(self, name: str) -> bool:
        """Whether a parameter has no default: it is one of the constructor, or stands for SQL."""
        parts = () if "sql" in self.given else getattr(self, "required_parts", ())
        return name in self.required_parameters or name in parts

    def _remedy(self, name: str) -> str:
        return self.remedies.get(name, "")


def _has_default(name: str, kwargs: dict[str, Any], defaults: Mapping[str, Any]) -> bool:
    """Put the default of a parameter that is left out (``NOTSET``) into ``kwargs``, if it has one.

    Airflow has not done so, because something is given.
    """
    del kwargs[name]
    if name not in defaults:
        return False
    kwargs[name] = defaults[name]
    return True


def _never(value: Any) -> bool:
    return False


def _noting(constructor: Callable[..., None], names: tuple[str, ...]) -> Callable[..., None]:
    """A constructor that notes which of its parameters ``names`` the operator is given.

    Constructors of subclasses note first: what they pass on is not what the task was given.
    """

    @functools.wraps(constructor)
    def noting(self: ParameterOperator, *args: Any, **kwargs: Any) -> None:
        noted = vars(self)
        if "given" not in noted:
            noted |= {"given": set(), "from_defaults": set(), "_seen": set()}
        seen_names, defaults = noted["_seen"], kwargs.get("default_args") or {}
        for name in names:
            if name in seen_names:
                continue
            seen_names.add(name)
            if name not in kwargs:
                continue
            if isinstance(kwargs[name], ArgNotSet) and not _has_default(name, kwargs, defaults):
                continue
            value = kwargs[name]
            if name in defaults and defaults[name] is value:
                if self.unusable_defaults.get(name, _never)(value):
                    del kwargs[name]
                    continue
                noted["from_defaults"].add(name)
            noted["given"].add(name)
            self._require_given(name, value)
        constructor(self, *args, **kwargs)

    return noting
