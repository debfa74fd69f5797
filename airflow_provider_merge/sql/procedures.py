"""What procedures of table formats have in common: arguments as parameters of operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from airflow_provider_merge.sql.call_arguments import Argument, Call

Parameters = dict[str, Any]
# Of an argument's value, the parameters of the operation.
Taken = Callable[[Call, Argument], Parameters]

FASTER: Final = "Leave it out: it does not change what is done."
DRY_RUN: Final = "Leave it out, and run the task with dry_run=True."
COMPACT: Final = "Leave it out, or use CompactOperator with parameters of its own."


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure: its ``operation`` here, and what each argument besides ``table`` means.

    Arguments stand in the order of ``takes``; text in place of what one means says why it is
    refused. ``ordered``: how many, with ``table``, have a place; None: all. ``always``: parameters
    that do not depend on arguments. ``needs``: why an argument must not be left out, by its name.
    """

    operation: str
    takes: Mapping[str, Taken | str] = field(default_factory=dict)
    always: Mapping[str, Any] = field(default_factory=dict)
    ordered: int | None = None
    needs: Mapping[str, str] = field(default_factory=dict)


def text_as(name: str) -> Taken:
    """A text, as the parameter ``name``."""
    return lambda call, at: {name: call.text(at)}


def number_as(name: str) -> Taken:
    """A whole number, as the parameter ``name``."""
    return lambda call, at: {name: call.number(at)}


def moment_as(name: str) -> Taken:
    """A timestamp with its offset, as the parameter ``name``."""
    return lambda call, at: {name: call.moment(at)}


def flag_as(name: str) -> Taken:
    """TRUE or FALSE, as the parameter ``name``."""
    return lambda call, at: {name: call.flag(at)}


def only_value(wanted: Any, remedy: str) -> Taken:
    """An argument that may have the one value that it has here anyway."""

    def taken(call: Call, at: Argument) -> Parameters:
        value = at.value.lower() if isinstance(at.value, str) else at.value
        if value != wanted:
            raise call.unsupported(at, f"value {at.value}", remedy)
        return {}

    return taken
