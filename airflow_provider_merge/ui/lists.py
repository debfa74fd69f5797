"""The tables of a connection: names are listed once in a while, facts are read page by page."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import TimeoutError as NotDoneError
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from airflow_provider_merge.hooks.catalog import CatalogHook, catalog_hook_once
from airflow_provider_merge.metadata.model import Snapshot
from airflow_provider_merge.metadata.page_facts import PageFacts
from airflow_provider_merge.storage.failures import reaching
from airflow_provider_merge.ui.answers import ListedTable, Problem, Tables
from airflow_provider_merge.ui.reads import Readable, problem_of
from airflow_provider_merge.ui.threads import spread
from airflow_provider_merge.ui.told import dag_of, told_snapshot
from spark_jobs.contract.request import TableName
from spark_jobs.errors import JobError

_FRESH: Final = 30.0
_MOST_NAMES: Final = 50_000
_MOST_CONNECTIONS: Final = 20
_READERS: Final = 8
# Seconds for the facts of one page.
_SECONDS: Final = 12.0


@dataclass
class Names:
    """The names of tables by connection, as they were a moment ago."""

    _known: dict[str, tuple[float, list[TableName]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, connection: str, hook: CatalogHook) -> list[TableName]:
        """The names of a connection's tables.

        Raises:
            JobError: the catalog cannot be read.
        """
        with self._lock:
            looked, names = self._known.get(connection, (float("-inf"), []))
        if time.monotonic() < looked + _FRESH:
            return names
        names = hook.table_names(_MOST_NAMES + 1)
        with self._lock:
            if len(self._known) >= _MOST_CONNECTIONS:
                self._known.clear()
            self._known[connection] = (time.monotonic(), names)
        return names


@dataclass(frozen=True, slots=True)
class _Seen:
    """A table's newest snapshot, or why it is not known."""

    name: TableName
    latest: Snapshot | None = None
    facts: PageFacts | None = None
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class TableQuery:
    """Which tables: those whose name has ``search`` in it, from position ``offset`` on.

    ``older_than``: the newest snapshot is older than so many seconds. ``writer``: part of who wrote
    it. A table that cannot be read passes, with its problem.
    """

    search: str = ""
    older_than: int | None = None
    writer: str = ""
    offset: int = 0
    limit: int = 50

    @property
    def filters(self) -> bool:
        """Whether a table has to be read to know that it is wanted."""
        return self.older_than is not None or bool(self.writer)

    def passes(self, seen: _Seen, told: ListedTable) -> bool:
        """Whether a table is wanted, of which ``told`` is told: nothing of runs that are hidden."""
        if told.problem is not None or not self.filters:
            return True
        if seen.latest is None or told.latest is None:
            return False
        age = time.time() - seen.latest.time_millis / 1000
        if self.older_than is not None and age <= self.older_than:
            return False
        run = told.latest.run
        names = (told.latest.writer, *((run.dag_id, run.task_id) if run else ()))
        return any(self.writer.lower() in name.lower() for name in names)


def read_tables(connection: str, names: Names, readable: Readable, query: TableQuery) -> Tables:
    """A page of tables, of each of which the newest snapshot is read.

    With filters, so many tables are read as a page has time for, until it is full.

    Raises:
        JobError: the catalog cannot be read. What is wrong with one table is told with it.
    """
    hook = catalog_hook_once(connection)
    everything, wanted = names.of(connection, hook), query.search.lower()
    listed = everything[:_MOST_NAMES]
    matching_names = [each for each in listed if wanted in str(each).lower()] if wanted else listed
    at, tables, deadline = query.offset, list[ListedTable](), time.monotonic() + _SECONDS
    while at < len(matching_names) and len(tables) < query.limit and time.monotonic() < deadline:
        seen_tables = _seen(hook, matching_names[at : at + query.limit], deadline)
        dags = {dag_of(each.latest) for each in seen_tables if each.latest} - {None}
        allowed = readable({each for each in dags if each}) if dags else frozenset()
        for seen_table in seen_tables:
            told = _listed(seen_table, allowed)
            at += 1
            tables += [told] if query.passes(seen_table, told) else []
            if len(tables) == query.limit:
                break
    return Tables(
        total=len(matching_names),
        complete=len(everything) <= _MOST_NAMES,
        looked_at=at - min(query.offset, at),
        next=at if at < len(matching_names) else None,
        tables=tables,
    )


def _listed(seen: _Seen, allowed: frozenset[str]) -> ListedTable:
    listed = ListedTable(database=seen.name.database, table=seen.name.table, problem=seen.problem)
    if seen.latest is not None and seen.facts is not None:
        listed.latest = told_snapshot(seen.latest, seen.facts, allowed)
        totals = seen.facts.totals(seen.latest)
        if totals is not None:
            listed.files, listed.size = totals.files, totals.size
    return listed


def _seen(hook: CatalogHook, names: Sequence[TableName], deadline: float) -> list[_Seen]:
    waiting = spread(partial(_look, hook), names, _READERS)
    try:
        seen_tables = []
        for name, pending in zip(names, waiting, strict=True):
            try:
                seen_tables.append(pending.result(max(0.0, deadline - time.monotonic())))
            except NotDoneError:
                late = Problem(code="TIMED_OUT", message="The table did not answer in time.")
                seen_tables.append(_Seen(name, problem=late))
        return seen_tables
    finally:
        for pending in waiting:
            pending.cancel()


def _look(hook: CatalogHook, name: TableName) -> _Seen:
    try:
        table = hook.table(name)
        with reaching(table.location):
            return _Seen(name, table.latest(), hook.page_facts(table))
    except JobError as error:
        return _Seen(name, problem=problem_of(error))
    except Exception as error:  # noqa: BLE001 - one broken table must not hide the others
        text = f"The table cannot be read ({type(error).__name__})."
        return _Seen(name, problem=Problem(code="INTERNAL_ERROR", message=text))
