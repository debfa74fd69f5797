"""Where a table's files are: locations as paths, and directories outside of the table's own.

Never imports a table library, because sinks use it to choose directories.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from spark_jobs.contract.hdfs_options import SCHEME as HDFS
from spark_jobs.contract.locations import FILE_SCHEME
from spark_jobs.contract.s3_options import SCHEMES as S3_SCHEMES
from spark_jobs.errors import NotSupportedError

OPTION: Final = "data-file.external-paths"
_STRATEGY: Final = f"{OPTION}.strategy"
_SPECIFIC_FS: Final = f"{OPTION}.specific-fs"
_WEIGHTS: Final = f"{OPTION}.weights"
_REMEDY: Final = "Correct the table's option, or run this with Paimon's own engines."


def filesystem_path(location: str) -> str:
    """The path of a location: ``/a`` for ``/a`` and ``file:/a``, ``b/k`` for ``s3://b/k``.

    For ``hdfs://host:port/a``, it is ``host:port/a``. Paimon does not percent-encode locations.

    Raises:
        NotSupportedError: the location is on other storage.
    """
    scheme, colon, rest = location.partition(":")
    if location.startswith("/") or not colon:
        return location
    path = rest.removeprefix("//") if rest.startswith("//") else rest
    if scheme in (*S3_SCHEMES, HDFS) and rest.startswith("//"):
        return path.rstrip("/")
    if scheme != FILE_SCHEME or not path.startswith("/"):
        raise NotSupportedError(
            f"{location} is neither on a local file system nor on hdfs:// or s3://, which is all "
            "that is supported.",
            "Run this statement with Paimon's own engines.",
        )
    return path.rstrip("/")


def path_beside(table: str, location: str) -> str:
    """The path of a file at ``location`` that belongs to the table at ``table``.

    Raises:
        NotSupportedError: the file is on other storage than its table.
    """
    if not on_same_storage(table, location):
        raise NotSupportedError(
            f"{location} is on other storage than its table in {table}.",
            "Run this statement with Paimon's own engines.",
        )
    return filesystem_path(location)


def on_same_storage(one: str, other: str) -> bool:
    """Whether both locations are local, on s3://, or in the same HDFS."""
    return _storage(one) == _storage(other)


def _storage(location: str) -> str:
    scheme, _, rest = location.partition(":")
    if scheme in S3_SCHEMES:
        return "s3"
    return f"{HDFS}:{rest.split('/')[2]}" if location.startswith(f"{HDFS}://") else "local"


@dataclass(frozen=True, slots=True)
class ExternalPaths:
    """The local ``roots`` for new files, in place of the table's directory, with their weights."""

    roots: tuple[str, ...]
    weights: tuple[int, ...]

    def root(self, number: int) -> str:
        """The root for the file with this number: round-robin, each root as often as its weight."""
        ends = list(accumulate(self.weights))
        return self.roots[bisect_right(ends, number % ends[-1])]


def external_paths(options: Mapping[str, str]) -> ExternalPaths | None:
    """The external paths that a table's options set; None: new files go to the table's directory.

    Raises:
        NotSupportedError: a strategy, a path or the weights cannot be honoured.
    """
    strategy = options.get(_STRATEGY, "none").lower()
    paths = [path.strip() for path in options.get(OPTION, "").split(",") if path.strip()]
    if strategy == "none" or not paths:
        return None
    if strategy == "specific-fs":
        wanted = f"{options.get(_SPECIFIC_FS, '').lower()}:"
        paths = [path for path in paths if path.lower().startswith(wanted)]
    elif strategy not in ("round-robin", "weight-robin"):
        raise NotSupportedError(
            f"Option {_STRATEGY} = {strategy} is not supported: only none, round-robin, "
            "specific-fs and weight-robin are.",
            _REMEDY,
        )
    if not paths or not all(path.startswith("file:") for path in paths):
        raise NotSupportedError(
            f"Option {OPTION} = {options[OPTION]} with the strategy {strategy} names no path, or "
            "one that is not a file: URI, which is all that is supported.",
            _REMEDY,
        )
    weights = _weights(options) if strategy == "weight-robin" and len(paths) > 1 else None
    if weights is not None and len(weights) != len(paths):
        raise NotSupportedError(
            f"Option {_WEIGHTS} = {options[_WEIGHTS]} does not have one weight for each path of "
            f"{OPTION}.",
            _REMEDY,
        )
    return ExternalPaths(tuple(map(filesystem_path, paths)), weights or (1,) * len(paths))


def external_roots(options: Mapping[str, str]) -> set[str]:
    """The local roots of files that may have been written with these options, by any strategy."""
    paths = [path.strip() for path in options.get(OPTION, "").split(",")]
    return {filesystem_path(path) for path in paths if path.startswith("file:")}


def _weights(options: Mapping[str, str]) -> tuple[int, ...] | None:
    text = options.get(_WEIGHTS)
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) for part in parts):
        raise NotSupportedError(f"Option {_WEIGHTS} = {text} is not a list of weights.", _REMEDY)
    return tuple(int(part) for part in parts)
