"""Parameters that still hold templates when the DAG is parsed."""

from __future__ import annotations

from typing import Any

_MARKS = ("{{", "{%", "{#")
# Stands for a text that is not rendered yet where only the structure is checked; also a table name.
PLACEHOLDER = "to_be.rendered"


def is_template(value: Any) -> bool:
    """True for text with Jinja in it and for what Airflow resolves at run time (XComArg …)."""
    if isinstance(value, str):
        return any(mark in value for mark in _MARKS)
    return hasattr(value, "resolve")


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
    return any(is_template(part) for part in parts) or any(chosen_later(each) for each in inner)
