"""Which tables of a catalog have commits of a run, as their snapshots tell."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from airflow_provider_merge.care.patterns import Pattern, chosen, patterns
from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.hooks.catalog import CatalogHook
from airflow_provider_merge.metadata.reader import TableReader
from airflow_provider_merge.storage.failures import reaching
from airflow_provider_merge.table_names import parse_table_name
from spark_jobs.contract.branches import BRANCH_MARK
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.contract.request import TableName
from spark_jobs.contract.undone import is_of_run
from spark_jobs.errors import ErrorCode, JobError

log = logging.getLogger(__name__)

EVERYTHING: Final = "*.*"
MOST_TABLES: Final = 100_000
# Tables whose metadata is read at a time.
READERS: Final = 8


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
        for each in self.patterns:
            if each.text != EVERYTHING and not any(each.fits(name) for name in known):
                raise invalid("tables", f"{each.text!r} fits no table", "Correct the name.")
        return chosen(known, self.patterns, ())


def tables_of_run(
    hook: CatalogHook, dag_id: str, run_id: str, wanted: WantedTables
) -> list[TableName]:
    """The tables, and branches, with retained snapshots of the run.

    A branch counts if the run committed something to it that its table does not have.

    Raises:
        JobError: the catalog cannot be read, or a table that was named.
    """
    names = wanted.names(hook)
    is_all = all(each.text == EVERYTHING for each in wanted.patterns)
    with ThreadPoolExecutor(READERS, "undo") as readers:
        looks = [readers.submit(_look, hook, name, (dag_id, run_id), is_all) for name in names]
        found = [name for look in looks for name in look.result()]
    for name in wanted.branches:
        if name not in found and _operations(hook.table(name), dag_id, run_id):
            found.append(name)
    return found


def _look(
    hook: CatalogHook, name: TableName, run: tuple[str, str], may_fail: bool
) -> list[TableName]:
    """The table and its branches that have commits of the run."""
    try:
        with reaching(str(name)):
            return list(_changed(hook, name, run))
    except JobError as error:
        # A folder of a warehouse need not be a table.
        if error.code is ErrorCode.TABLE_NOT_FOUND:
            return []
        if not may_fail:
            raise
        log.warning("%s was not looked at: %s", name, error)
        return []


def _changed(hook: CatalogHook, name: TableName, run: tuple[str, str]) -> Iterator[TableName]:
    table = hook.table(name)
    own = _operations(table, *run)
    if own:
        yield name
    for branch in table.branches():
        other = TableName(name.database, f"{name.table}{BRANCH_MARK}{branch}")
        if _operations(hook.table(other), *run) - own:
            yield other


def _operations(table: TableReader, dag_id: str, run_id: str) -> set[str]:
    """The operations of the run in the retained history of a table."""
    found = set()
    for snapshot_id in table.history(table.latest()).ids:
        snapshot = table.snapshot(snapshot_id)
        told: Mapping[str, str] = {} if snapshot is None else snapshot.properties
        if is_of_run(told, dag_id, run_id):
            found.add(told[OPERATION_ID])
    return found
