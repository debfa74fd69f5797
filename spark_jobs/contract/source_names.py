"""What a source is called in messages: by its name only if users gave it one."""

from __future__ import annotations

import re
from typing import Final

from spark_jobs.contract.deduplication import ALL_ROWS
from spark_jobs.contract.outside_sources import JdbcSource, PythonSource, SparkSource
from spark_jobs.contract.request import FileSource, Source, TableSource

# The names of a statement's own source; beside a source that already has the name, with a number.
MERGE_SOURCE: Final = "merge_source"
INSERT_SOURCE: Final = "insert_source"
_UNNAMED: Final = re.compile(rf"(?:{MERGE_SOURCE}|{INSERT_SOURCE})(?:_[0-9]+)?(?:{ALL_ROWS})*")


def is_unnamed(name: str) -> bool:
    """Whether this is the name that a source has whose user gave it none."""
    return _UNNAMED.fullmatch(name) is not None


def called(name: str) -> str:
    """``source NAME``, or ``the source``."""
    return "the source" if is_unnamed(name) else f"source {name}"


def source_text(source: Source) -> str:
    """``source NAME``, or ``the source (csv /landing)``."""
    return placed_source(source) if is_unnamed(source.name) else called(source.name)


def placed_source(source: Source) -> str:
    """``source NAME (csv /landing)``, or ``the source (csv /landing)``; queries have no place."""
    if isinstance(source, FileSource):
        return f"{called(source.name)} ({source.format} {source.path})"
    if isinstance(source, TableSource):
        at = "" if source.at is None else f", {source.at}"
        return f"{called(source.name)} (table {source.placed_table}{at})"
    if isinstance(source, JdbcSource):
        return f"{called(source.name)} (database of connection {source.connection})"
    if isinstance(source, PythonSource):
        return f"{called(source.name)} ({source.function})"
    if isinstance(source, SparkSource):
        return f"{called(source.name)} (data source {source.format})"
    return called(source.name)
