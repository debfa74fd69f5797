"""The versions of libraries in a Spark environment that were tested: those of pyproject.toml."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Final

# From the first version on, and below the second; single ones that are known to be wrong.
RANGES: Final = {
    "pyarrow": ((18,), (20,), ((19, 0, 0),)),
    "pyiceberg": ((0, 12), (0, 13), ()),
    "pypaimon": ((2, 1), (2, 2), ()),
    # The lock has one; others are run by `make test-compat`.
    "pyspark": ((3, 5), (4, 4), ()),
}


def untested_versions() -> Iterator[str]:
    """A sentence on each library here of an untested version; those that are missing say so later.

    Packages' own metadata is read: nothing is imported.
    """
    for name in RANGES:
        try:
            found = version(name)
        except PackageNotFoundError:
            continue
        if not is_tested(name, found):
            yield (
                f"{name} {found} is outside of the versions that were tested, {range_of(name)}: "
                "results may be wrong, or jobs fail. Install one of these into the Spark "
                "environment."
            )


def is_tested(name: str, found: str) -> bool:
    """Whether a version, such as ``19.0.1`` or ``20.0.0rc1``, is within the range."""
    first, end, wrong = RANGES[name]
    match = re.match(r"\d+(?:\.\d+)*", found)
    numbers = tuple(map(int, match[0].split("."))) if match else ()
    return first <= numbers < end and numbers not in wrong


def range_of(name: str) -> str:
    """The range as requirements write it, such as ``>=18,!=19.0.0,<20``."""
    first, end, wrong = RANGES[name]
    but = [f"!={_text(each)}" for each in wrong]
    return ",".join([f">={_text(first)}", *but, f"<{_text(end)}"])


def _text(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
