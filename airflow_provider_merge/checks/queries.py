"""The columns that queries read and return, as far as sqlglot understands them.

Those that checks of rows name are looked up alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from airflow_provider_merge.checks.expressions import own_names, parsed
from airflow_provider_merge.checks.relations import Relation, column_of
from airflow_provider_merge.sql.trees import Tree, scopes_of
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

Views = Mapping[str, Relation]


def check_query(query: str, views: Views, place: str) -> None:
    """Check that the columns exist that a query names; ``views`` by lower-case name.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND.
    """
    tree = parsed(query)
    if tree is None or _renames_columns(tree):
        return
    aliases = _aliases(tree)
    for select, relations in _selects(tree, views):
        for name in own_names(select):
            if not (len(name) == 1 and name[0].lower() in aliases):
                column_of(name, relations, place, unique=False)


def query_columns(query: str, views: Views) -> dict[str, str] | None:
    """The columns that a query returns, without types; None where they are not understood."""
    from sqlglot import exp

    tree = parsed(query)
    if tree is None or _renames_columns(tree):
        return None
    while isinstance(tree, exp.SetOperation):
        tree = tree.left
    if not isinstance(tree, exp.Select):
        return None
    if tree.is_star:
        return _all_columns(tree, views)
    names = [each.alias_or_name for each in tree.expressions]
    plain = all(isinstance(each, exp.Alias | exp.Column) for each in tree.expressions)
    return dict.fromkeys(names, "") if plain and all(names) else None


def _all_columns(select: Tree, views: Views) -> dict[str, str] | None:
    """Of ``SELECT * FROM`` one relation."""
    from sqlglot import exp

    if select.expressions != [exp.Star()] or select.args.get("joins"):
        return None
    selected = [relations for each, relations in _selects(select, views) if each is select]
    if len(selected) != 1 or len(selected[0]) != 1 or selected[0][0].columns is None:
        return None
    return dict(selected[0][0].columns)


def _selects(tree: Tree, views: Views) -> Iterator[tuple[Tree, list[Relation]]]:
    """Each SELECT whose relations are all known, with these and those of the queries around it."""
    from sqlglot import exp

    for scope in scopes_of(tree):
        select = scope.expression
        understood = isinstance(select, exp.Select) and not any(
            select.args.get(each) for each in ("laterals", "pivots")
        )
        if understood:
            relations = list(_relations_of(scope, views))
            if all(each.columns is not None for each in relations):
                yield select, relations


def _relations_of(scope: Any, views: Views) -> Iterator[Relation]:
    """What a SELECT can read: its own relations, then those of the queries around it."""
    from sqlglot import exp

    for alias, source in scope.sources.items():
        if isinstance(source, exp.Table):
            view = views.get(source.name.lower()) if not source.db else None
            yield view.known_as(alias) if view else Relation(alias, alias, None)
        else:
            yield Relation(alias, alias, _returned(source.expression))
    if scope.parent is not None and not (scope.is_derived_table or scope.is_cte):
        yield from _relations_of(scope.parent, views)


def _returned(query: Tree) -> dict[str, str] | None:
    from sqlglot import exp

    while isinstance(query, exp.SetOperation):
        query = query.left
    if not isinstance(query, exp.Select) or query.is_star:
        return None
    names = [each.alias_or_name for each in query.expressions]
    return dict.fromkeys(names, "") if all(names) else None


def _renames_columns(tree: Tree) -> bool:
    """Whether a part of a query gives its columns other names: ``AS t(x, y)``, PIVOT, UNPIVOT."""
    from sqlglot import exp

    renamed = any(alias.columns for alias in tree.find_all(exp.TableAlias))
    return renamed or tree.find(exp.Pivot) is not None


def _aliases(tree: Tree) -> set[str]:
    """All names that a query gives, in lower case: a name of these may mean a computed value."""
    from sqlglot import exp

    given: list[str] = [each.alias for each in tree.find_all(exp.Alias, exp.TableAlias)]
    for several in tree.find_all(exp.Aliases):
        given += map(str, several.aliases)
    return {name.lower() for name in given}


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
