"""The columns that an expression reads, and the type of a value, as sqlglot understands them.

What sqlglot does not understand is left to Spark: nothing is found there, and nothing refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from airflow_provider_merge.sql.trees import DIALECT, Tree, tree_of

# Words without an alias that are values of Spark SQL, not columns.
_VALUES: Final = (
    *("default", "grouping__id", "localtimestamp", "session_user", "user", "current_time"),
)
# The hidden column of files.
_HIDDEN: Final = "_metadata"

# The parts of a dotted name, as they are written, without backticks.
Name = tuple[str, ...]


def names_in(expression: str) -> list[Name]:
    """The columns that an expression names; not those in subqueries, nor variables of lambdas."""
    select = parsed(f"SELECT {expression}")
    return list(own_names(select)) if select is not None else []


def own_names(select: Tree) -> Iterator[Name]:
    """The columns that a SELECT names, without its subqueries."""
    from sqlglot import exp

    for column in select.find_all(exp.Column):
        if column.find_ancestor(exp.Query) is not select or column.find(exp.Star):
            continue
        name = tuple(part.name for part in column.parts)
        is_value = len(name) == 1 and name[0].lower() in _VALUES
        if not is_value and _HIDDEN not in map(str.lower, name):
            yield name


def value_of(expression: str) -> Tree | None:
    """The one value that an expression is; None where it is not understood."""
    select = parsed(f"SELECT {expression}")
    if select is None or len(select.expressions) != 1:
        return None
    return select.expressions[0].unnest()


def literal_type(value: Tree) -> str | None:
    """The type of a literal or a cast; None of everything else."""
    from sqlglot import exp

    if isinstance(value, exp.Literal):
        return "string" if value.is_string else "decimal"
    if isinstance(value, exp.Boolean):
        return "boolean"
    if isinstance(value, exp.Cast):
        return str(value.to.sql(dialect=DIALECT))
    return None


def parsed(query: str) -> Tree | None:
    """A query as a tree; None where sqlglot does not understand it."""
    from sqlglot import exp

    tree = tree_of(query)
    return tree if isinstance(tree, exp.Query) else None
