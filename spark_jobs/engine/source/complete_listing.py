"""Whether Spark has listed all local files of a source, which Python lists too. Driver only.

Java leaves out, without a word, a file or folder whose name it cannot write in its own character
set, and one whose name is not valid in it. Names in other stores do not pass through it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spark_jobs.contract.source_names import placed_source
from spark_jobs.engine.runtime.java_names import java_class
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.spark_paths import escape_glob, is_data_file
from spark_jobs.spi.file_index import FileIndex

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.contract.request import FileSource

_LOCAL: Final = "file:"
_PATTERN: Final = re.compile(r"[*?\[\]{}\\]")


def require_all_listed(
    spark: SparkSession, source: FileSource, index: FileIndex, listed_again: Callable[[], FileIndex]
) -> None:
    """Check that the index of a source of local files has each file that is there.

    ``listed_again`` lists anew: a file that has arrived meanwhile is in that list. Where Spark's
    streaming has left a log of its files, others there are none of the source's.

    Raises:
        CatalogError: SOURCE_UNREADABLE, naming a file that Spark does not see.
    """
    if index.is_listed:
        roots = _roots(spark, source.path) or index.roots
        _require_all(placed_source(source), roots, index, listed_again)


def require_all_indexed(spark: SparkSession, label: str, indexes: Iterable[FileIndex]) -> None:
    """Check it for the files that a query names, but not for patterns in their paths.

    Raises:
        CatalogError: SOURCE_UNREADABLE, for the source ``label``.
    """
    for index in filter(lambda each: each.is_listed, indexes):
        roots = index.roots

        def listed_again(roots: Sequence[str] = roots) -> FileIndex:
            paths = list(map(escape_glob, roots))
            return FileIndex.of(spark.read.format("text").load(paths))

        if all(root.startswith(_LOCAL) for root in roots):
            _require_all(label, roots, index, listed_again)


def _require_all(
    label: str, roots: Sequence[str], index: FileIndex, listed_again: Callable[[], FileIndex]
) -> None:
    there = frozenset(_files(roots))
    hidden = there.difference(index.leaves)
    if not hidden:
        return
    hidden = hidden.difference(listed_again().leaves)
    still = sorted(path for path in hidden if Path(path.removeprefix(_LOCAL)).exists())
    if still:
        raise CatalogError(
            ErrorCode.SOURCE_UNREADABLE,
            f"{label}: Spark does not see {_shown(still[0])}, one of {len(still)} such files.",
            "Rename the file if its name is not valid UTF-8. Else see whether the driver's Java "
            "has a UTF-8 locale, and may list the folder.",
        )


def _shown(path: str) -> str:
    """The path; bytes that are no UTF-8 are shown as numbers."""
    raw = path.removeprefix(_LOCAL).encode(errors="surrogateescape")
    return raw.decode(errors="backslashreplace")


def _files(roots: Sequence[str]) -> Iterator[str]:
    for root in roots:
        path = Path(root.removeprefix(_LOCAL))
        if path.is_dir():
            yield from _below(str(path))
        elif is_data_file(path.name):
            yield f"{_LOCAL}{path}"


def _below(folder: str) -> Iterator[str]:
    try:
        found = os.scandir(folder)
    except FileNotFoundError:  # removed after Spark has listed it
        return
    with found as entries:
        for entry in entries:
            if not is_data_file(entry.name):
                continue
            if entry.is_dir():
                yield from _below(entry.path)
            elif entry.is_file():
                yield f"{_LOCAL}{entry.path}"


def _roots(spark: SparkSession, path: str) -> list[str]:
    """What matches a path with patterns, as ``file:`` and a path; empty if it has none."""
    if not _PATTERN.search(path):
        return []
    globs = java_class(spark, "org.apache.hadoop.fs.GlobExpander")
    # Hadoop too removes ".." before it looks for matches.
    local = os.path.abspath(path.removeprefix("file://").removeprefix(_LOCAL))  # noqa: PTH100
    found = (each for pattern in globs.expand(local) for each in _matches(spark, str(pattern)))
    return [f"{_LOCAL}{each}" for each in found]


def _matches(spark: SparkSession, pattern: str) -> list[Path]:
    """The files and folders that match, as Hadoop's ``Globber`` finds them, by its own patterns."""
    compiler = java_class(spark, "org.apache.hadoop.fs.GlobPattern")
    paths = [Path("/")]
    for part in filter(None, pattern.split("/")):
        if _PATTERN.search(part):
            rule = re.compile(str(compiler(part).compiled().pattern()), re.DOTALL)
            inside = (each for folder in paths if folder.is_dir() for each in folder.iterdir())
            paths = [each for each in inside if rule.fullmatch(each.name)]
        else:
            paths = [folder / part for folder in paths]
    return [path for path in paths if path.exists()]
