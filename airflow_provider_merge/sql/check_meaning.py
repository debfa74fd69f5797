"""Checks that can never hold, or never fail, as far as sqlglot understands their text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from airflow_provider_merge.sql.text import SqlText
from airflow_provider_merge.sql.trees import scopes_of, tree_of
from spark_jobs.contract.row_checks import (
    CHANGED_OPERATIONS,
    CHANGES,
    OPERATION,
    always_returns_a_row,
)
from spark_jobs.errors import ErrorCode


def require_meaning(query: str, text: SqlText) -> None:
    """Check that the rows of a check's ``query`` depend on the rows that it reads.

    Raises:
        AnalysisError: EXPRESSION_INVALID: it always returns a row, or compares ``operation`` with
            what no row has.
    """
    from sqlglot import exp

    tree = tree_of(query)
    if tree is None:
        return
    if isinstance(tree, exp.Select) and _is_one_row(tree):
        raise always_returns_a_row("it")
    for value in _compared_operations(tree):
        if value not in CHANGED_OPERATIONS:
            known = ", ".join(CHANGED_OPERATIONS)
            raise text.error(
                0,
                f"{OPERATION} of {CHANGES} is never {value!r}",
                f"It is one of: {known}.",
                ErrorCode.EXPRESSION_INVALID,
            )


def _is_one_row(select: Any) -> bool:
    """Whether a SELECT computes one row of all: it has an aggregate, and no GROUP BY or HAVING."""
    from sqlglot import exp

    parts = ("group", "having", "qualify", "limit", "offset")
    if any(select.args.get(each) for each in parts):
        return False
    return any(
        isinstance(aggregate.find_ancestor(exp.Window, exp.Query), exp.Query)
        and aggregate.find_ancestor(exp.Query) is select
        for value in select.expressions
        for aggregate in value.find_all(exp.AggFunc)
    )


def _compared_operations(tree: Any) -> Iterator[str]:
    """The texts with which ``operation`` of ``changes`` is compared."""
    from sqlglot import exp

    for scope in scopes_of(tree):
        names = {alias.lower() for alias, each in scope.sources.items() if _is_changes(each)}
        is_alone = len(names) == len(scope.sources)
        for column in scope.columns:
            alias = column.table.lower()
            if column.name.lower() != OPERATION or len(column.parts) > 2:
                continue
            if alias in names or (not alias and is_alone):
                compared = column.find_ancestor(exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.In)
                if compared is not None and _is_operand(column, compared):
                    yield from _texts(compared)


def _is_changes(source: Any) -> bool:
    """Whether what a query reads is ``changes``, perhaps through queries that keep its columns."""
    from sqlglot import exp

    if isinstance(source, exp.Table):
        return not source.db and source.name.lower() == CHANGES
    select = source.expression
    inner = list(source.sources.values())
    if not isinstance(select, exp.Select) or len(inner) != 1 or select.args.get("joins"):
        return False
    plain = {each.name.lower() for each in select.expressions if isinstance(each, exp.Column)}
    return (select.is_star or OPERATION in plain) and _is_changes(inner[0])


def _is_operand(column: Any, compared: Any) -> bool:
    sides = (compared.this, compared.args.get("expression"))
    return any(each is not None and each.unnest() is column for each in sides)


def _texts(compared: Any) -> Iterator[str]:
    from sqlglot import exp

    others = [*compared.args.get("expressions", ()), compared.args.get("expression"), compared.this]
    for each in others:
        value = None if each is None else each.unnest()
        if isinstance(value, exp.Literal) and value.is_string:
            yield str(value.this)
