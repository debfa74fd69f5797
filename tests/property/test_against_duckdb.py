"""The oracle and DuckDB agree on random statements in which both mean the same."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pytest

from tests.oracle import duckdb_judge
from tests.oracle.expressions import Row
from tests.oracle.merge import DUPLICATE_KEY, KEY_CHANGED, Merge, Outcome, TableColumn, multiset
from tests.oracle.statements import InsertRows, apply
from tests.property.cases import Step, Table
from tests.property.edges import edged_chain
from tests.property.grammar import BEYOND_INT

KEY_ERRORS = {DUPLICATE_KEY, KEY_CHANGED}
_ERRORS = (duckdb.BinderException, duckdb.ConstraintException, duckdb.ConversionException)


def test_random_statements() -> None:
    compared: list[Outcome] = []
    for seed in range(180):
        chain = edged_chain(seed)
        rows: Sequence[Row] = chain.table.rows
        for step in chain.steps:
            source = _without_second_matches(step, rows)
            outcome = apply(step.statement, chain.table.columns, rows, source)
            # DuckDB has no INSERT OVERWRITE, and the tables there have no key.
            judged = not isinstance(step.statement, InsertRows) and not outcome.errors & KEY_ERRORS
            if judged and not _casts_early(chain.table, step, outcome):
                _compare(chain.table, step, rows, source, outcome)
                compared.append(outcome)
            rows = outcome.rows
    # The comparison must not have become empty.
    assert len(compared) >= 250
    assert sum(outcome.changed and not outcome.errors for outcome in compared) >= 125
    assert sum(bool(outcome.errors) for outcome in compared) >= 40


def _without_second_matches(step: Step, rows: Sequence[Row]) -> list[Row]:
    # DuckDB neither refuses a second match nor carries such a row once.
    if not isinstance(step.statement, Merge):
        return step.source
    kept: list[Row] = []
    taken: set[int] = set()
    for row in step.source:
        matches = {
            index
            for index, old in enumerate(rows)
            if step.statement.on.evaluate({"t": old, "s": row}) is True
        }
        if not matches & taken:
            kept.append(row)
            taken |= matches
    return kept


def _casts_early(table: Table, step: Step, outcome: Outcome) -> bool:
    # DuckDB may cast the values of a clause that does not apply, and constants in any case.
    sql = duckdb_judge.to_sql(step.statement, table.columns)
    reads_big = '"big"' in sql or TableColumn("id", "BIGINT") in step.source_columns
    misfits = any(text in sql for text in ("'no number'", str(BEYOND_INT)))
    return (reads_big or misfits) and not outcome.errors


def _compare(
    table: Table, step: Step, rows: Sequence[Row], source: Sequence[Row], outcome: Outcome
) -> None:
    arguments = (step.statement, table.columns, rows, step.source_columns, source)
    if outcome.errors:
        with pytest.raises(_ERRORS):
            duckdb_judge.run(*arguments)
    else:
        judged = duckdb_judge.run(*arguments)
        found, expected = (
            multiset(map(_one_zero, r), table.columns) for r in (judged, outcome.rows)
        )
        assert found == expected


def _one_zero(row: Row) -> Row:
    # DuckDB takes an equal value for the same one, and may keep the other zero.
    return {name: 0.0 if value == 0.0 else value for name, value in row.items()}
