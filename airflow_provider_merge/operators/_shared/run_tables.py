"""Which tables of a catalog have commits of a run, as their snapshots tell."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final

from airflow_provider_merge.care.patterns import Pattern, chosen, patterns
from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.hooks.catalog import CatalogHook
from airflow_provider_merge.storage.failures import reaching
from airflow_provider_merge.table_names import parse_table_name
from spark_jobs.contract.properties import (
    DAG_ID,
    OPERATION_ID,
    RUN_ID,
    SOURCES,
    TASK_ID,
    recorded_sources,
)
from spark_jobs.contract.request import TableName
from spark_jobs.contract.table_name import BRANCH_MARK
from spark_jobs.contract.undone import is_of_run
from spark_jobs.errors import ErrorCode, JobError

log = logging.getLogger(__name__)

EVERYTHING: Final = "*.*"
MOST_TABLES: Final = 100_000
# Tables whose metadata is read at a time.
READERS: Final = 8
MOST_NAMED: Final = 100


@dataclass(frozen=True, slots=True)
class WantedTables:
    """The tables that are looked at: those that patterns fit, and branches by name."""

    patterns: Sequence[Pattern]
    branches: Sequence[TableName] = ()

    @classmethod
    def of(cls, field: str, value: Any) -> WantedTables:
        """``db.table``, patterns such as ``db.*``, and ``db.table$branch_b``; None: all tables.

        Raises:
            RequestError: REQUEST_INVALID, naming the entry.
        """
        given = [EVERYTHING] if value is None else [value] if isinstance(value, str) else value
        if not isinstance(given, Sequence) or not given:
            raise invalid(field, f"expected names of tables, found {value!r}", "Write db.table.")
        texts = [each for each in given if isinstance(each, str) and BRANCH_MARK in each]
        others = [each for each in given if each not in texts]
        branches = [parse_table_name(each, field) for each in texts]
        return cls(patterns(field, others) if others else (), branches)

    def names(self, hook: CatalogHook) -> list[TableName]:
        """The tables of the catalog, without branches.

        Raises:
            RequestError: REQUEST_INVALID: a pattern fits no table, or there are too many.
        """
        if not self.patterns:
            return []
        known = hook.table_names(MOST_TABLES + 1)
        if len(known) > MOST_TABLES:
            problem = f"the catalog has more than {MOST_TABLES:,} tables"
            raise invalid("tables", problem, "Name the tables, or a part of them: db.*.")
        for pattern in self.patterns:
            if pattern.text != EVERYTHING and not any(pattern.fits(name) for name in known):
                raise invalid("tables", f"{pattern.text!r} fits no table", "Correct the name.")
        return chosen(known, self.patterns, ())


@dataclass(frozen=True, slots=True)
class BuiltOn:
    """A snapshot of ``table`` whose statement read ``source`` when it had commits of the run."""

    table: str
    snapshot_id: int
    source: str
    source_snapshot_id: int
    dag_id: str
    run_id: str
    task_id: str


@dataclass(frozen=True, slots=True)
class RunTables:
    """The tables, and branches, with retained snapshots of a run, and what was built on these."""

    names: Sequence[TableName]
    built_on: Sequence[BuiltOn]

    def told(self) -> str:
        """What was built on the run, for people; empty if nothing was."""
        lines = [
            f"  {reading.table}, snapshot {reading.snapshot_id}: task "
            f"{reading.dag_id}.{reading.task_id} of run {reading.run_id} read {reading.source}"
            for reading in self.built_on[:MOST_NAMED]
        ]
        more = len(self.built_on) - len(lines)
        lines += [f"  and {more:,} more"] if more > 0 else []
        return "\n".join(["read what is taken back:", *lines]) if lines else ""


@dataclass(frozen=True, slots=True)
class _Look:
    """What the retained history of a table, or branch, tells of the run.

    ``operations`` are the run's, ``since`` the snapshots from the run's first one on; ``readings``
    are the properties of snapshots of others that read tables.
    """

    name: TableName
    operations: frozenset[str]
    since: frozenset[int]
    readings: Mapping[int, Mapping[str, str]]


def tables_of_run(hook: CatalogHook, dag_id: str, run_id: str, wanted: WantedTables) -> RunTables:
    """Find the tables of a run.

    A branch counts if the run committed something to it that its table does not have. Of what was
    built on the run, statements on tables that are looked at count, whose snapshots are retained.

    Raises:
        JobError: the catalog cannot be read, or a table that was named.
    """
    names = wanted.names(hook)
    is_all = all(each.text == EVERYTHING for each in wanted.patterns)
    with ThreadPoolExecutor(READERS, "undo") as readers:
        tasks = [readers.submit(_looks, hook, name, (dag_id, run_id), is_all) for name in names]
        looks = [look for task in tasks for look in task.result()]
    known = {look.name for look in looks if look.operations}
    for name in wanted.branches:
        if name not in known:
            looks.append(_looked(hook, name, dag_id, run_id))
    found = [look.name for look in looks if look.operations]
    return RunTables(list(dict.fromkeys(found)), _built_on(looks))


def _built_on(looks: Sequence[_Look]) -> list[BuiltOn]:
    since = {str(look.name): look.since for look in looks if look.operations}
    return [
        BuiltOn(
            str(look.name),
            snapshot_id,
            source,
            read,
            properties.get(DAG_ID, ""),
            properties.get(RUN_ID, ""),
            properties.get(TASK_ID, ""),
        )
        for look in looks
        for snapshot_id, properties in look.readings.items()
        for source, ids in recorded_sources(properties).items()
        for read in ids
        if read in since.get(source, ())
    ]


def _looks(hook: CatalogHook, name: TableName, run: tuple[str, str], may_fail: bool) -> list[_Look]:
    """The table and its branches."""
    try:
        with reaching(str(name)):
            return list(_own(hook, name, run))
    except JobError as error:
        # A folder of a warehouse need not be a table.
        if error.code is ErrorCode.TABLE_NOT_FOUND:
            return []
        if not may_fail:
            raise
        log.warning("%s was not looked at: %s", name, error)
        return []


def _own(hook: CatalogHook, name: TableName, run: tuple[str, str]) -> Iterator[_Look]:
    """The table, and what each branch alone has."""
    main = _looked(hook, name, *run)
    yield main
    for branch in hook.table(name).branches():
        other = TableName(name.database, f"{name.table}{BRANCH_MARK}{branch}")
        look = _looked(hook, other, *run)
        yield replace(look, operations=look.operations - main.operations)


def _looked(hook: CatalogHook, name: TableName, dag_id: str, run_id: str) -> _Look:
    table = hook.table(name)
    operations: set[str] = set()
    since: set[int] = set()
    readings: dict[int, Mapping[str, str]] = {}
    for snapshot_id in table.history(table.latest()).ids:
        snapshot = table.snapshot(snapshot_id)
        properties: Mapping[str, str] = {} if snapshot is None else snapshot.properties
        if is_of_run(properties, dag_id, run_id):
            operations.add(properties[OPERATION_ID])
        elif SOURCES in properties:
            readings[snapshot_id] = properties
        if operations:
            since.add(snapshot_id)
    return _Look(name, frozenset(operations), frozenset(since), readings)
