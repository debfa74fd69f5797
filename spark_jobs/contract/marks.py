"""Marks: how far a task has applied an incremental source, recorded in its target's snapshots.

A snapshot that moves a mark records it as one property, whose name is that of the mark and whose
value is a small JSON object. A mark belongs to a source of a statement of a task, so that two tasks
never share one. The newest snapshot of the target's history that has the property, and was not
taken back, is what counts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from spark_jobs.contract import codec
from spark_jobs.contract.deduplication import without_deduplication
from spark_jobs.contract.request import JobRequest, Origin
from spark_jobs.errors import RequestError

PREFIX: Final = "merge.mark."
# In the mark of changes of a table of another catalog: the connection to it.
CONNECTION: Final = "connection"
# Characters of a mark in the properties of a snapshot, which some catalogs keep in one document.
LONGEST: Final = 4_000
_DIGITS: Final = 32


def mark_name(origin: Origin, source: str) -> str:
    """The property of the mark of a source, whatever the run, the try or the mapped task.

    A mapped task has one mark for all of its instances: their order may change. A source that is
    deduplicated keeps the mark that it had before. A dry run may go by the mark of another task.
    """
    given, task = without_deduplication(source), origin.dry_run_of or origin.task_id
    parts = json.dumps([origin.dag_id, task, origin.statement, given])
    return PREFIX + hashlib.sha256(parts.encode()).hexdigest()[:_DIGITS]


def mark_names(request: JobRequest) -> dict[str, str]:
    """The sources of a request that are read incrementally, by the properties of their marks."""
    return {
        mark_name(request.origin, source.name): source.name
        for source in request.sources
        if source.is_incremental
    }


class MarkedTable(NamedTuple):
    """The table and its snapshot in a mark of changes; ``connection``: to another catalog."""

    table: str
    snapshot_id: int
    connection: str | None


def marked_tables(properties: Mapping[str, str]) -> dict[str, MarkedTable]:
    """The marks of changes that a snapshot records, by name.

    Those of files, and of another version of this project, are left out.
    """
    marks_by_name: dict[str, MarkedTable] = {}
    for name in properties:
        if not name.startswith(PREFIX):
            continue
        try:
            mark: Any = recorded_mark(properties, name) or {}
        except RequestError:
            continue
        marked = MarkedTable(mark.get("table"), mark.get("snapshot"), mark.get(CONNECTION))
        kinds = (type(marked.table), type(marked.snapshot_id))
        if kinds == (str, int) and isinstance(marked.connection, str | None):
            marks_by_name[name] = marked
    return marks_by_name


def mark_text(mark: Mapping[str, Any]) -> str:
    """A mark as the value of its property.

    Raises:
        RequestError: REQUEST_INVALID: it is too long.
    """
    text = json.dumps(mark, sort_keys=True, separators=(",", ":"))
    if len(text) > LONGEST:
        raise codec.invalid("mark", f"{len(text):,} characters; a snapshot takes {LONGEST:,}")
    return text


def recorded_mark(properties: Mapping[str, str], name: str) -> dict[str, Any] | None:
    """The mark of this name that a snapshot records; None: it does not move it.

    Raises:
        RequestError: REQUEST_INVALID: it is no JSON object, so something else wrote it.
    """
    text = properties.get(name)
    if text is None:
        return None
    try:
        mark = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise codec.invalid(name, f"not a JSON document: {error}") from None
    if not isinstance(mark, dict):
        raise codec.invalid(name, "not a JSON object")
    return mark
