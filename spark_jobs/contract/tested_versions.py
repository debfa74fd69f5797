"""The versions of libraries in a Spark environment that were tested: those of pyproject.toml."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import distributions
from typing import Final

# From the first version on, and below the second; single ones that are known to be wrong.
RANGES: Final = {
    "pyarrow": ((18,), (20,), ((19, 0, 0),)),
    "pyiceberg": ((0, 12), (0, 13), ()),
    "pypaimon": ((2, 1), (2, 2), ()),
    # The lock has one; others are run by `make test-compat`.
    "pyspark": ((3, 5), (4, 4), ()),
}
# By connector, and so by the format of tables.
TABLE_LIBRARIES: Final = {"iceberg": "pyiceberg", "paimon": "pypaimon"}


def installed_versions(names: Iterable[str], folders: Sequence[str]) -> dict[str, str]:
    """The versions of those of the packages that are installed in folders, such as ``sys.path``.

    Their own metadata is read: nothing is imported.
    """
    versions: dict[str, str] = {}
    for name in names:
        for distribution in distributions(name=name, path=[*folders]):
            # An installation that was broken off leaves folders without it.
            if distribution.read_text("METADATA") or distribution.read_text("PKG-INFO"):
                versions.setdefault(name, distribution.version)
    return versions


def untested_versions(versions: Mapping[str, str]) -> Iterator[str]:
    """A sentence on each library of a version that was not tested; ``versions``: by package."""
    for name, version in versions.items():
        if name in RANGES and not is_tested(name, version):
            yield (
                f"{name} {version} is outside of the versions that were tested, {range_of(name)}: "
                "results may be wrong, or jobs fail. Install one of these into the Spark "
                "environment."
            )


def is_tested(name: str, found: str) -> bool:
    """Whether a version, such as ``19.0.1`` or ``20.0.0rc1``, is within the range."""
    first, end, wrong = RANGES[name]
    match = re.match(r"\d+(?:\.\d+)*", found)
    numbers = tuple(map(int, match[0].split("."))) if match else ()
    return first <= numbers < end and numbers not in wrong


def requirement_of(name: str) -> str:
    """What to install, such as ``pypaimon>=2.1,<2.2``."""
    return name + range_of(name) if name in RANGES else name


def range_of(name: str) -> str:
    """The range as requirements write it, such as ``>=18,!=19.0.0,<20``."""
    first, end, wrong = RANGES[name]
    but = [f"!={_text(each)}" for each in wrong]
    return ",".join([f">={_text(first)}", *but, f"<{_text(end)}"])


def _text(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
