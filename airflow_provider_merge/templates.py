"""Parameters that still hold templates when the DAG is parsed.

Whether a text is a template is known from where one is. While a DAG file is parsed, text with
Jinja in it will be rendered, and so it is one. Once a task's parameters are rendered, nothing is:
its code runs in ``all_known``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, ParamSpec, TypeVar

from jinja2 import Environment, TemplateSyntaxError

from airflow_provider_merge.sql.later import RENDERED_LATER

_MARKS = ("{{", "{%", "{#")
# Stands for a text that is not rendered yet where only the structure is checked; also a table name.
PLACEHOLDER = "to_be.rendered"
_ALL_KNOWN: Final[ContextVar[bool]] = ContextVar("all_known", default=False)
_P = ParamSpec("_P")
_R = TypeVar("_R")


@contextmanager
def all_known() -> Iterator[None]:
    """Inside, parameters are rendered: no value is a template, whatever its characters."""
    token = _ALL_KNOWN.set(True)
    try:
        yield
    finally:
        _ALL_KNOWN.reset(token)


def when_rendered(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """A method of operators that Airflow calls only after it has rendered their parameters."""

    @functools.wraps(method)
    def rendered(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with all_known():
            return method(*args, **kwargs)

    return rendered


def are_all_known() -> bool:
    """Whether one is inside of ``all_known``."""
    return _ALL_KNOWN.get()


def is_template(value: Any) -> bool:
    """True for what Airflow renders, calls or resolves later: text with Jinja, XComArg …"""
    if _ALL_KNOWN.get():
        return False
    if isinstance(value, str):
        return any(mark in value for mark in _MARKS)
    return is_resolved_later(value)


def is_resolved_later(value: Any) -> bool:
    """True for what has its value only when the task runs, such as the result of another task."""
    if callable(value):
        return True
    # Paths, too, can be resolved.
    return hasattr(value, "resolve") and not hasattr(value, "joinpath")


def has_template(value: Any) -> bool:
    """True when the value, or anything inside it, is rendered or resolved later."""
    if isinstance(value, dict):
        return any(has_template(each) for each in value.values())
    if isinstance(value, list | tuple):
        return any(has_template(each) for each in value)
    return is_template(value)


def with_placeholders(value: Any) -> Any:
    """The value with a placeholder for each template in it; the structure is kept."""
    if isinstance(value, dict):
        return {key: with_placeholders(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [with_placeholders(each) for each in value]
    return PLACEHOLDER if is_template(value) else value


def with_words(text: str) -> str | None:
    """``text`` with a word for each expression of its templates; None if they have statements.

    What follows from the words is not known (``is_known_name``).
    """
    parts = []
    try:
        for _, kind, value in Environment(autoescape=True).lex(text):
            if kind in ("block_begin", "raw_begin"):
                return None
            if kind == "data":
                parts.append(value)
            elif kind == "variable_begin":
                parts.append(RENDERED_LATER)
    except TemplateSyntaxError:
        return None
    return "".join(parts)


def is_known_name(name: object) -> bool:
    """Whether a name in a text, or one that stands for it, holds no template."""
    return PLACEHOLDER not in str(name) and RENDERED_LATER not in str(name)


def chosen_later(value: Any) -> bool:
    """True when a template decides what kind of thing this is, or stands for all of a structure."""
    if not isinstance(value, dict):
        return is_template(value)
    parts = [value.get(key) for key in ("kind", "when", "action", "options")]
    action = value.get("action")
    if isinstance(action, dict):
        parts.append(action.get("kind"))
    named = value.get("sources")
    inner = list(named.values()) if isinstance(named, dict) else [named]
    if isinstance(value.get("source"), dict):
        inner.append(value["source"])
    return any(is_template(part) for part in parts) or any(chosen_later(each) for each in inner)
