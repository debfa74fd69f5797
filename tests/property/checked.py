"""Compares what checks of rows have seen of a statement with what the oracle says it changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spark_jobs.contract.row_checks import CHANGES, NEW_ROWS, TARGET
from tests.oracle.expressions import Row
from tests.oracle.merge import Outcome, TableColumn, multiset
from tests.support.recorded_changes import Seen


def require_changes(seen: Seen, columns: Sequence[TableColumn], outcome: Outcome) -> None:
    """``changes``, ``new_rows`` and ``target`` were those of the oracle."""

    def values(row: Row | None) -> list[Any] | None:
        return None if row is None else [row[column.name] for column in columns]

    found = [
        (each["operation"], each["clause"], values(each["old"]), values(each["new"]))
        for each in seen.views[CHANGES]
    ]
    expected = [
        (each.operation, each.clause, values(each.old), values(each.new))
        for each in outcome.changes
    ]
    assert sorted(map(repr, found)) == sorted(map(repr, expected)), "changes"
    new = [each.new for each in outcome.changes if each.new is not None]
    assert multiset(seen.views[NEW_ROWS], columns) == multiset(new, columns), "new_rows"
    assert multiset(seen.views[TARGET], columns) == multiset(outcome.rows, columns), "target"
