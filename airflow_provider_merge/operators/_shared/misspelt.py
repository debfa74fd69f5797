"""Names in ``default_args`` that nobody takes, and that look like a guard: it would guard nothing.

Airflow ignores what an operator does not know there, because other operators may.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from difflib import SequenceMatcher
from typing import Any, Final

from airflow_provider_merge.exceptions import invalid
from spark_jobs.contract.guards import MEANT_FOR

_NAMES: Final = (*MEANT_FOR, "on_schema_change")
_ALIKE: Final = 0.9
_NO_LETTER: Final = re.compile(r"[^a-z]+")


def refuse_misspelt(defaults: Mapping[str, Any] | None, known: Collection[str]) -> None:
    """Check the names in ``defaults``, of a task whose parameters are ``known``.

    Raises:
        RequestError: REQUEST_INVALID: one is nearly, but not quite, the name of a guard.
    """
    for name in defaults or ():
        meant = None if name in _NAMES else _meant(name)
        if meant in known:
            raise invalid(
                f"default_args.{name}",
                "is no parameter, so that it would guard nothing",
                f"Write {meant}.",
            )


def _meant(name: str) -> str | None:
    """The guard that a name looks like: the same words, or nearly the same letters."""
    found = [each for each in _NAMES if _words(each) == _words(name) or _is_alike(each, name)]
    return max(found, key=lambda each: _likeness(each, name), default=None)


def _words(name: str) -> list[str]:
    return sorted(each.rstrip("s") for each in _NO_LETTER.split(name.lower()) if each)


def _is_alike(one: str, other: str) -> bool:
    return _likeness(one, other) >= _ALIKE


def _likeness(one: str, other: str) -> float:
    first, second = (_NO_LETTER.sub("", each.lower()) for each in (one, other))
    return SequenceMatcher(None, first, second, autojunk=False).ratio()
