"""The columns that checks of rows name, looked up before Spark starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_provider_merge.checks.expressions import own_names, parsed
from airflow_provider_merge.checks.queries import Views, check_query
from airflow_provider_merge.checks.relations import Relation
from spark_jobs.contract.row_checks import (
    CHANGES,
    CLAUSE,
    NEW,
    NEW_ROWS,
    OLD,
    OPERATION,
    TARGET,
    RowCheck,
)


def check_row_checks(
    checks: Sequence[RowCheck], columns: Mapping[str, str] | None, sources: Views
) -> None:
    """Check the names in ``checks`` of a table with these ``columns``; None: they are not known.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND, naming the check.
    """
    changes = Relation(CHANGES, CHANGES, dict.fromkeys((OPERATION, CLAUSE, OLD, NEW), ""))
    stored = {name: Relation(name, name, columns) for name in (NEW_ROWS, TARGET)}
    views = {**sources, CHANGES: changes, **stored}
    for check in checks:
        place = f"check {check.name}"
        check_query(check.sql, views, place)
        if columns is not None:
            _check_rows(check.sql, Relation(CHANGES, "the table", columns), sources, place)


def _check_rows(query: str, table: Relation, sources: Views, place: str) -> None:
    """Check the fields of ``old`` and ``new``, where these can be nothing but those of changes."""
    from sqlglot import exp

    tree = parsed(query)
    if tree is None:
        return
    taken = {name.lower() for each in (table, *sources.values()) for name in each.columns or ()}
    taken |= {each.alias_or_name.lower() for each in tree.find_all(exp.Table, exp.CTE, exp.Alias)}
    known = all(each.columns is not None for each in sources.values())
    for select in tree.find_all(exp.Select) if known else ():
        for name in own_names(select):
            row = name[0].lower()
            is_row = row in (OLD, NEW) and row not in taken and len(name) > 1
            if is_row and not table.find(name[1]):
                raise table.not_found(".".join(name[:2]), place)
